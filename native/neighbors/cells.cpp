// Cells by repeated halving: a range of points is divided at the median of the coordinate that
// varies most in it, among the leading ones, until it fits a cell. Halves are cut at multiples of
// the cell size, so that all cells but the last are full.
#include "neighbors/cells.hpp"

#include <cmath>
#include <numeric>

namespace acctsne {
namespace {

// Coordinates that are considered for a cut; those behind vary less.
constexpr Size kCutDims = 16;
// Cells are themselves divided down to runs of this many points, so that the queries of a tile and
// the points of a panel lie close: a tile can only be given up if all of it is far.
constexpr Size kFinestPoints = 8;
// Points that decide which one varies most.
constexpr Size kSample = 512;

Size widest_dim(const float* coordinates, Size dims, const PointId* ids, Size count) {
  const Size considered = std::min(dims, kCutDims);
  const Size step = std::max<Size>(1, count / kSample);
  Size widest = 0;
  double most = -1;
  for (Size d = 0; d < considered; ++d) {
    double sum = 0;
    double squares = 0;
    double seen = 0;
    for (Size i = 0; i < count; i += step) {
      const auto value = static_cast<double>(coordinates[ids[i] * dims + d]);
      sum += value;
      squares += value * value;
      ++seen;
    }
    const double variance = squares / seen - (sum / seen) * (sum / seen);
    if (variance > most) {
      most = variance;
      widest = d;
    }
  }
  return widest;
}

// Splits ids in two; returns where the second part begins.
Size split(const float* coordinates, Size dims, PointId* ids, Size count) {
  const Size unit = count > kCellPoints ? kCellPoints : kFinestPoints;
  const Size middle = chunk_count(count, unit) / 2 * unit;
  const Size d = widest_dim(coordinates, dims, ids, count);
  std::nth_element(ids, ids + middle, ids + count, [&](PointId a, PointId b) {
    const float left = coordinates[a * dims + d];
    const float right = coordinates[b * dims + d];
    return left < right || (left == right && a < b);
  });
  return middle;
}

void divide(const float* coordinates, Size dims, PointId* ids, Size count) {
  if (count <= kFinestPoints) {
    return;
  }
  const Size middle = split(coordinates, dims, ids, count);
  divide(coordinates, dims, ids, middle);
  divide(coordinates, dims, ids + middle, count - middle);
}

std::vector<PointId> cell_order(const float* coordinates, Size rows, Size dims, ThreadTeam& team) {
  const Step step("neighbours: cells");
  std::vector<PointId> order(at(rows));
  std::iota(order.begin(), order.end(), PointId{0});
  // A few levels of cuts, each part of a level in parallel, then the parts to their end.
  struct Range {
    Size begin;
    Size end;
  };
  std::vector<Range> ranges{{0, rows}};
  constexpr std::size_t kTasks = 64;
  while (ranges.size() < kTasks && rows / static_cast<Size>(ranges.size()) > 4 * kCellPoints) {
    std::vector<Range> halves(2 * ranges.size());
    parallel_for(team, static_cast<Size>(ranges.size()), 1, [&](Size r, Size) {
      const Range range = ranges[at(r)];
      const Size middle = range.begin + split(coordinates, dims, order.data() + range.begin,
                                              range.end - range.begin);
      halves[at(2 * r)] = {range.begin, middle};
      halves[at(2 * r + 1)] = {middle, range.end};
    });
    ranges.swap(halves);
  }
  parallel_for(team, static_cast<Size>(ranges.size()), 1, [&](Size r, Size) {
    const Range range = ranges[at(r)];
    divide(coordinates, dims, order.data() + range.begin, range.end - range.begin);
  });
  return order;
}

} // namespace

Cells::Cells(const Projection& projection, Size rows, Size features, ThreadTeam& team)
    : rows_(rows), dims_(projection.dims),
      slack_(4.0 * (static_cast<double>(features + dims_) + 64) * 0x1p-24),
      order_(cell_order(projection.coordinates, rows, dims_, team)),
      centres_(at(chunk_count(rows, kCellPoints) * dims_)),
      radii_(at(chunk_count(rows, kCellPoints))), roundings_(radii_.size()) {
  team.for_chunks(count(), [&](Size cell, int) { measure(projection, cell); });
}

void Cells::measure(const Projection& projection, Size cell) {
  std::vector<double> mean(at(dims_), 0.0);
  const auto points = static_cast<double>(end(cell) - begin(cell));
  for (Size place = begin(cell); place < end(cell); ++place) {
    const float* from = projection.row(row(place));
    for (Size d = 0; d < dims_; ++d) {
      mean[at(d)] += static_cast<double>(from[d]) / points;
    }
  }
  float* centre = centres_.data() + cell * dims_;
  std::copy(mean.begin(), mean.end(), centre);
  double radius2 = 0;
  double largest_norm = 0;
  for (Size place = begin(cell); place < end(cell); ++place) {
    const float* from = projection.row(row(place));
    double distance2 = 0;
    for (Size d = 0; d < dims_; ++d) {
      const double apart = static_cast<double>(from[d]) - static_cast<double>(centre[d]);
      distance2 += apart * apart;
    }
    radius2 = std::max(radius2, distance2);
    largest_norm = std::max(largest_norm, projection.squared_norms[row(place)]);
  }
  // Coordinates are off by a part of the point's norm, and distances of centres by a part of
  // theirs, which is at most twice the largest norm.
  const auto at = static_cast<std::size_t>(cell);
  roundings_[at] = slack_ * std::sqrt(largest_norm);
  radii_[at] = std::sqrt(radius2) * (1 + 1e-5) + roundings_[at];
}

} // namespace acctsne
