// Step 6, repulsive forces, every pair: rows in parallel, SIMD over all points
// (kernels/repulsive_exact-inl.hpp). The range is cut at the row's own point, so that no self term
// ever enters a sum.
#include "forces/repulsive_exact.hpp"

#include "kernels/dispatch.hpp"

#include <algorithm>

namespace acctsne {

template <typename Real, int Dims>
template <typename RowOf>
double ExactRepulsion<Real, Dims>::run(const Real* points, Size count, Size rows, RowOf&& row_of,
                                       Real* force, double* z, ThreadTeam& team) {
  const Real* axes[Dims];
  for (int axis = 0; axis < Dims; ++axis) {
    std::vector<Real>& values = axes_[axis];
    values.resize(static_cast<std::size_t>(count));
    parallel_for(team, count, 65536, [&](Size begin, Size end) {
      for (Size i = begin; i < end; ++i) {
        values[static_cast<std::size_t>(i)] = points[i * Dims + axis];
      }
    });
    axes[axis] = values.data();
  }

  const auto kernel = kernels().of<Real>().repulsive(exponent_).range[Dims - 1];
  const auto exponent = static_cast<Real>(exponent_);
  // About a million pairs a task.
  const Size rows_per_chunk = std::clamp<Size>(1'000'000 / std::max<Size>(count, 1), 1, 1024);
  return parallel_sum(team, rows, rows_per_chunk, partials_, [&](Size begin, Size end) {
    double z_sum = 0;
    for (Size r = begin; r < end; ++r) {
      const Size i = row_of(r);
      const Real* y = points + i * Dims;
      double sums[Dims] = {};
      const double row_z =
          kernel(axes, 0, i, y, exponent, sums) + kernel(axes, i + 1, count, y, exponent, sums);
      for (int axis = 0; axis < Dims; ++axis) {
        force[r * Dims + axis] = static_cast<Real>(sums[axis]);
      }
      if (z != nullptr) {
        z[r] = row_z;
      }
      z_sum += row_z;
    }
    return z_sum;
  });
}

template <typename Real, int Dims>
double ExactRepulsion<Real, Dims>::forces(const Real* points, Size count,
                                          std::span<const PointId> rows, Real* force, double* z,
                                          ThreadTeam& team) {
  return run(
      points, count, static_cast<Size>(rows.size()),
      [&](Size r) { return static_cast<Size>(rows[static_cast<std::size_t>(r)]); }, force, z, team);
}

template <typename Real, int Dims>
double ExactRepulsion<Real, Dims>::forces(const Real* points, Size count, Real* force,
                                          ThreadTeam& team) {
  return run(points, count, count, [](Size r) { return r; }, force, nullptr, team);
}

template class ExactRepulsion<float, 1>;
template class ExactRepulsion<float, 2>;
template class ExactRepulsion<float, 3>;
template class ExactRepulsion<double, 1>;
template class ExactRepulsion<double, 2>;
template class ExactRepulsion<double, 3>;

} // namespace acctsne
