// The layout that is optimised. The update pass does chunks of points in parallel
// (kernels/update-inl.hpp); their sums are added in the order of chunks.
#include "optimize/update.hpp"

#include "kernels/dispatch.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace acctsne {
namespace {

constexpr Size kPointsPerChunk = 1024;

} // namespace

template <typename Real>
void start_layout(Layout<Real>& layout, const Real* points, Size count) {
  const int dims = layout.dims;
  layout.points.assign(points, points + count * dims);
  layout.order.resize(at(count));
  std::iota(layout.order.begin(), layout.order.end(), PointId{0});
  for (std::vector<Real>* values : {&layout.lower, &layout.upper, &layout.mean}) {
    values->resize(at(dims));
  }
  layout.preconditioner.assign(layout.points.size(), Real(1));
  reset_momentum(layout);
  RowSums sums;
  sums.start(count, count, UpdateSums::size(dims));
  measure_points(layout, {0, count}, sums);
  finish_step(layout, sums);
}

template <typename Real>
void measure_points(const Layout<Real>& layout, Rows own, RowSums& sums) {
  const int dims = layout.dims;
  for (Size i = own.begin; i < own.end; ++i) {
    const UpdateSums chunk(sums.of_row(i), dims);
    const bool first = i % sums.grain() == 0;
    for (int axis = 0; axis < dims; ++axis) {
      const auto value = static_cast<double>(layout.points[at(i * dims + axis)]);
      chunk.position[axis] += value;
      chunk.lower[axis] = first ? value : std::min(chunk.lower[axis], value);
      chunk.upper[axis] = first ? value : std::max(chunk.upper[axis], value);
    }
  }
}

template <typename Real>
void scale_layout(Layout<Real>& layout, double factor) {
  // Rounding keeps order, so that bounds stay those of the points.
  for (std::vector<Real>* values : {&layout.points, &layout.lower, &layout.upper, &layout.mean}) {
    for (Real& value : *values) {
      value = static_cast<Real>(factor * static_cast<double>(value));
    }
  }
}

