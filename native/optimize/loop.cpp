// The gradient descent. Every process has the positions of its own points and of those that their
// edges lead to, and P of its own rows, on which it works. One iteration, and what the processes
// exchange in it:
//
// 1. a few times per run: points, P and state relabelled by the layout's Morton order;
//    exchanged: points with their state and their rows of P, which go to the process that owns
//    their new place; the order; which points of others each needs from then on (forces/halo.cpp)
// 2. the positions of these points, or of all where the repulsion is not by the grid
// 3. repulsive: tree (steps 3 and 4) and its walks (step 6), or grid, or all pairs;
//    exchanged: points near others' tiles of the grid, and charged tiles
//    (forces/shared_charges.cpp); sums of Z, a number for every 512 rows
// 4. attractive: one pass over P (step 5); nothing is exchanged
// 5. update: momentum, step, recentring, bounds; then how much momentum the next one may have;
//    exchanged: sums of positions, bounds and norms, 3 dims + 4 numbers for every 1024 rows
// 6. now and then: KL divergence and a report to the observer, who may stop;
//    exchanged: sums of the cross entropy, a number for every 256 rows; whether to stop; positions
//    of all points, if somebody asks for them
// 7. a look at whether somebody has pressed Ctrl-C; exchanged: the same
#include "optimize/loop.hpp"

#include "forces/attractive.hpp"
#include "forces/edges.hpp"
#include "forces/halo.hpp"
#include "forces/repulsive.hpp"
#include "optimize/check_state.hpp"
#include "optimize/own_rows.hpp"
#include "optimize/relabel.hpp"
#include "optimize/update.hpp"
#include "tree/morton.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

namespace acctsne {
namespace {

template <typename Real>
std::vector<Real> times(double factor, std::vector<Real> values) {
  for (Real& value : values) {
    value = static_cast<Real>(factor * static_cast<double>(value));
  }
  return values;
}

// Works on the positions in the output kernel's unit (forces/output_kernel.hpp).
template <typename Real>
class LayoutOptimizer final : public Optimizer<Real> {
public:
  LayoutOptimizer(JointRows<Real>& P, const Real* initial, int dims,
                  const RepulsionOptions& options, Communicator& processes, ThreadTeam& team)
      : processes_(processes), own_(rows_of(processes.rank(), processes.size(), P.rows())),
        output_kernel_(options.output_kernel), edges_(processes), layout_(dims),
        repulsion_(dims, options) {
    const Step step("edges");
    start_layout(
        layout_,
        times(1 / output_kernel_.unit(), std::vector<Real>(initial, initial + P.rows() * dims))
            .data(),
        P.rows());
    const std::vector<PointId> order_of_rows = layout_.order;
    relabel_points(team);
    // Several processes relabel the edges when P is no longer needed, lest both take memory.
    edges_fit_ = processes.size() == 1;
    const std::vector<PointId>& order = edges_fit_ ? layout_.order : order_of_rows;
    preconditioner_ = preconditioner_of(edges_.build(P, order, /*half=*/true, team));
    precondition_layout(layout_, std::span<const Real>(preconditioner_));
    // Only now: while P was made of conditional probabilities, memory was scarcest.
    forces_.attractive.resize(layout_.points.size());
    forces_.repulsive.resize(layout_.points.size());
  }

  bool run(const Phase& phase, ThreadTeam& team, const Observer& observer) override {
    for (Size i = 0; i < phase.iterations; ++i) {
      if (!iterate(phase, phase.part(i), team, observer)) {
        return false;
      }
      if (any_says(team.wants_to_stop())) {
        throw Cancelled();
      }
    }
    return true;
  }

  void reset_momentum() override {
    acctsne::reset_momentum(layout_);
    friction_ = Friction();
  }

