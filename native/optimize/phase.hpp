// What a run of iterations is told: how strong the attraction, how long the steps, which rule.
#pragma once

#include "acctsne/types.hpp"
#include "kernels/update.hpp"

#include <cmath>
#include <optional>
#include <vector>

namespace acctsne {

// A positive value that goes from `first` to `last`, by the same factor in each iteration.
struct Ramp {
  double first;
  double last;

  Ramp(double constant) : first(constant), last(constant) {} // NOLINT: a value is a ramp
  Ramp(double first_, double last_) : first(first_), last(last_) {}

  // After a part of the way, from 0 to 1.
  double at(double part) const {
    return first == last ? first : first * std::pow(last / first, part);
  }
};

struct Phase {
  Size iterations = 0;
  Size done = 0;           // iterations of the same phase that an earlier run did
  Size left = 0;           // iterations of the same phase that a later run does
  Ramp exaggeration = 1;   // P times this
  Ramp learning_rate = 50; // in scikit-learn's unit: the gradient carries its factor 4
  StepRule rule = StepRule::heavy_ball;
  std::optional<double> momentum; // none for as much as the run bears (optimize/friction.hpp)
  double max_step = 5;            // longest step of a point; infinity for none
  std::vector<Size> report_every; // reports come after multiples of each of these iterations

  // The part of the way that lies behind after so many iterations of this run.
  double part(Size iteration) const {
    return static_cast<double>(done + iteration) / static_cast<double>(done + iterations + left);
  }
};

} // namespace acctsne
