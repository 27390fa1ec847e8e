// The points of the exact search in the order of their cells, as integers of 16 bits, packed for
// the tile kernel: half the bytes of floats, and twice the products in an instruction.
#pragma once

#include "acctsne/large_array.hpp"
#include "kernels/search.hpp"
#include "neighbors/cells.hpp"

#include <vector>

namespace acctsne {

class FilterPanels {
public:
  FilterPanels(const Cells& cells, const Projection& projection, ThreadTeam& team);

  Size width() const { return width_; }
  Size dims() const { return dims_; }
  const TileStages& stages() const { return stages_; }

  // The panel that begins at `place`.
  FilterPanel panel(Size place) const;

  // Makes query q of a tile of the point at `place`, its coordinates having been copied.
  void copy_query(Size place, std::int16_t* coordinates) const;
  void set_query(Size place, const std::int16_t* coordinates, FilterQueries& queries, int q) const;

private:
  void pack(const Cells& cells, const Projection& projection, Size cell);

  Size dims_; // even: a lane of the kernel takes two at a time
  Size width_;
  TileStages stages_;
  double slack_;
  LargeArray<std::int16_t> values_;
  std::vector<float> units_;
  std::vector<float> norms_; // squared, lowered by the slack, so that bounds built from them hold
  std::vector<float> residuals_;
};

} // namespace acctsne
