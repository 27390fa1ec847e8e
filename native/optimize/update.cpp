// The update pass: chunks of points in parallel (kernels/update-inl.hpp), their sums joined in
// chunk order.
#include "optimize/update.hpp"

#include "kernels/dispatch.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace acctsne {
namespace {

constexpr Size kPointsPerChunk = 4096;

template <typename Real, int Dims>
void join_sums(Layout<Real, Dims>& layout, const std::vector<UpdateSums>& partials) {
  for (int axis = 0; axis < Dims; ++axis) {
    double position = 0;
    double lower = partials.front().lower[axis];
    double upper = partials.front().upper[axis];
    for (const UpdateSums& part : partials) {
      position += part.position[axis];
      lower = std::min(lower, part.lower[axis]);
      upper = std::max(upper, part.upper[axis]);
    }
    layout.mean[axis] = static_cast<Real>(position / static_cast<double>(layout.size()));
    layout.lower[axis] = static_cast<Real>(lower);
    layout.upper[axis] = static_cast<Real>(upper);
  }
}

} // namespace

template <typename Real, int Dims>
void start_layout(Layout<Real, Dims>& layout, const Real* points, Size count) {
  layout.points.assign(points, points + count * Dims);
  layout.order.resize(static_cast<std::size_t>(count));
  std::iota(layout.order.begin(), layout.order.end(), PointId{0});
  rest_layout(layout);
  UpdateSums sums;
  for (int axis = 0; axis < Dims; ++axis) {
    sums.lower[axis] = static_cast<double>(points[axis]);
    sums.upper[axis] = static_cast<double>(points[axis]);
    for (Size i = 0; i < count; ++i) {
      const auto value = static_cast<double>(points[i * Dims + axis]);
      sums.position[axis] += value;
      sums.lower[axis] = std::min(sums.lower[axis], value);
      sums.upper[axis] = std::max(sums.upper[axis], value);
    }
  }
  join_sums(layout, {sums});
}

template <typename Real, int Dims>
void relabel_layout(Layout<Real, Dims>& layout, const std::vector<PointId>& order,
                    ThreadTeam& team) {
  const ThreadTeam::Uninterrupted to_the_end(team);
  const Size count = layout.size();
  std::vector<Real> moved(layout.points.size());
  for (std::vector<Real>* values : {&layout.points, &layout.updates, &layout.gains}) {
    parallel_for(team, count, kPointsPerChunk, [&](Size begin, Size end) {
      for (Size i = begin; i < end; ++i) {
        const Real* from = values->data() + Size{order[static_cast<std::size_t>(i)]} * Dims;
        std::copy_n(from, Dims, moved.data() + i * Dims);
      }
    });
    values->swap(moved);
  }
  std::vector<PointId> rows(layout.order.size());
  std::vector<std::uint8_t> fixed(layout.fixed.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto from = static_cast<std::size_t>(order[i]);
    rows[i] = layout.order[from];
    if (!fixed.empty()) {
      fixed[i] = layout.fixed[from];
    }
  }
  layout.order.swap(rows);
  layout.fixed.swap(fixed);
}

template <typename Real, int Dims>
std::vector<Real> in_row_order(const Layout<Real, Dims>& layout, const std::vector<Real>& values) {
  std::vector<Real> rows(values.size());
  for (std::size_t i = 0; i < layout.order.size(); ++i) {
    std::copy_n(values.data() + i * Dims, Dims,
                rows.data() + static_cast<std::size_t>(layout.order[i]) * Dims);
  }
  return rows;
}

template <typename Real, int Dims>
void rest_layout(Layout<Real, Dims>& layout) {
  layout.updates.assign(layout.points.size(), Real(0));
  layout.gains.assign(layout.points.size(), Real(1));
}

template <typename Real, int Dims>
void hold_points(Layout<Real, Dims>& layout, std::span<const std::uint8_t> fixed) {
  layout.fixed.resize(fixed.size());
  for (std::size_t i = 0; i < fixed.size(); ++i) {
    layout.fixed[i] = fixed[static_cast<std::size_t>(layout.order[i])];
    if (layout.fixed[i] != 0) {
      std::fill_n(layout.updates.data() + i * Dims, Dims, Real(0));
    }
  }
}

template <typename Real, int Dims>
double update_layout(Layout<Real, Dims>& layout, UpdateParameters<Real> parameters,
                     Real* attractive, Real* repulsive, std::vector<UpdateSums>& partials,
                     ThreadTeam& team) {
  const ThreadTeam::Uninterrupted to_the_end(team);
  const bool some_fixed = !layout.fixed.empty();
  for (int axis = 0; axis < Dims; ++axis) {
    parameters.shift[axis] = some_fixed ? Real(0) : layout.mean[axis];
  }
  const Size count = layout.size();
  partials.resize(static_cast<std::size_t>(chunk_count(count, kPointsPerChunk)));
  const auto kernel = kernels().of<Real>().update_points[Dims - 1];
  parallel_for(team, count, kPointsPerChunk, [&](Size begin, Size end) {
    for (Size i = begin; some_fixed && i < end; ++i) {
      if (layout.fixed[static_cast<std::size_t>(i)] != 0) {
        std::fill_n(attractive + i * Dims, Dims, Real(0));
        std::fill_n(repulsive + i * Dims, Dims, Real(0));
      }
    }
    kernel(parameters, begin, end, attractive, repulsive, layout.points.data(),
           layout.updates.data(), layout.gains.data(),
           partials[static_cast<std::size_t>(begin / kPointsPerChunk)]);
  });
  join_sums(layout, partials);
  double squared_gradient = 0;
  for (const UpdateSums& part : partials) {
    squared_gradient += part.squared_gradient;
  }
  return std::sqrt(squared_gradient);
}

#define ACCTSNE_INSTANTIATE(Real, Dims)                                                            \
  template void start_layout(Layout<Real, Dims>&, const Real*, Size);                              \
  template void relabel_layout(Layout<Real, Dims>&, const std::vector<PointId>&, ThreadTeam&);     \
  template std::vector<Real> in_row_order(const Layout<Real, Dims>&, const std::vector<Real>&);    \
  template void rest_layout(Layout<Real, Dims>&);                                                  \
  template void hold_points(Layout<Real, Dims>&, std::span<const std::uint8_t>);                   \
  template double update_layout(Layout<Real, Dims>&, UpdateParameters<Real>, Real*, Real*,         \
                                std::vector<UpdateSums>&, ThreadTeam&);
ACCTSNE_INSTANTIATE(float, 1)
ACCTSNE_INSTANTIATE(float, 2)
ACCTSNE_INSTANTIATE(float, 3)
ACCTSNE_INSTANTIATE(double, 1)
ACCTSNE_INSTANTIATE(double, 2)
ACCTSNE_INSTANTIATE(double, 3)

} // namespace acctsne
