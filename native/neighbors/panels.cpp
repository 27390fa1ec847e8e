#include "neighbors/panels.hpp"

#include "kernels/dispatch.hpp"

#include <cmath>
#include <limits>

namespace acctsne {

CellPanels::CellPanels(const Projection& projection, Size rows, Size features, ThreadTeam& team)
    : dims_(projection.dims), rows_(rows), width_(kernels().panel_points),
      order_(cell_order(projection.coordinates, rows, dims_, team)),
      cells_(chunk_count(rows, kCellPoints)),
      values_(new float[static_cast<std::size_t>(cells_ * kCellPoints * dims_)]),
      norms_(static_cast<std::size_t>(cells_ * kCellPoints),
             std::numeric_limits<float>::infinity()),
      rests_(static_cast<std::size_t>(cells_ * kCellPoints * kFilterStages), 0.0f),
      centers_(static_cast<std::size_t>(cells_ * dims_)), radii_(static_cast<std::size_t>(cells_)),
      roundings_(static_cast<std::size_t>(cells_)) {
  set_stages();
  // Rounding of the centred and rotated coordinates and of the product, relative to |q|^2 +
  // |p|^2.
  slack_ = 4.0 * (static_cast<double>(features + dims_) + 64) * 0x1p-24;
  team.for_chunks(cells_, [&](Size cell, int) { pack_cell(projection, cell); });
}

void CellPanels::copy_query(Size place, float* coordinates, float& norm, float* rests) const {
  const Size first = place / width_ * width_;
  const Size lane = place - first;
  for (Size d = 0; d < dims_; ++d) {
    coordinates[d] = panel(first)[d * width_ + lane];
  }
  norm = norms(first)[lane];
  for (int stage = 0; stage < kFilterStages; ++stage) {
    rests[stage] = this->rests(first)[stage * width_ + lane];
  }
}

void CellPanels::set_stages() {
  // Where tiles may be given up. Doubling each time; not tuned further.
  const Size wanted[kFilterStages] = {16, 32, 64, dims_};
  for (int stage = 0; stage < kFilterStages; ++stage) {
    stages_[stage] = std::min(wanted[stage], dims_);
  }
}

void CellPanels::pack_cell(const Projection& projection, Size cell) {
  std::vector<double> center(static_cast<std::size_t>(dims_), 0.0);
  const Size count = end(cell) - begin(cell);
  for (Size place = begin(cell); place < end(cell); ++place) {
    const float* from = projection.coordinates + Size{row(place)} * dims_;
    for (Size d = 0; d < dims_; ++d) {
      center[static_cast<std::size_t>(d)] += static_cast<double>(from[d]);
    }
  }
  for (Size d = 0; d < dims_; ++d) {
    centers_[static_cast<std::size_t>(cell * dims_ + d)] =
        static_cast<float>(center[static_cast<std::size_t>(d)] / static_cast<double>(count));
  }
  double radius2 = 0;
  double largest_norm = 0;
  for (Size place = begin(cell); place < (cell + 1) * kCellPoints; ++place) {
    const Size first = place / width_ * width_;
    const Size lane = place - first;
    float* panel = values_.get() + first * dims_;
    if (place >= rows_) {
      for (Size d = 0; d < dims_; ++d) {
        panel[d * width_ + lane] = 0; // its infinite norm keeps it out of every result
      }
      continue;
    }
    const PointId id = row(place);
    const float* from = projection.coordinates + Size{id} * dims_;
    const double norm = projection.squared_norms[id];
    double rest = norm;
    double distance = 0;
    int stage = 0;
    for (Size d = 0; d < dims_; ++d) {
      panel[d * width_ + lane] = from[d];
      const auto value = static_cast<double>(from[d]);
      rest -= value * value;
      const double apart =
          value - static_cast<double>(centers_[static_cast<std::size_t>(cell * dims_ + d)]);
      distance += apart * apart;
      for (; stage < kFilterStages && d + 1 == stages_[stage]; ++stage) {
        rests_[static_cast<std::size_t>(first * kFilterStages + stage * width_ + lane)] =
            static_cast<float>(std::sqrt(std::max(rest, 0.0)));
      }
    }
    radius2 = std::max(radius2, distance);
    largest_norm = std::max(largest_norm, norm);
    norms_[static_cast<std::size_t>(place)] = static_cast<float>(norm * (1 - slack_));
  }
  // Coordinates are off by a part of the point's norm, and distances of centres by a part of
  // theirs, which is at most twice the largest norm.
  const auto at = static_cast<std::size_t>(cell);
  roundings_[at] = slack_ * std::sqrt(largest_norm);
  radii_[at] = std::sqrt(radius2) * (1 + 1e-5) + roundings_[at];
}

} // namespace acctsne
