// The points of the approximate search, packed for the tile kernel.
#include "neighbors/panels.hpp"

#include "kernels/dispatch.hpp"

#include <cmath>

namespace acctsne {
namespace {

// Where tiles may be given up. Doubling each time; not tuned further.
constexpr Size kStages[kMostStages - 1] = {16, 32, 64};

} // namespace

CellPanels::CellPanels(const Cells& cells, const Projection& projection, ThreadTeam& team)
    : dims_(projection.dims), width_(kernels().search.panel_points), stages_(kStages, dims_),
      values_(make_large_array<float>(at(cells.count() * kCellPoints * dims_), team.size())),
      residuals_(at(cells.count() * kCellPoints), 0.0f) {
  team.for_chunks(cells.count(), [&](Size cell, int) { pack(cells, projection, cell); });
}

void CellPanels::copy_coordinates(Size place, float* to) const {
  const Size first = place / width_ * width_;
  for (Size d = 0; d < dims_; ++d) {
    to[d] = panel(first)[d * width_ + place - first];
  }
}

void CellPanels::pack(const Cells& cells, const Projection& projection, Size cell) {
  for (Size place = cells.begin(cell); place < (cell + 1) * kCellPoints; ++place) {
    const Size first = place / width_ * width_;
    float* to = values_.get() + first * dims_ + place - first;
    if (place >= cells.rows()) {
      for (Size d = 0; d < dims_; ++d) {
        to[d * width_] = 0;
      }
      continue;
    }
    const float* from = projection.row(cells.row(place));
    double squared_residual = projection.squared_norms[cells.row(place)];
    for (Size d = 0; d < dims_; ++d) {
      to[d * width_] = from[d];
      squared_residual -= static_cast<double>(from[d]) * static_cast<double>(from[d]);
    }
    residuals_[at(place)] = static_cast<float>(std::sqrt(std::max(squared_residual, 0.0)));
  }
}

} // namespace acctsne
