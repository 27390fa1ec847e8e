// A wide grid in square blocks. The near part of the kernel ends within a margin, so that a block's
// near potential takes the charges of the block and its margin alone.
#pragma once

#include "acctsne/communicator.hpp"
#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "forces/fft_plan.hpp"
#include "forces/grid_kernel.hpp"
#include "kernels/grid.hpp"

#include <algorithm>
#include <cmath>

namespace acctsne {

struct GridBlocks {
  Size side = 0;       // nodes, a multiple of 16
  Size margin = 0;     // nodes, on each side
  Size count[2] = {0}; // along x and y; the last ones may reach beyond the grid

  GridBlocks() = default;
  GridBlocks(const Size (&nodes)[2], double step) {
    // What a coefficient of the coarse grid takes part in reaches not as far.
    constexpr Size kLeast = 16;
    const auto reach = static_cast<Size>(std::ceil(kNearReach / step));
    margin = chunk_count(std::max(reach, kLeast), 8) * 8;
    // Three quarters of a window's side are the block's: 192 of 256 at the default step. Larger
    // ones are no faster (docs/tuning.md), and leave processes more nodes to send each other.
    side = fft_length(8 * margin) - 2 * margin;
    count[0] = chunk_count(nodes[0], side);
    count[1] = chunk_count(nodes[1], side);
  }

  Size total() const { return count[0] * count[1]; }
  Size length() const { return side + 2 * margin; } // of a side with its margins
  Rows columns_of(Size block) const {
    const Size first = block / count[1] * side;
    return {first, first + side};
  }
  Rows rows_of(Size block) const {
    const Size first = block % count[1] * side;
    return {first, first + side};
  }
  // What belongs to a block of a coarse grid, all of whose nodes belong to one.
  Rows coarse_columns_of(Size block, Size coarse_nodes) const {
    return coarse_part(block / count[1], count[0], coarse_nodes);
  }
  Rows coarse_rows_of(Size block, Size coarse_nodes) const {
    return coarse_part(block % count[1], count[1], coarse_nodes);
  }

  // Calls body(block) for those that come nearer to an area of the grid than so many nodes.
  template <typename Body>
  void for_near(Rows columns, Rows rows, Size distance, Body&& body) const {
    const auto near = [&](Rows range, int axis) {
      return Rows{std::max<Size>(range.begin - distance, 0) / side,
                  std::min((range.end - 1 + distance) / side + 1, count[axis])};
    };
    const Rows along_x = near(columns, 0);
    const Rows along_y = near(rows, 1);
    for (Size x = along_x.begin; x < along_x.end; ++x) {
      for (Size y = along_y.begin; y < along_y.end; ++y) {
        body(x * count[1] + y);
      }
    }
  }

private:
  Rows coarse_part(Size place, Size places, Size coarse_nodes) const {
    const Size nodes = side / kCoarseness;
    return {place * nodes, place + 1 < places ? (place + 1) * nodes : coarse_nodes};
  }
};

} // namespace acctsne
