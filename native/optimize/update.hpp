// The layout that is optimised, and what is done to it as a whole; above all the last pass of an
// iteration, which moves every point and gathers what the next iteration needs to know.
#pragma once

#include "acctsne/communicator.hpp"
#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "kernels/update.hpp"

#include <span>
#include <vector>

namespace acctsne {

// Where the points are and how they got there. Points are numbered for locality: point i is row
// order[i] of the user's data.
template <typename Real>
struct Layout {
  explicit Layout(int dims_) : dims(dims_) {}

  int dims;
  std::vector<Real> points;  // these four: points x dims
  std::vector<Real> updates; // the last step of each coordinate
  std::vector<Real> gains;
  std::vector<Real> preconditioner;
  std::vector<PointId> order;
  std::vector<std::uint8_t> fixed; // not zero where a point is held in place; empty if none is
  std::vector<Real> lower;         // these three: one value an axis
  std::vector<Real> upper;
  std::vector<Real> mean;

  Size size() const { return static_cast<Size>(order.size()); }
};

// What a step sums over all points.
struct UpdateTotals {
  double gradient_norm;
  double last_work; // these three as in UpdateSums
  double next_work;
  double turned;
};

// Starts a layout from the given positions, at rest, with a preconditioner of 1.
template <typename Real>
void start_layout(Layout<Real>& layout, const Real* points, Size count);

// Sums the positions of own points and finds their bounds, for finish_step() to take.
template <typename Real>
void measure_points(const Layout<Real>& layout, Rows own, RowSums& sums);

// Multiplies all positions by a positive factor.
template <typename Real>
void scale_layout(Layout<Real>& layout, double factor);

// Numbers the points anew: point i becomes what point order[i] was.
template <typename Real>
void relabel_layout(Layout<Real>& layout, const std::vector<PointId>& order, ThreadTeam& team);

// Values of each point, in the order of the user's rows.
template <typename Real>
std::vector<Real> in_row_order(const Layout<Real>& layout, const std::vector<Real>& values);

// Takes the preconditioner of each row of P: how far a point moves, other things being equal.
template <typename Real>
void precondition_layout(Layout<Real>& layout, std::span<const Real> of_rows);

// Forgets momentum and gains, as scikit-learn does after early exaggeration.
template <typename Real>
void reset_momentum(Layout<Real>& layout);

// Holds the points where `fixed`, in the order of the user's rows, is not zero; an empty span lets
// all go.
template <typename Real>
void hold_points(Layout<Real>& layout, std::span<const std::uint8_t> fixed);

// The forces on all points, of which a process knows those on its own.
template <typename Real>
struct Forces {
  std::vector<Real> attractive; // both: points x dims
  std::vector<Real> repulsive;
};

// Springs from points to places, both in the order of the user's rows; empty if there are none.
template <typename Real>
struct Tethers {
  std::vector<Real> targets; // points x dims
  std::vector<Real> weights; // of each point, 0 for no tether
};

// Adds the tethers' pull, 4 weight / N times the way from the target, to the forces on own rows,
// divided by the scale that the attraction will be multiplied by.
template <typename Real>
void pull_tethers(const Layout<Real>& layout, Rows own, const Tethers<Real>& tethers,
                  Real attraction_scale, Forces<Real>& forces, ThreadTeam& team);

// One fused pass over own rows: gradient, gains, momentum, step clip, recentring, and the sums that
// finish_step() takes. The positions are centred on the mean that they had before the step, which
// keeps them within one step's mean of the origin. Held points stay exactly where they are, so that
// there is no recentring then; their forces are set to zero.
template <typename Real>
void move_points(Layout<Real>& layout, Rows own, UpdateParameters<Real> parameters,
                 Forces<Real>& forces, RowSums& sums, ThreadTeam& team);

// Takes mean and bounds of the moved points from the sums over all rows.
template <typename Real>
UpdateTotals finish_step(Layout<Real>& layout, RowSums& sums);

} // namespace acctsne
