// A process needs the blocks that its points reach into or near, each of these the charges around
// it, and all processes the whole coarse grid, of which each makes the parts of some blocks.
#include "forces/shared_blocks.hpp"

#include <algorithm>

namespace acctsne {
namespace {

// A coefficient of the coarse grid is made of charges up to so many nodes away, so that who makes
// those of a block has to have the charges around it, too.
constexpr Size kCoarseReach = 3 * kCoarseness;

constexpr int kNobody = -1;

} // namespace

void SharedBlocks::assign(const GridTiles& tiles, std::span<const std::uint32_t> counts,
                          int processes) {
  processes_ = processes;
  points_.assign(at(blocks_.total() * processes), 0);
  const Size numbers = static_cast<Size>(counts.size()) / processes;
  for (int process = 0; process < processes; ++process) {
    for (Size tile = 0; tile < tiles.count(); ++tile) {
      const std::uint32_t count = counts[at(process * numbers + tile)];
      if (count > 0) {
        blocks_.for_near(tiles.columns_of(tile), tiles.rows_of(tile), kCoarseReach,
                         [&](Size block) { points_[at(block * processes + process)] += count; });
      }
    }
  }
  coarseners_.clear();
  for (Size block = 0; block < blocks_.total(); ++block) {
    const auto first = points_.begin() + block * processes;
    const auto most = std::max_element(first, first + processes);
    coarseners_.push_back(*most > 0 ? static_cast<int>(most - first) : kNobody);
  }
}

bool SharedBlocks::needs(int process, const GridTiles& tiles, Size tile) const {
  bool found = false;
  blocks_.for_near(tiles.columns_of(tile), tiles.rows_of(tile), blocks_.margin,
                   [&](Size block) { found = found || points_in(block, process) > 0; });
  return found;
}

std::vector<Size> SharedBlocks::needed_by(int process) const {
  std::vector<Size> blocks;
  for (Size block = 0; block < blocks_.total(); ++block) {
    if (points_in(block, process) > 0) {
      blocks.push_back(block);
    }
  }
  return blocks;
}

std::vector<Size> SharedBlocks::coarsened_by(int process) const {
  std::vector<Size> blocks;
  for (Size block = 0; block < blocks_.total(); ++block) {
    if (coarseners_[at(block)] == process) {
      blocks.push_back(block);
    }
  }
  return blocks;
}

template <typename Real>
void SharedBlocks::gather_coarse(Grid<Real>& coarse, Communicator& processes) const {
  std::vector<std::vector<Size>> blocks;
  std::vector<Size> ends;
  Size next = 0;
  // Calls body(coarse nodes, how many) for the columns of a process's parts.
  const auto for_columns = [&](int process, auto&& body) {
    for (const Size block : blocks[at(process)]) {
      const Rows columns = blocks_.coarse_columns_of(block, coarse.nodes(0));
      const Rows rows = blocks_.coarse_rows_of(block, coarse.nodes(1));
      for (Size x = columns.begin; x < columns.end; ++x) {
        body(coarse.column(x) + rows.begin, rows.end - rows.begin);
      }
    }
  };
  for (int process = 0; process < processes.size(); ++process) {
    blocks.push_back(coarsened_by(process));
    for_columns(process, [&](const Real*, Size count) { next += count; });
    ends.push_back(next);
  }
  std::vector<Real> parts(at(next));
  const auto start_of = [&](int process) {
    return process > 0 ? parts.data() + ends[at(process - 1)] : parts.data();
  };
  Real* to = start_of(processes.rank());
  for_columns(processes.rank(),
              [&](const Real* nodes, Size count) { to = std::copy_n(nodes, count, to); });
  gather_items(processes, parts.data(), ends);
  for (int process = 0; process < processes.size(); ++process) {
    const Real* from = start_of(process);
    for_columns(process, [&](Real* nodes, Size count) {
      std::copy_n(from, count, nodes);
      from += count;
    });
  }
}

template void SharedBlocks::gather_coarse(Grid<float>&, Communicator&) const;
template void SharedBlocks::gather_coarse(Grid<double>&, Communicator&) const;

} // namespace acctsne
