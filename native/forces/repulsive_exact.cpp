// Step 6, repulsive forces, every pair: rows in parallel, SIMD over all points
// (kernels/repulsive_exact-inl.hpp). The range is cut at the row's own point, so that no self term
// ever enters a sum.
#include "forces/repulsive_exact.hpp"

#include "kernels/dispatch.hpp"

#include <algorithm>

namespace acctsne {

template <typename Real>
void ExactRepulsion<Real>::take_points(const Real* points, Size count, ThreadTeam& team) {
  count_ = count;
  const Size stride = count + kernels().all_pairs.of<Real>().lanes;
  coordinates_.resize(static_cast<std::size_t>(stride * dims_));
  axes_.resize(static_cast<std::size_t>(dims_));
  for (int axis = 0; axis < dims_; ++axis) {
    Real* values = coordinates_.data() + axis * stride;
    axes_[static_cast<std::size_t>(axis)] = values;
    parallel_for(team, count, 65536, [&](Size begin, Size end) {
      for (Size i = begin; i < end; ++i) {
        values[i] = points[i * dims_ + axis];
      }
    });
  }
}

template <typename Real>
double ExactRepulsion<Real>::at(const Real* y, Real* force) const {
  std::vector<double> sums(axes_.size());
  const double z = kernels().all_pairs.of<Real>().range(dims_, exponent_)(
      dims_, axes_.data(), 0, count_, y, static_cast<Real>(exponent_), sums.data());
  for (std::size_t axis = 0; axis < sums.size(); ++axis) {
    force[axis] = static_cast<Real>(sums[axis]);
  }
  return z;
}

template <typename Real>
template <typename RowOf>
double ExactRepulsion<Real>::run(const Real* points, Size count, Size rows, RowOf&& row_of,
                                 Real* force, double* z, ThreadTeam& team) {
  take_points(points, count, team);
  sums_.resize(static_cast<std::size_t>(rows * dims_));
  const auto kernel = kernels().all_pairs.of<Real>().range(dims_, exponent_);
  const auto exponent = static_cast<Real>(exponent_);
  // About a million pairs a task.
  const Size rows_per_chunk = std::clamp<Size>(1'000'000 / std::max<Size>(count, 1), 1, 1024);
  return parallel_sum(team, rows, rows_per_chunk, partials_, [&](Size begin, Size end) {
    double z_sum = 0;
    for (Size r = begin; r < end; ++r) {
      const Size i = row_of(r);
      const Real* y = points + i * dims_;
      double* sums = sums_.data() + r * dims_;
      std::fill_n(sums, dims_, 0.0);
      const double row_z = kernel(dims_, axes_.data(), 0, i, y, exponent, sums) +
                           kernel(dims_, axes_.data(), i + 1, count, y, exponent, sums);
      for (int axis = 0; axis < dims_; ++axis) {
        force[r * dims_ + axis] = static_cast<Real>(sums[axis]);
      }
      if (z != nullptr) {
        z[r] = row_z;
      }
      z_sum += row_z;
    }
    return z_sum;
  });
}

template <typename Real>
double ExactRepulsion<Real>::forces(const Real* points, Size count, std::span<const PointId> rows,
                                    Real* force, double* z, ThreadTeam& team) {
  return run(
      points, count, static_cast<Size>(rows.size()),
      [&](Size r) { return static_cast<Size>(rows[static_cast<std::size_t>(r)]); }, force, z, team);
}

template <typename Real>
double ExactRepulsion<Real>::forces(const Real* points, Size count, Real* force, ThreadTeam& team) {
  return run(points, count, count, [](Size r) { return r; }, force, nullptr, team);
}

template class ExactRepulsion<float>;
template class ExactRepulsion<double>;

} // namespace acctsne
