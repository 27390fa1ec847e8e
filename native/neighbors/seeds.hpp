// Which points the lists of the exact search have begun with, lest they be offered again.
#pragma once

#include "acctsne/large_array.hpp"
#include "neighbors/cells.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace acctsne {

// Nearest cells whose points the lists begin with (benchmarks/neighbors.py, docs/tuning.md).
inline constexpr Size kSeedCells = 6;

class Seeds {
public:
  Seeds(Size query_cells, Size cells, Size panel_points, int threads)
      : cells_(std::min(kSeedCells, cells)), panel_points_(panel_points),
        chosen_(at(query_cells * cells_)),
        bits_(make_large_array<std::uint64_t>(at(query_cells * cells_ * words()), threads)) {}

  // Chosen for each cell of queries.
  Size cells() const { return cells_; }
  void choose(Size cell, const Size* chosen) {
    std::copy_n(chosen, cells_, chosen_.begin() + static_cast<std::ptrdiff_t>(cell * cells_));
  }

  // A bit for each point of a panel, a word for each query; kCellPoints words for each panel of the
  // chosen cells, one after the other. Undefined until they are written.
  std::uint64_t* bits(Size cell) { return bits_.get() + cell * cells_ * words(); }

  // What the queries of one cell began with in another.
  class Known {
  public:
    bool any() const { return bits_ != nullptr; }
    // Both counted within their cells.
    bool holds(Size query, Size point) const {
      return any() &&
             (bits_[point / panel_points_ * kCellPoints + query] >> point % panel_points_ & 1) != 0;
    }

  private:
    friend class Seeds;
    const std::uint64_t* bits_ = nullptr;
    Size panel_points_ = 0;
  };
  Known known(Size cell, Size visited) const {
    Known known;
    const Size* chosen = chosen_.data() + cell * cells_;
    const Size at = std::find(chosen, chosen + cells_, visited) - chosen;
    if (at < cells_) {
      known.bits_ = bits_.get() + (cell * cells_ + at) * words();
      known.panel_points_ = panel_points_;
    }
    return known;
  }

private:
  Size words() const { return kCellPoints / panel_points_ * kCellPoints; } // for a pair of cells

  Size cells_;
  Size panel_points_;
  std::vector<Size> chosen_;
  LargeArray<std::uint64_t> bits_;
};

} // namespace acctsne