  void widen(double spread, ThreadTeam& team) override {
    sums_.start(layout_.size(), kSumRows);
    parallel_for(team, own_, kSumRows, [&](Size begin, Size end) {
      for (Size c = begin * layout_.dims; c < end * layout_.dims; ++c) {
        const double from_mean = distance_from_mean(c);
        *sums_.of_row(begin) += from_mean * from_mean;
      }
    });
    gather_sums();
    const double factor = spread / std::sqrt(sums_.total() / static_cast<double>(layout_.size()));
    if (factor > 1 && std::isfinite(factor) && layout_.fixed.empty()) {
      scale_layout(layout_, factor);
      evaluated_at_ = -1;
    }
  }

  void hold(std::span<const std::uint8_t> fixed) override { hold_points(layout_, fixed); }

  void tether(std::span<const Real> targets, std::span<const Real> weights) override {
    tethers_.targets =
        times(1 / output_kernel_.unit(), std::vector<Real>(targets.begin(), targets.end()));
    tethers_.weights.assign(weights.begin(), weights.end());
    // A tether adds to its point's stiffness. It counts twice, since the target may swing against
    // the point.
    std::vector<Real> mobility = preconditioner_;
    for (std::size_t row = 0; row < weights.size(); ++row) {
      mobility[row] /= 1 + 2 * weights[row] * mobility[row];
    }
    precondition_layout(layout_, std::span<const Real>(mobility));
  }

  OptimizerState<Real> state() override {
    const Size first = own_.begin * layout_.dims;
    const auto own_rows = [&](const std::vector<Real>& values) {
      return to_own_rows(processes_, layout_.order, values.data() + first, layout_.dims);
    };
    OptimizerState<Real> state;
    state.points = own_rows(layout_.points);
    state.updates = own_rows(layout_.updates);
    state.gains = own_rows(layout_.gains);
    state.mean = layout_.mean;
    state.order.assign(layout_.order.begin() + own_.begin, layout_.order.begin() + own_.end);
    state.iterations = this->iterations();
    state.relabelled_at = relabelled_at_;
    state.friction = friction_.state();
    const std::span<const Real> kept = repulsion_.kept(); // of all points
    if (!kept.empty()) {
      state.kept = to_own_rows(processes_, layout_.order, kept.data() + first, layout_.dims);
    }
    return state;
  }

  void restore(const OptimizerState<Real>& state) override {
    layout_.order = sound_order(state, layout_.size(), layout_.dims, processes_);
    tethers_ = {};
    layout_.fixed.clear();
    const auto take = [&](const std::vector<Real>& rows, std::vector<Real>& values) {
      Real* own_points = values.data() + own_.begin * layout_.dims;
      from_own_rows(processes_, layout_.order, rows, own_points, layout_.dims);
    };
    take(state.points, layout_.points);
    take(state.updates, layout_.updates);
    take(state.gains, layout_.gains);
    known_ = processes_.size() == 1 ? Known::all : Known::own;
    precondition_layout(layout_, std::span<const Real>(preconditioner_));
    sums_.start(layout_.size(), kSumRows, UpdateSums::size(layout_.dims));
    measure_points(layout_, own_, sums_);
    gather_sums();
    finish_step(layout_, sums_);
    layout_.mean = state.mean; // as it was summed
    std::vector<Real> kept;
    if (any_says(!state.kept.empty())) {
      kept.resize(layout_.points.size());
      take(state.kept, kept);
      exchange(kept);
    }
    ThreadTeam alone(1);
    repulsion_.keep(kept, alone);
    this->iterations_.store(state.iterations, std::memory_order_relaxed);
    relabelled_at_ = state.relabelled_at;
    friction_.restore(state.friction);
    edges_fit_ = false;
    evaluated_at_ = -1;
  }

  void evaluate(ThreadTeam& team) override {
    if (evaluated_at_ == this->iterations()) {
      return;
    }
    // A coordinate that is no number makes the mean none. Only a damaged state leads to one, and
    // from there to nodes of the grid that do not exist.
    if (!std::ranges::all_of(layout_.mean, [](Real value) { return std::isfinite(value); })) {
      throw std::domain_error("a position of the layout is not finite");
    }
    relabel_if_due(team);
    const Real* points = layout_.points.data();
    const MapView<Real> map = {points, layout_.size(), layout_.lower.data(), layout_.upper.data()};
    learn_positions(map, team);
    sums_.start(layout_.size(), kSumRows);
    {
      const SentCounter counter(processes_, this->sent_.charges);
      repulsion_.forces(map, processes_, forces_.repulsive.data(), sums_, this->seconds_, team);
    }
    gather_sums();
    z_ = sums_.total();
    const Step step("attractive", this->seconds_.attractive);
    attractive_forces(edges_, points, layout_.dims, own_, forces_.attractive.data(), team);
    evaluated_at_ = this->iterations();
  }

