// The gradient descent over all steps: what one phase of the schedule does, and the state that
// outlives it.
#pragma once

#include "acctsne/communicator.hpp"
#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "affinities/joint_rows.hpp"
#include "forces/repulsive.hpp"
#include "optimize/friction.hpp"
#include "optimize/phase.hpp"

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace acctsne {

struct Report {
  Size iteration;       // the last one finished, counted from 0 since the optimiser was made
  double kl_divergence; // of the positions that it led to
  double gradient_norm; // of the gradient that it followed
};

// What has kept a run from swinging or flying apart since it was last forgotten.
struct Restraint {
  Size iterations = 0; // since then
  Size braked = 0;     // iterations in which the objective rose, so that friction did
  double turned = 0;   // steps of single points that turned round and grew, so that their gain fell
  double lowered_rate = 0; // the largest learning rate that was used in place of a larger one
};

// Bytes that left this process, by what they were.
struct SentBytes {
  Size relabel = 0;   // points that went to another process, with their edges; lists of halos
  Size halo = 0;      // positions that others' attraction needs
  Size charges = 0;   // points and tiles of a grid that is charged together
  Size positions = 0; // those of all points, for the tree, all pairs, or whoever asks for them
  Size sums = 0;      // of Z, the update and KL divergence, and whether to stop
};

// Sees the reports that the phase asks for; returning true ends the phase.
using Observer = std::function<bool(const Report&)>;

// All that later optimisers, of however many processes, need to go on with the same bits. Arrays of
// points are in the order of P's rows, and each process has those of its own rows.
template <typename Real>
struct OptimizerState {
  std::vector<Real> points;
  std::vector<Real> updates;
  std::vector<Real> gains;
  std::vector<Real> mean;     // one value an axis, as the last update summed it
  std::vector<PointId> order; // of own numbers the rows; it decides the order of sums
  std::vector<Real> kept;     // positions that the repulsion still depends on, or none
  Size iterations = 0;
  Size relabelled_at = -1; // the iteration that made the numbering
  Friction::State friction;
};

// One embedding being optimised, by one process or several: then each has an optimiser of its own,
// and all call the same functions in the same order.
template <typename Real>
class Optimizer {
public:
  virtual ~Optimizer() = default;

  // Runs a phase; returns false if the observer ended it. Cancelled passes through with the layout
  // of the last finished iteration in place.
  virtual bool run(const Phase& phase, ThreadTeam& team, const Observer& observer) = 0;
  // Forgets momentum, friction and gains.
  virtual void reset_momentum() = 0;
  // Scales a layout whose points are closer to its mean than `spread`, in root mean square, so that
  // they are as far; leaves wider ones alone, and those in which points are held. Lengths are in
  // the output kernel's unit.
  virtual void widen(double spread, ThreadTeam& team) = 0;
  // Holds the points where `fixed` (one value a row of P) is not zero; an empty span lets all go.
  virtual void hold(std::span<const std::uint8_t> fixed) = 0;
  // Draws every point to a target of its own: the objective gains 2 / N times the sum of weight
  // times squared distance, whatever the exaggeration, so that weight 1 is as stiff as the
  // attraction of a mean row of P. `targets` is rows of P x dims, `weights` one value a row, zero
  // for none; empty spans let all go. A state does not keep tethers.
  virtual void tether(std::span<const Real> targets, std::span<const Real> weights) = 0;
  virtual OptimizerState<Real> state() = 0;
  // Goes on from a state of optimisers with the same P and options. Throws std::invalid_argument in
  // all processes, and changes nothing, if it cannot be one.
  virtual void restore(const OptimizerState<Real>& state) = 0;
  // Forces and Z at the present positions.
  virtual void evaluate(ThreadTeam& team) = 0;
  // KL divergence at the present positions, with the method's own Z.
  virtual double kl_divergence(ThreadTeam& team) = 0;
  // That of a map with all points in one place, which says nothing about P.
  virtual double kl_of_one_place() const = 0;
  // How far log p lies below the largest of its row, on average: it tells of how many dimensions
  // the data are (Optimizer.is_flat in Python).
  virtual double mean_drop() const = 0;
  // How far apart neighbours are: the work of the attraction if all went to the mean, over the mean
  // squared distance from it. 0 in one place, about 1 where all is at random.
  virtual double disorder(ThreadTeam& team) = 0;

  // points x dims, in the order of P's rows.
  virtual std::vector<Real> points() = 0;
  // As of the last evaluation, unnormalised: the gradient is 4 (attractive - repulsive / z),
  // whatever the output kernel.
  virtual std::vector<Real> attractive() = 0;
  virtual std::vector<Real> repulsive() = 0;
  virtual double z() const = 0;

  Size iterations() const { return iterations_.load(std::memory_order_relaxed); }
  const StepSeconds& seconds() const { return seconds_; }
  const SentBytes& sent() const { return sent_; }
  const Restraint& restraint() const { return restraint_; }
  void forget_restraint() { restraint_ = {}; }
  // Finished iterations by the method that computed their repulsion.
  Size iterations_by(Method method) const { return by_method_[static_cast<int>(method)]; }

protected:
  std::atomic<Size> iterations_{0}; // finished ones; another thread may look
  StepSeconds seconds_;
  SentBytes sent_;
  Restraint restraint_;
  Size by_method_[kMethods] = {};
};

// `initial` is rows of P x dims. Any number of dims, if the method is all pairs or automatic. P is
// read here and not needed afterwards; every process gives its own rows, and all of `initial`. The
// communicator must live as long as the optimiser.
template <typename Real>
std::unique_ptr<Optimizer<Real>> make_optimizer(JointRows<Real>& P, const Real* initial, int dims,
                                                const RepulsionOptions& options,
                                                Communicator& processes, ThreadTeam& team);

} // namespace acctsne
