// The repulsion of a fixed map on any position: from a grid that covers the map and a margin, from
// a tree elsewhere. Both are built once.
#include "forces/field.hpp"

#include "forces/repulsive_tree.hpp"
#include "kernels/dispatch.hpp"

#include <algorithm>
#include <tuple>

namespace acctsne {
namespace {

// How far beyond the map the grid reaches: placed points seldom leave it.
constexpr double kMargin = 5;

} // namespace

template <typename Real, int Dims>
RepulsiveField<Real, Dims>::RepulsiveField(int, const Real* points, Size count,
                                           const RepulsionOptions& options, ThreadTeam& team)
    : exponent_(options.output_kernel.exponent), grid_(exponent_) {
  const double theta =
      options.method == Method::exact ? 0 : theta_for_angle(options.angle, exponent_);
  accept_.theta2 = static_cast<Real>(theta * theta);
  Real lower[Dims];
  Real upper[Dims];
  std::copy_n(points, Dims, lower);
  std::copy_n(points, Dims, upper);
  for (Size i = 0; i < count * Dims; ++i) {
    lower[i % Dims] = std::min(lower[i % Dims], points[i]);
    upper[i % Dims] = std::max(upper[i % Dims], points[i]);
  }
  tree_.build(points, count, lower, upper, team);
  tree_.summarize(points, team);
  if constexpr (Dims <= 2) {
    for (int axis = 0; axis < Dims; ++axis) {
      lower[axis] -= static_cast<Real>(kMargin);
      upper[axis] += static_cast<Real>(kMargin);
    }
    const double step = grid_step_for_error(options.force_error, exponent_);
    const bool wanted = options.method == Method::automatic || options.method == Method::fft;
    has_grid_ =
        wanted && grid_.nodes_needed(lower, upper, step) <= static_cast<double>(kMaxGridNodes);
    if (has_grid_) {
      grid_.compute_potential(points, count, lower, upper, step, team);
    }
  }
}

template <typename Real, int Dims>
double RepulsiveField<Real, Dims>::at(const Real* u, Real* force) const {
  if constexpr (Dims <= 2) {
    if (has_grid_ && grid_.covers(u)) {
      return grid_.at(u, force);
    }
  }
  const auto& kernel =
      std::get<Dims - 1>(kernels().tree.of<Real>().forces(exponent_).push_position);
  return kernel(tree_.view(), u, accept_, static_cast<Real>(exponent_), force);
}

template class RepulsiveField<float, 1>;
template class RepulsiveField<float, 2>;
template class RepulsiveField<float, 3>;
template class RepulsiveField<double, 1>;
template class RepulsiveField<double, 2>;
template class RepulsiveField<double, 3>;

} // namespace acctsne