  // KL of P without exaggeration. The approximations in Z can put it below zero, where no
  // divergence is.
  double kl_divergence(ThreadTeam& team) override {
    evaluate(team);
    const Step step("KL divergence", this->seconds_.kl_divergence);
    cross_entropy(edges_, layout_.points.data(), layout_.dims, own_, sums_, team);
    gather_sums();
    return std::max(0.0, edges_.negative_entropy() + output_kernel_.exponent * sums_.total() +
                             std::log(std::max(z_, kSmallestZ)));
  }

  double kl_of_one_place() const override {
    const auto n = static_cast<double>(layout_.size());
    return edges_.negative_entropy() + std::log(std::max(n * (n - 1), 1.0));
  }

  double mean_drop() const override { return edges_.mean_drop(); }

  double disorder(ThreadTeam& team) override {
    evaluate(team);
    sums_.start(layout_.size(), kSumRows, 2);
    parallel_for(team, own_, kSumRows, [&](Size begin, Size end) {
      double* sums = sums_.of_row(begin);
      for (Size c = begin * layout_.dims; c < end * layout_.dims; ++c) {
        const double from_mean = distance_from_mean(c);
        sums[0] += static_cast<double>(forces_.attractive[at(c)]) * from_mean;
        sums[1] += from_mean * from_mean;
      }
    });
    gather_sums();
    double work = 0;
    double spread = 0;
    sums_.for_chunks([&](const double* sums) {
      work += sums[0];
      spread += sums[1];
    });
    const double unit = output_kernel_.gradient_scale() / output_kernel_.unit();
    return spread > 0 ? unit * work * static_cast<double>(layout_.size()) / spread : 1.0;
  }

  std::vector<Real> points() override {
    learn_all_positions();
    return times(output_kernel_.unit(), in_row_order(layout_, layout_.points));
  }
  std::vector<Real> attractive() override { return in_users_unit(forces_.attractive); }
  std::vector<Real> repulsive() override { return in_users_unit(forces_.repulsive); }
  double z() const override { return z_; }

private:
  // Of one coordinate of a point.
  double distance_from_mean(Size coordinate) const {
    const Real mean = layout_.mean[at(coordinate % layout_.dims)];
    const Real value = layout_.points[at(coordinate)];
    return static_cast<double>(value) - static_cast<double>(mean);
  }

  // One iteration and the report that may be due after it; returns false if the observer ends the
  // phase.
  bool iterate(const Phase& phase, double part, ThreadTeam& team, const Observer& observer) {
    // One of several processes may not leave the others waiting: they stop together, after it.
    std::optional<ThreadTeam::Uninterrupted> to_the_end;
    if (processes_.size() > 1) {
      to_the_end.emplace(team);
    }
    evaluate(team);
    const double gradient_norm = step(phase, part, team);
    const auto is_due = [this](Size every) { return this->iterations() % every == 0; };
    if (!observer || std::ranges::none_of(phase.report_every, is_due)) {
      return true;
    }
    const bool stop = observer({this->iterations() - 1, kl_divergence(team), gradient_norm});
    if (any_says(stop) && !stop) {
      throw Cancelled(); // for a reason that another process has
    }
    return !stop;
  }

  bool any_says(bool mine) {
    const SentCounter counter(processes_, this->sent_.sums);
    return processes_.size() == 1 ? mine : sum(processes_, mine ? 1 : 0) > 0;
  }

  void gather_sums() {
    const SentCounter counter(processes_, this->sent_.sums);
    sums_.gather(processes_);
  }

