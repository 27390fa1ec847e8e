// The last pass of an iteration: move every point, and gather what the next iteration needs to
// know.
#pragma once

#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "kernels/kernels.hpp"

#include <span>
#include <vector>

namespace acctsne {

// Where the points are and how they got there. All arrays are points x Dims. Points are numbered
// for locality: point i is row order[i] of the user's data.
template <typename Real, int Dims>
struct Layout {
  std::vector<Real> points;
  std::vector<Real> updates; // the last step of each coordinate
  std::vector<Real> gains;
  std::vector<PointId> order;
  std::vector<std::uint8_t> fixed; // not zero where a point is held in place; empty if none is
  Real lower[Dims];
  Real upper[Dims];
  Real mean[Dims];

  Size size() const { return static_cast<Size>(points.size()) / Dims; }
};

// Starts a layout from the given positions, at rest.
template <typename Real, int Dims>
void start_layout(Layout<Real, Dims>& layout, const Real* points, Size count);

// Numbers the points anew: point i becomes what point order[i] was.
template <typename Real, int Dims>
void relabel_layout(Layout<Real, Dims>& layout, const std::vector<PointId>& order,
                    ThreadTeam& team);

// Values of each point, in the order of the user's rows.
template <typename Real, int Dims>
std::vector<Real> in_row_order(const Layout<Real, Dims>& layout, const std::vector<Real>& values);

// Forgets momentum and gains, as scikit-learn does after early exaggeration.
template <typename Real, int Dims>
void rest_layout(Layout<Real, Dims>& layout);

// Holds the points where `fixed`, in the order of the user's rows, is not zero; an empty span lets
// all go.
template <typename Real, int Dims>
void hold_points(Layout<Real, Dims>& layout, std::span<const std::uint8_t> fixed);

// One fused pass: gradient, gains, momentum, step clip, recentring, bounds. Returns the gradient's
// norm. The positions are centred on the mean that they had before the step, which keeps them
// within one step's mean of the origin. Held points stay exactly where they are, so that there is
// no recentring then; their forces are set to zero.
template <typename Real, int Dims>
double update_layout(Layout<Real, Dims>& layout, UpdateParameters<Real> parameters,
                     Real* attractive, Real* repulsive, std::vector<UpdateSums>& partials,
                     ThreadTeam& team);

} // namespace acctsne
