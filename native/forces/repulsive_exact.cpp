// Step 6, repulsive forces, every pair: rows in parallel, SIMD over all points
// (kernels/repulsive_exact-inl.hpp). The range is cut at the row's own point, so that no self term
// ever enters a sum.
#include "forces/repulsive_exact.hpp"

#include "kernels/dispatch.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace acctsne {
namespace {

// Calibrated by benchmarks/methods.py, as the costs of the other methods are.
constexpr double kPair = 0.25;
constexpr double kAnyPower = 4; // how much longer with another exponent than 1

// About a million pairs a task. A power of two, so that it divides a block of rows.
Size rows_per_task(Size points) {
  const Size rows = std::clamp<Size>(1'000'000 / std::max<Size>(points, 1), 1, 1024);
  return static_cast<Size>(std::bit_floor(static_cast<std::uint64_t>(rows)));
}

} // namespace

template <typename Real>
AllPairs<Real>::AllPairs(int dims, double exponent)
    : dims_(dims), exponent_(exponent), kernels_(kernels().all_pairs.of<Real>()) {}

template <typename Real>
void AllPairs<Real>::take_points(const Real* points, Size count, ThreadTeam& team) {
  count_ = count;
  const Size stride = count + kernels_.lanes;
  coordinates_.resize(acctsne::at(stride * dims_));
  axes_.resize(acctsne::at(dims_));
  for (int axis = 0; axis < dims_; ++axis) {
    Real* values = coordinates_.data() + axis * stride;
    axes_[acctsne::at(axis)] = values;
    parallel_for(team, count, 65536, [&](Size begin, Size end) {
      for (Size i = begin; i < end; ++i) {
        values[i] = points[i * dims_ + axis];
      }
    });
  }
}

template <typename Real>
double AllPairs<Real>::at(const Real* u, Size left_out, Real* force) const {
  const auto range = kernels_.range(dims_, exponent_);
  const auto exponent = static_cast<Real>(exponent_);
  constexpr int kUsualDims = 8;
  double usual[kUsualDims] = {};
  std::vector<double> many(dims_ > kUsualDims ? acctsne::at(dims_) : 0);
  double* sums = dims_ > kUsualDims ? many.data() : usual;
  const double z = left_out < 0
                       ? range(dims_, axes_.data(), 0, count_, u, exponent, sums)
                       : range(dims_, axes_.data(), 0, left_out, u, exponent, sums) +
                             range(dims_, axes_.data(), left_out + 1, count_, u, exponent, sums);
  for (int axis = 0; axis < dims_; ++axis) {
    force[axis] = static_cast<Real>(sums[axis]);
  }
  return z;
}

template <typename Real>
double ExactRepulsion<Real>::cost(const MapView<Real>& map) const {
  const auto n = static_cast<double>(map.count);
  return (exponent_ == 1 ? 1 : kAnyPower) * kPair * n * n;
}

template <typename Real>
void ExactRepulsion<Real>::forces(const MapView<Real>& map, Communicator& processes, Real* force,
                                  RowSums& z, StepSeconds& seconds, ThreadTeam& team) {
  const Step step("repulsive", seconds.repulsive);
  const Rows own = rows_of(processes, map.count);
  pairs_.take_points(map.points, map.count, team);
  z_of_rows_.resize(at(map.count));
  parallel_for(team, own, rows_per_task(map.count), [&](Size begin, Size end) {
    for (Size i = begin; i < end; ++i) {
      z_of_rows_[at(i)] = pairs_.at(map.points + i * dims_, i, force + i * dims_);
    }
  });
  add_rows(z, z_of_rows_.data(), own, team);
}

template <typename Real>
void ExactRepulsion<Real>::forces(const Real* points, Size count, std::span<const PointId> rows,
                                  Real* force, double* z, ThreadTeam& team) {
  pairs_.take_points(points, count, team);
  const auto listed = static_cast<Size>(rows.size());
  parallel_for(team, listed, rows_per_task(count), [&](Size begin, Size end) {
    for (Size r = begin; r < end; ++r) {
      const Size i = rows[at(r)];
      z[r] = pairs_.at(points + i * dims_, i, force + r * dims_);
    }
  });
}

namespace {

template <typename Real>
class ExactField final : public RepulsiveField<Real> {
public:
  ExactField(int dims, const MapView<Real>& map, double exponent, ThreadTeam& team)
      : pairs_(dims, exponent) {
    pairs_.take_points(map.points, map.count, team);
  }

  double at(const Real* u, Real* force) const override { return pairs_.at(u, -1, force); }

private:
  AllPairs<Real> pairs_;
};

template <typename Real>
constexpr MethodMakers<Real> makers = {
    .repulsion = [](int dims, const RepulsionOptions& options) -> std::unique_ptr<Repulsion<Real>> {
      return std::make_unique<ExactRepulsion<Real>>(dims, options.output_kernel.exponent);
    },
    .field = [](int dims, const MapView<Real>& map, const RepulsionOptions& options,
                ThreadTeam& team) -> std::unique_ptr<RepulsiveField<Real>> {
      return std::make_unique<ExactField<Real>>(dims, map, options.output_kernel.exponent, team);
    },
};

} // namespace

constinit const Both<MethodMakers> kExactMakers = {makers<float>, makers<double>};

template class AllPairs<float>;
template class AllPairs<double>;
template class ExactRepulsion<float>;
template class ExactRepulsion<double>;

} // namespace acctsne
