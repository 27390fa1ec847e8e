// The gradient descent. One iteration:
//
// 1. repulsive: the tree over the points (steps 3 and 4), its walks (step 6); or all pairs
// 2. attractive: one pass over P (step 5)
// 3. update: gains, momentum, step, recentring, bounds
// 4. every check_every iterations: KL divergence and the stopping rules
#include "optimize/loop.hpp"

#include "forces/attractive.hpp"
#include "forces/repulsive_exact.hpp"
#include "forces/repulsive_tree.hpp"
#include "optimize/update.hpp"
#include "tree/tree.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace acctsne {
namespace {

template <typename Real, int Dims>
class LayoutOptimizer final : public Optimizer<Real> {
public:
  LayoutOptimizer(const CsrView<Real>& P, const Real* initial, const OptimizerOptions& options)
      : P_(P), options_(options) {
    start_layout(layout_, initial, P.rows());
    attractive_.resize(layout_.points.size());
    repulsive_.resize(layout_.points.size());
    if (options_.method == Method::barnes_hut) {
      tree_.reserve(P.rows());
    }
  }

  Stop run(const Phase& phase, ThreadTeam& team, const Observer& observer) override {
    double best_kl = std::numeric_limits<double>::infinity();
    Size best_iteration = this->iterations();
    for (Size i = 0; i < phase.iterations; ++i) {
      evaluate(team);
      const Size iteration = this->iterations();
      const Size number = iteration + 1;
      const bool check = phase.check_every > 0 && number % phase.check_every == 0;
      const bool callback = phase.callback_every > 0 && number % phase.callback_every == 0;
      const double kl = check || callback ? kl_from_forces(team) : 0;

      const double gradient_norm = step(phase, team);
      this->iterations_.store(number, std::memory_order_relaxed);

      if (check || callback) {
        this->last_report_ = {iteration, kl, gradient_norm};
      }
      if (callback && observer && observer(this->last_report_)) {
        return Stop::observer;
      }
      if (check) {
        if (kl < best_kl) {
          best_kl = kl;
          best_iteration = iteration;
        } else if (phase.patience >= 0 && iteration - best_iteration > phase.patience) {
          return Stop::no_progress;
        }
        if (gradient_norm <= phase.min_gradient_norm) {
          return Stop::small_gradient;
        }
      }
      team.check();
    }
    return Stop::finished;
  }

  void rest() override { rest_layout(layout_); }

  void evaluate(ThreadTeam& team) override {
    const Real* points = layout_.points.data();
    if (options_.method == Method::exact) {
      const StepTimer timer(this->seconds_.repulsive);
      z_ = exact_.forces(points, layout_.size(), repulsive_.data(), team);
    } else {
      {
        const StepTimer timer(this->seconds_.tree_building);
        tree_.build(points, layout_.size(), layout_.lower, layout_.upper, team);
      }
      {
        const StepTimer timer(this->seconds_.summarization);
        tree_.summarize(team);
      }
      const StepTimer timer(this->seconds_.repulsive);
      z_ = tree_repulsion(tree_, options_.theta, repulsive_.data(), partials_, team);
    }
    const StepTimer timer(this->seconds_.attractive);
    attractive_forces<Real, Dims>(P_, points, attractive_.data(), team);
  }

  double kl_divergence(ThreadTeam& team) override {
    evaluate(team);
    return kl_from_forces(team);
  }

  std::span<const Real> points() const override { return layout_.points; }
  std::span<const Real> attractive() const override { return attractive_; }
  std::span<const Real> repulsive() const override { return repulsive_; }
  double z() const override { return z_; }

private:
  // KL at the positions that z_ was evaluated at, of P without exaggeration. The approximations in
  // Z can put it below zero, where no divergence is.
  double kl_from_forces(ThreadTeam& team) {
    const StepTimer timer(this->seconds_.kl_divergence);
    if (std::isnan(negative_entropy_)) {
      negative_entropy_ = negative_entropy(P_, partials_, team);
    }
    const double cross = cross_entropy<Real, Dims>(P_, layout_.points.data(), partials_, team);
    return std::max(0.0, negative_entropy_ + cross + std::log(std::max(z_, kSmallestZ)));
  }

  double step(const Phase& phase, ThreadTeam& team) {
    const StepTimer timer(this->seconds_.update);
    UpdateParameters<Real> parameters{};
    parameters.attraction_scale = static_cast<Real>(4 * phase.exaggeration);
    parameters.repulsion_scale = static_cast<Real>(-4 / std::max(z_, kSmallestZ));
    parameters.learning_rate = static_cast<Real>(phase.learning_rate);
    parameters.momentum = static_cast<Real>(phase.momentum);
    // Squared in the kernel, so kept below the root of the largest number.
    const double longest = std::sqrt(static_cast<double>(std::numeric_limits<Real>::max())) / 2;
    parameters.max_step = static_cast<Real>(std::min(phase.max_step, longest));
    return update_layout(layout_, parameters, attractive_.data(), repulsive_.data(), sums_, team);
  }

  // Guards the division when points have flown so far apart that Z vanishes.
  static constexpr double kSmallestZ = 1e-30;

  CsrView<Real> P_;
  OptimizerOptions options_;
  Layout<Real, Dims> layout_;
  Tree<Real, Dims> tree_;
  ExactRepulsion<Real, Dims> exact_;
  std::vector<Real> attractive_;
  std::vector<Real> repulsive_;
  double z_ = 0;
  double negative_entropy_ = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> partials_;
  std::vector<UpdateSums> sums_;
};

} // namespace

template <typename Real>
std::unique_ptr<Optimizer<Real>> make_optimizer(const CsrView<Real>& P, const Real* initial,
                                                int dims, const OptimizerOptions& options) {
  switch (dims) {
  case 1:
    return std::make_unique<LayoutOptimizer<Real, 1>>(P, initial, options);
  case 2:
    return std::make_unique<LayoutOptimizer<Real, 2>>(P, initial, options);
  case 3:
    return std::make_unique<LayoutOptimizer<Real, 3>>(P, initial, options);
  default:
    throw std::invalid_argument("an embedding has 1, 2 or 3 dimensions");
  }
}

template std::unique_ptr<Optimizer<float>> make_optimizer(const CsrView<float>&, const float*, int,
                                                          const OptimizerOptions&);
template std::unique_ptr<Optimizer<double>> make_optimizer(const CsrView<double>&, const double*,
                                                           int, const OptimizerOptions&);

} // namespace acctsne
