// The points of the approximate search in the order of their cells, packed for the tile kernel.
#pragma once

#include "acctsne/large_array.hpp"
#include "kernels/search.hpp"
#include "neighbors/cells.hpp"

#include <vector>

namespace acctsne {

class CellPanels {
public:
  CellPanels(const Cells& cells, const Projection& projection, ThreadTeam& team);

  Size width() const { return width_; }
  const TileStages& stages() const { return stages_; }

  // Of the panel that begins at `place`: dims x width, and what lies beyond the dims.
  const float* panel(Size place) const { return values_.get() + place * dims_; }
  const float* residuals(Size place) const { return residuals_.data() + place; }

  void copy_coordinates(Size place, float* to) const;

private:
  void pack(const Cells& cells, const Projection& projection, Size cell);

  Size dims_;
  Size width_;
  TileStages stages_;
  LargeArray<float> values_;
  std::vector<float> residuals_;
};

} // namespace acctsne