  // Completes an array of all points by the rows of the other processes.
  void exchange(std::vector<Real>& values) {
    gather_rows(processes_, values.data(), layout_.size(), layout_.dims);
  }

  // Fetches the positions that forces on own points depend on, as far as they are not here yet.
  void learn_positions(const MapView<Real>& map, ThreadTeam& team) {
    if (known_ == Known::all) {
      return;
    }
    if (repulsion_.needs_all_points(map)) {
      learn_all_positions();
      return;
    }
    if (!halo_fits_) {
      const SentCounter counter(processes_, this->sent_.relabel);
      halo_.build(edges_.view(), processes_, team);
      halo_fits_ = true;
    }
    if (known_ == Known::own) {
      const SentCounter counter(processes_, this->sent_.halo);
      halo_.fill(layout_.points.data(), layout_.dims, processes_, team);
      known_ = Known::own_and_halo;
    }
  }
  void learn_all_positions() {
    if (known_ != Known::all) {
      const SentCounter counter(processes_, this->sent_.positions);
      exchange(layout_.points);
      known_ = Known::all;
    }
  }

  std::vector<Real> in_users_unit(std::vector<Real>& forces) {
    exchange(forces);
    return times(output_kernel_.gradient_scale(), in_row_order(layout_, forces));
  }

  // Numbers the points in Morton order of the present layout, so that neighbours lie close in
  // memory. The layout changes most early on.
  void relabel_if_due(ThreadTeam& team) {
    constexpr Size kRelabelAt[] = {0, 50, 200, 500};
    const Size iteration = this->iterations();
    const bool due =
        iteration != relabelled_at_ &&
        std::find(std::begin(kRelabelAt), std::end(kRelabelAt), iteration) != std::end(kRelabelAt);
    if (due || relabelled_at_ < 0) {
      const Step step("relabelling", this->seconds_.relabel);
      relabel_points(team);
    }
    if (!edges_fit_) {
      const Step step("relabelling", this->seconds_.relabel);
      const SentCounter counter(processes_, this->sent_.relabel);
      const ThreadTeam::Uninterrupted to_the_end(team);
      edges_.relabel(layout_.order, team);
      edges_fit_ = true;
      halo_fits_ = false;
    }
  }

  void relabel_points(ThreadTeam& team) {
    const Step step("relabelling");
    if (processes_.size() > 1) {
      const SentCounter counter(processes_, this->sent_.relabel);
      relabel_together(layout_, processes_, team);
      known_ = Known::own;
    } else {
      const std::vector<PointId> order =
          morton_order(layout_.points.data(), layout_.size(), layout_.dims, layout_.lower.data(),
                       layout_.upper.data(), team);
      relabel_layout(layout_, order, team);
    }
    relabelled_at_ = this->iterations();
    edges_fit_ = false;
  }

  // The inverse of each point's stiffness, which the attraction to its neighbours makes: one for
  // the mean point. Not above kMostMobile, lest a point that hardly anyone is drawn to runs away.
  static std::vector<Real> preconditioner_of(const std::vector<double>& row_sums) {
    constexpr double kMostMobile = 4;
    const auto n = static_cast<double>(row_sums.size());
    std::vector<Real> result(row_sums.size());
    std::ranges::transform(row_sums, result.begin(), [n](double sum) {
      return static_cast<Real>(1 / std::max(n * sum, 1 / kMostMobile));
    });
    return result;
  }

  // The learning rate that is used for one that was asked for. With N / exaggeration, rate times
  // stiffness is 4 for a point whose neighbours are where it is, about the most at which momentum
  // close to 1 is stable. Modes that are stiffer still, up to twice, bear it because neighbours
  // keep a distance, which weakens their attraction; there is no room for more.
  double bearable(double learning_rate, double exaggeration) {
    const double most = static_cast<double>(layout_.size()) / exaggeration;
    // Beyond rounding.
    if (learning_rate <= 1.0001 * most) {
      return learning_rate;
    }
    this->restraint_.lowered_rate = std::max(this->restraint_.lowered_rate, most);
    return most;
  }

