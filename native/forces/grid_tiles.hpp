// The tiles of a grid: strips of columns, cut along y. A tile is charged by one process.
#pragma once

#include "acctsne/communicator.hpp"
#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"

#include <algorithm>
#include <bit>

namespace acctsne {

// Columns of a strip, a power of two. At least 4, so that a point's four columns are in two strips
// at most.
inline constexpr Size kStripColumns = 8;

// Few enough that their counts are a small part of what is exchanged.
inline constexpr Size kMostTilesInStrip = 32;

struct GridTiles {
  Size nodes[2] = {};
  Size strips = 0;
  Size per_strip = 0; // tiles
  Size rows = 0;      // of a tile, a power of two

  GridTiles() = default;
  explicit GridTiles(const Size (&grid_nodes)[2])
      : nodes{grid_nodes[0], grid_nodes[1]}, strips(chunk_count(nodes[0], kStripColumns)),
        rows(static_cast<Size>(
            std::bit_ceil(at(std::max(kStripColumns, chunk_count(nodes[1], kMostTilesInStrip)))))) {
    per_strip = chunk_count(nodes[1], rows);
  }

  Size count() const { return strips * per_strip; }
  // What a tile has of the grid, which ends within the last ones.
  Rows columns_of(Size tile) const {
    const Size first = tile / per_strip * kStripColumns;
    return {first, first + kStripColumns < nodes[0] ? first + kStripColumns : nodes[0]};
  }
  Rows rows_of(Size tile) const {
    const Size first = tile % per_strip * rows;
    return {first, first + rows < nodes[1] ? first + rows : nodes[1]};
  }
};

} // namespace acctsne
