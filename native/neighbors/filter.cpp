// The points of the exact search as integers of 16 bits, packed for the tile kernel.
#include "neighbors/filter.hpp"

#include "kernels/dispatch.hpp"

#include <cmath>
#include <limits>

namespace acctsne {
namespace {

// Where tiles may be given up (benchmarks/neighbors.py, docs/tuning.md).
constexpr Size kStages[kMostStages - 1] = {24, 56, 104};

// A point's coordinates are counted in a unit of its own, so that a few large points do not spoil
// it for all: its norm is so many of them. One less than 16 bits hold, for a norm that is rounded
// off.
constexpr double kUnits = 32766;

} // namespace

FilterPanels::FilterPanels(const Cells& cells, const Projection& projection, ThreadTeam& team)
    : dims_((projection.dims + 1) / 2 * 2), width_(kernels().search.panel_points),
      stages_(kStages, dims_),
      // Each coordinate is off by half a unit at most, so a product of points by no more than
      // sqrt(dims) / 2 units times the other's norm, for both.
      slack_(cells.slack() + 1.01 * std::sqrt(static_cast<double>(dims_)) / kUnits),
      values_(make_large_array<std::int16_t>(at(cells.count() * kCellPoints * dims_), team.size())),
      units_(at(cells.count() * kCellPoints), 0.0f),
      // Infinite where there is no point, which keeps it out of every result.
      norms_(units_.size(), std::numeric_limits<float>::infinity()),
      residuals_(units_.size() * at(stages_.count), 0.0f) {
  team.for_chunks(cells.count(), [&](Size cell, int) { pack(cells, projection, cell); });
}

FilterPanel FilterPanels::panel(Size place) const {
  return {values_.get() + place * dims_, units_.data() + place, norms_.data() + place,
          residuals_.data() + place * stages_.count, nullptr};
}

void FilterPanels::copy_query(Size place, std::int16_t* coordinates) const {
  const Size first = place / width_ * width_;
  const std::int16_t* from = values_.get() + first * dims_ + 2 * (place - first);
  for (Size d = 0; d < dims_; d += 2) {
    std::copy_n(from + d * width_, 2, coordinates + d);
  }
}

void FilterPanels::set_query(Size place, const std::int16_t* coordinates, FilterQueries& queries,
                             int q) const {
  const Size first = place / width_ * width_;
  queries.coordinates[q] = coordinates;
  queries.factors[q] = -2 * units_[at(place)];
  queries.norms[q] = norms_[at(place)];
  for (int stage = 0; stage < stages_.count; ++stage) {
    queries.residual_factors[stage][q] =
        -2 * panel(first).residuals[stage * width_ + place - first];
  }
}

void FilterPanels::pack(const Cells& cells, const Projection& projection, Size cell) {
  std::int16_t* values = values_.get() + cell * kCellPoints * dims_;
  std::fill(values, values + kCellPoints * dims_, std::int16_t{0});
  for (Size place = cells.begin(cell); place < cells.end(cell); ++place) {
    const Size first = place / width_ * width_;
    const Size lane = place - first;
    const float* from = projection.row(cells.row(place));
    const double norm2 = projection.squared_norms[cells.row(place)];
    const double unit = std::sqrt(norm2) / kUnits;
    units_[at(place)] = static_cast<float>(unit);
    norms_[at(place)] = static_cast<float>(norm2 * (1 - slack_));
    std::int16_t* to = values_.get() + first * dims_ + 2 * lane;
    float* residuals = residuals_.data() + first * stages_.count + lane;
    double rest2 = norm2;
    int stage = 0;
    for (Size d = 0; d < dims_; ++d) {
      const double value = d < projection.dims ? static_cast<double>(from[d]) : 0.0;
      to[d / 2 * 2 * width_ + d % 2] =
          unit > 0 ? static_cast<std::int16_t>(std::lrint(value / unit)) : std::int16_t{0};
      rest2 -= value * value;
      if (d + 1 == stages_.dims[stage]) {
        residuals[stage++ * width_] = static_cast<float>(std::sqrt(std::max(rest2, 0.0)));
      }
    }
  }
}

} // namespace acctsne
