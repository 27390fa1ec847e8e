// How much momentum a run bears: one less the friction.
//
// What is slow in a descent is collective: clusters drift apart, the map widens. Little friction
// makes that fast, but carries the map past its goal where there is one close by (large
// perplexities, degrees of freedom above 1, few points). So friction falls by and by, and rises
// again while the objective does.
#pragma once

#include <algorithm>

namespace acctsne {

// Settled by benchmarks/descent.py (docs/tuning.md).
class Friction {
public:
  static constexpr double kFirst = 0.05;
  static constexpr double kLeast = 0.01;
  static constexpr double kMost = 0.1;
  static constexpr double kFall = 0.96;
  static constexpr double kRise = 1.5;

  // All that it depends on, for a run that is to go on later.
  struct State {
    double friction = kFirst;
    double work = 0; // the product of gradient and step at the last iteration
  };

  double momentum() const { return 1 - state_.friction; }

  // Tells the products of an iteration's gradient with the step before and with the step after it.
  // The mean of the products at both ends of a step is what it has changed the objective by, up to
  // terms of third order: no KL divergence needs to be computed for it. Returns whether it rose.
  bool adapt(double last_work, double next_work) {
    const bool rose = state_.work + last_work > 0;
    state_.work = next_work;
    state_.friction =
        rose ? std::min(kMost, kRise * state_.friction) : std::max(kLeast, kFall * state_.friction);
    return rose;
  }

  const State& state() const { return state_; }
  void restore(const State& state) { state_ = state; }

private:
  State state_;
};

} // namespace acctsne
