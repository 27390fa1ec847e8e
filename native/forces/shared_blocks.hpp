// Which blocks of a wide grid each of several processes needs the potential of, and what follows
// from it: which charges are sent to whom. Every process finds the same, from the counts of points
// that all have.
#pragma once

#include "acctsne/communicator.hpp"
#include "acctsne/types.hpp"
#include "forces/grid.hpp"
#include "forces/grid_blocks.hpp"
#include "forces/grid_tiles.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace acctsne {

class SharedBlocks {
public:
  void divide(const GridBlocks& blocks) { blocks_ = blocks; }

  // `counts` has for each process as many numbers as there are tiles, and more: of its points that
  // reach into the tile.
  void assign(const GridTiles& tiles, std::span<const std::uint32_t> counts, int processes);

  // Whether a process needs a tile's charges.
  bool needs(int process, const GridTiles& tiles, Size tile) const;
  // The blocks whose potential a process needs.
  std::vector<Size> needed_by(int process) const;
  // The blocks whose part of the coarse grid it makes for all: of those that have charges, each is
  // made by the process with most points there.
  std::vector<Size> coarsened_by(int process) const;

  // Completes the coarse grid by the parts that the other processes made.
  template <typename Real>
  void gather_coarse(Grid<Real>& coarse, Communicator& processes) const;

private:
  Size points_in(Size block, int process) const {
    return points_[at(block * processes_ + process)];
  }

  GridBlocks blocks_;
  int processes_ = 0;
  std::vector<Size> points_;    // blocks x processes: points in and around the block
  std::vector<int> coarseners_; // of each block: who makes its part of the coarse grid, if anybody
};

} // namespace acctsne