template <typename Real>
void relabel_layout(Layout<Real>& layout, const std::vector<PointId>& order, ThreadTeam& team) {
  const ThreadTeam::Uninterrupted to_the_end(team);
  const Size count = layout.size();
  const int dims = layout.dims;
  // All room is made before anything moves.
  std::vector<Real> moved(layout.points.size());
  std::vector<PointId> rows(layout.order.size());
  std::vector<std::uint8_t> fixed(layout.fixed.size());
  for (std::vector<Real>* values :
       {&layout.points, &layout.updates, &layout.gains, &layout.preconditioner}) {
    parallel_for(team, count, kPointsPerChunk, [&](Size begin, Size end) {
      for (Size i = begin; i < end; ++i) {
        const Real* from = values->data() + Size{order[at(i)]} * dims;
        std::copy_n(from, dims, moved.data() + i * dims);
      }
    });
    values->swap(moved);
  }
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

template <typename Real>
std::vector<Real> in_row_order(const Layout<Real>& layout, const std::vector<Real>& values) {
  std::vector<Real> rows(values.size());
  for (Size i = 0; i < layout.size(); ++i) {
    const Size row = layout.order[at(i)];
    std::copy_n(values.data() + i * layout.dims, layout.dims, rows.data() + row * layout.dims);
  }
  return rows;
}

template <typename Real>
void precondition_layout(Layout<Real>& layout, std::span<const Real> of_rows) {
  const auto dims = static_cast<std::size_t>(layout.dims);
  for (std::size_t i = 0; i < layout.order.size(); ++i) {
    const Real value = of_rows[at(layout.order[i])];
    std::fill_n(layout.preconditioner.data() + i * dims, dims, value);
  }
}

template <typename Real>
void reset_momentum(Layout<Real>& layout) {
  layout.updates.assign(layout.points.size(), Real(0));
  layout.gains.assign(layout.points.size(), Real(1));
}

template <typename Real>
void hold_points(Layout<Real>& layout, std::span<const std::uint8_t> fixed) {
  layout.fixed.resize(fixed.size());
  for (std::size_t i = 0; i < fixed.size(); ++i) {
    layout.fixed[i] = fixed[at(layout.order[i])];
    if (layout.fixed[i] != 0) {
      const auto dims = static_cast<std::size_t>(layout.dims);
      std::fill_n(layout.updates.data() + i * dims, dims, Real(0));
    }
  }
}

template <typename Real>
void pull_tethers(const Layout<Real>& layout, Rows own, const Tethers<Real>& tethers,
                  Real attraction_scale, Forces<Real>& forces, ThreadTeam& team) {
  if (tethers.weights.empty()) {
    return;
  }
  const ThreadTeam::Uninterrupted to_the_end(team);
  const int dims = layout.dims;
  const double scale =
      4 / static_cast<double>(layout.size()) / static_cast<double>(attraction_scale);
  parallel_for(team, own, kPointsPerChunk, [&](Size begin, Size end) {
    for (Size i = begin; i < end; ++i) {
      const Size row = layout.order[at(i)];
      const Real weight = tethers.weights[at(row)];
      if (weight == 0) {
        continue;
      }
      const Real stiffness = static_cast<Real>(scale * static_cast<double>(weight));
      const Real* target = tethers.targets.data() + row * dims;
      const Real* point = layout.points.data() + i * dims;
      Real* force = forces.attractive.data() + i * dims;
      for (int axis = 0; axis < dims; ++axis) {
        force[axis] += stiffness * (point[axis] - target[axis]);
      }
    }
  });
}

template <typename Real>
void move_points(Layout<Real>& layout, Rows own, UpdateParameters<Real> parameters,
                 Forces<Real>& forces, RowSums& sums, ThreadTeam& team) {
  const ThreadTeam::Uninterrupted to_the_end(team);
  const int dims = layout.dims;
  const bool some_fixed = !layout.fixed.empty();
  parameters.shift = some_fixed ? nullptr : layout.mean.data();
  sums.start(layout.size(), kPointsPerChunk, UpdateSums::size(dims));
  const auto kernel = kernels().update.of<Real>().update_points.of(dims);
  Real* attractive = forces.attractive.data();
  Real* repulsive = forces.repulsive.data();
  const UpdateArrays<Real> arrays = {
      .attractive = attractive,
      .repulsive = repulsive,
      .preconditioner = layout.preconditioner.data(),
      .points = layout.points.data(),
      .updates = layout.updates.data(),
      .gains = layout.gains.data(),
  };
  parallel_for(team, own, kPointsPerChunk, [&](Size begin, Size end) {
    for (Size i = begin; some_fixed && i < end; ++i) {
      if (layout.fixed[at(i)] != 0) {
        std::fill_n(attractive + i * dims, dims, Real(0));
        std::fill_n(repulsive + i * dims, dims, Real(0));
      }
    }
    kernel(dims, parameters, arrays, begin, end, {sums.of_row(begin), dims});
  });
}

template <typename Real>
UpdateTotals finish_step(Layout<Real>& layout, RowSums& sums) {
  const int dims = layout.dims;
  double* first = sums.of_row(0);
  const UpdateSums all(first, dims);
  sums.for_chunks([&](double* chunk) {
    if (chunk == first) {
      return;
    }
    const UpdateSums part(chunk, dims);
    for (int axis = 0; axis < dims; ++axis) {
      all.position[axis] += part.position[axis];
      all.lower[axis] = std::min(all.lower[axis], part.lower[axis]);
      all.upper[axis] = std::max(all.upper[axis], part.upper[axis]);
    }
    all.squared_gradient += part.squared_gradient;
    all.last_work += part.last_work;
    all.next_work += part.next_work;
    all.turned += part.turned;
  });
  for (std::size_t axis = 0; axis < layout.mean.size(); ++axis) {
    layout.mean[axis] = static_cast<Real>(all.position[axis] / static_cast<double>(layout.size()));
    layout.lower[axis] = static_cast<Real>(all.lower[axis]);
    layout.upper[axis] = static_cast<Real>(all.upper[axis]);
  }
  return {std::sqrt(all.squared_gradient), all.last_work, all.next_work, all.turned / dims};
}

#define ACCTSNE_INSTANTIATE(Real)                                                                  \
  template void start_layout(Layout<Real>&, const Real*, Size);                                    \
  template void measure_points(const Layout<Real>&, Rows, RowSums&);                               \
  template void scale_layout(Layout<Real>&, double);                                               \
  template void relabel_layout(Layout<Real>&, const std::vector<PointId>&, ThreadTeam&);           \
  template std::vector<Real> in_row_order(const Layout<Real>&, const std::vector<Real>&);          \
  template void precondition_layout(Layout<Real>&, std::span<const Real>);                         \
  template void reset_momentum(Layout<Real>&);                                                     \
  template void hold_points(Layout<Real>&, std::span<const std::uint8_t>);                         \
  template void pull_tethers(const Layout<Real>&, Rows, const Tethers<Real>&, Real, Forces<Real>&, \
                             ThreadTeam&);                                                         \
  template void move_points(Layout<Real>&, Rows, UpdateParameters<Real>, Forces<Real>&, RowSums&,  \
                            ThreadTeam&);                                                          \
  template UpdateTotals finish_step(Layout<Real>&, RowSums&);
ACCTSNE_INSTANTIATE(float)
ACCTSNE_INSTANTIATE(double)

} // namespace acctsne