  double step(const Phase& phase, double part, ThreadTeam& team) {
    const Step step("update", this->seconds_.update);
    UpdateParameters<Real> parameters{};
    // A step in y of -learning_rate times the gradient, divided by the unit.
    const double unit = output_kernel_.unit();
    const double gradient_factor = 4 * output_kernel_.gradient_scale() / unit;
    const double exaggeration = phase.exaggeration.at(part);
    double learning_rate = phase.learning_rate.at(part);
    if (phase.rule == StepRule::heavy_ball) {
      learning_rate = bearable(learning_rate, exaggeration);
    }
    parameters.rule = phase.rule;
    parameters.attraction_scale =
        static_cast<Real>(std::min(gradient_factor * exaggeration, kLargestFactor));
    parameters.repulsion_scale = static_cast<Real>(-gradient_factor / std::max(z_, kSmallestZ));
    parameters.learning_rate = static_cast<Real>(std::min(learning_rate, kLargestFactor));
    parameters.momentum = static_cast<Real>(phase.momentum.value_or(friction_.momentum()));
    parameters.max_step = static_cast<Real>(std::min(phase.max_step / unit, kLongestStep));
    pull_tethers(layout_, own_, tethers_, parameters.attraction_scale, forces_, team);
    move_points(layout_, own_, parameters, forces_, sums_, team);
    known_ = processes_.size() == 1 ? Known::all : Known::own;
    gather_sums();
    const UpdateTotals totals = finish_step(layout_, sums_);
    if (friction_.adapt(totals.last_work, totals.next_work) && !phase.momentum) {
      ++this->restraint_.braked;
    }
    this->restraint_.turned += totals.turned;
    ++this->restraint_.iterations;
    this->iterations_.fetch_add(1, std::memory_order_relaxed);
    ++this->by_method_[static_cast<int>(repulsion_.used())];
    return unit * totals.gradient_norm;
  }

  // Guards the division when points have flown so far apart that Z vanishes.
  static constexpr double kSmallestZ = 1e-30;
  // No map is so large; steps up to this keep squared distances within float for as long as anyone
  // iterates.
  static constexpr double kLongestStep = 1e6;
  // Keeps the product of exaggeration, learning rate and force within float whatever the user asks
  // for.
  static constexpr double kLargestFactor = 1e15;

  Communicator& processes_;
  Rows own_;
  OutputKernel output_kernel_;
  Edges<Real> edges_;
  bool edges_fit_ = false; // edges_ has the present numbering
  Size relabelled_at_ = -1;
  Size evaluated_at_ = -1; // the number of iterations at which the forces were computed
  Layout<Real> layout_;
  // Whose positions are in the layout: others' may be those of an earlier iteration.
  enum class Known { own, own_and_halo, all };
  Known known_ = Known::all;
  Halo<Real> halo_;
  bool halo_fits_ = false; // halo_ is that of edges_
  ChosenRepulsion<Real> repulsion_;
  Forces<Real> forces_;
  double z_ = 0;
  RowSums sums_;                     // of whichever pass was the last
  std::vector<Real> preconditioner_; // of each row of P
  Tethers<Real> tethers_;
  Friction friction_;
};

} // namespace

template <typename Real>
std::unique_ptr<Optimizer<Real>> make_optimizer(JointRows<Real>& P, const Real* initial, int dims,
                                                const RepulsionOptions& options,
                                                Communicator& processes, ThreadTeam& team) {
  if (dims < 1) {
    throw std::invalid_argument("an embedding has at least 1 dimension");
  }
  return std::make_unique<LayoutOptimizer<Real>>(P, initial, dims, options, processes, team);
}

template std::unique_ptr<Optimizer<float>> make_optimizer(JointRows<float>&, const float*, int,
                                                          const RepulsionOptions&, Communicator&,
                                                          ThreadTeam&);
template std::unique_ptr<Optimizer<double>> make_optimizer(JointRows<double>&, const double*, int,
                                                           const RepulsionOptions&, Communicator&,
                                                           ThreadTeam&);

} // namespace acctsne
