// Takes charges from the fine grid to the coarse one, for the far part of the kernel, and the
// potential back.
//
// By the two-scale relation of splines, a coarse coefficient's part in the fine ones is exact
// (kernels/two_scale-inl.hpp): charges go along x by sums of weighted lines, then along y, and the
// potential the other way round.
#include "forces/coarse_grid.hpp"

#include <algorithm>

namespace acctsne {
namespace {

// Lines of the coarse grid that so many fine columns are made of: a spline reaches over four.
Size lines_of(Size columns) {
  return columns / kCoarseness + 3;
}

// Fine columns that a thread adds the potential to: few enough for the shares of many threads to be
// even, enough that few lines are refined twice.
constexpr Size kColumnsPerChunk = 4 * kCoarseness;

// The four lines that a fine column is made of, and their weights. `line(x)` is the one of a coarse
// column.
template <typename Real>
struct FourLines {
  const Real* lines[4];
  Real weights[4];

  template <typename Line>
  FourLines(Size fine_column, Line&& line) {
    for (Size i = 0; i < 4; ++i) {
      lines[i] = line(fine_column / kCoarseness + 3 - i);
      weights[i] = TwoScale<Real>::kWeights[kCoarseness * i + fine_column % kCoarseness];
    }
  }
};

} // namespace

template <typename Real>
void CoarseGrid<Real>::prepare(const Grid<Real>& fine, double step, const GridBlocks* blocks,
                               ThreadTeam& team) {
  const Size nodes[2] = {chunk_count(fine.nodes(0), kCoarseness) + 3,
                         chunk_count(fine.nodes(1), kCoarseness) + 3};
  convolution_.prepare(KernelPart::far, nodes, kCoarseness * step, grid_, team);
  // A line with the zeros around it.
  line_size_ = fine.stride() + 8 * kCoarseness;
  room_ = lines_of(kColumnsPerChunk) * line_size_;
  if (blocks != nullptr) {
    blocks_ = *blocks;
    room_ = std::max(line_size_, lines_of(blocks_.side) * blocks_.side);
  }
  lines_.resize(std::max(lines_.size(), at(team.size() * room_)));
}

template <typename Real>
void CoarseGrid<Real>::charge(const Grid<Real>& fine, ThreadTeam& team) {
  team.for_chunks(grid_.nodes(0), [&](Size x, int worker) {
    charge_column(fine, x, {0, grid_.nodes(1)}, worker);
    // The transform reads whole vectors.
    std::fill(grid_.column(x) + grid_.nodes(1), grid_.column(x) + grid_.stride(), Real(0));
  });
}

template <typename Real>
void CoarseGrid<Real>::charge(const Grid<Real>& fine, std::span<const Size> blocks,
                              ThreadTeam& team) {
  grid_.clear(team);
  team.for_chunks(static_cast<Size>(blocks.size()), [&](Size i, int worker) {
    const Rows columns = blocks_.coarse_columns_of(blocks[at(i)], grid_.nodes(0));
    const Rows rows = blocks_.coarse_rows_of(blocks[at(i)], grid_.nodes(1));
    for (Size x = columns.begin; x < columns.end; ++x) {
      charge_column(fine, x, rows, worker);
    }
  });
}

// Some rows of a column.
template <typename Real>
void CoarseGrid<Real>::charge_column(const Grid<Real>& fine, Size x, Rows rows, int worker) {
  Real* line = lines_.data() + worker * room_;
  const Size first = kCoarseness * (rows.begin - 3); // of the line's nodes
  const Size begin = std::max<Size>(first, 0);
  const Size end = std::min(kCoarseness * rows.end, fine.nodes(1));
  const Real* columns[4 * kCoarseness];
  Real weights[4 * kCoarseness];
  int count = 0;
  for (Size i = 3; i < 4 * kCoarseness; ++i) {
    const Size from = kCoarseness * (x - 3) + i;
    if (from >= 0 && from < fine.nodes(0)) {
      columns[count] = fine.column(from) + begin;
      weights[count++] = TwoScale<Real>::kWeights[i];
    }
  }
  std::fill_n(line, line_size_, Real(0));
  const Size length = chunk_count(end - begin, grid_kernels_.lanes) * grid_kernels_.lanes;
  grid_kernels_.add_lines(columns, weights, count, length, line + begin - first);
  grid_kernels_.coarsen_line(line + 3 * kCoarseness, rows.end - rows.begin,
                             grid_.column(x) + rows.begin);
}

template <typename Real>
void CoarseGrid<Real>::add_to(Grid<Real>& fine, ThreadTeam& team) {
  parallel_for(team, fine.nodes(0), kColumnsPerChunk, [&](Size begin, Size end, int worker) {
    const Size first = begin / kCoarseness;
    const Size last = std::min(first + lines_of(kColumnsPerChunk), grid_.nodes(0));
    const auto line = [&](Size x) {
      return lines_.data() + worker * room_ + (x - first) * line_size_;
    };
    for (Size x = first; x < last; ++x) {
      grid_kernels_.refine_line(grid_.column(x), grid_.nodes(1) - 3, line(x));
    }
    for (Size x = begin; x < end; ++x) {
      const FourLines<Real> four(x, line);
      grid_kernels_.add_lines(four.lines, four.weights, 4, fine.stride(), fine.column(x));
    }
  });
}

template <typename Real>
void CoarseGrid<Real>::add_to(Grid<Real>& fine, Size block, int worker) {
  const Rows columns = blocks_.columns_of(block);
  const Rows rows = blocks_.rows_of(block);
  const Size first = columns.begin / kCoarseness;
  const Size last = std::min(first + lines_of(blocks_.side), grid_.nodes(0));
  // Fours of fine nodes; beyond the grid they are not wanted.
  const Size fours =
      std::min(rows.end / kCoarseness, grid_.nodes(1) - 3) - rows.begin / kCoarseness;
  Real* lines = lines_.data() + worker * room_;
  const auto line = [&](Size x) { return lines + (x - first) * blocks_.side; };
  for (Size x = first; x < last; ++x) {
    grid_kernels_.refine_line(grid_.column(x) + rows.begin / kCoarseness, fours, line(x));
    std::fill(line(x) + fours * kCoarseness, line(x) + blocks_.side, Real(0));
  }
  for (Size x = columns.begin; x < std::min(columns.end, fine.nodes(0)); ++x) {
    const FourLines<Real> four(x, line);
    grid_kernels_.add_lines(four.lines, four.weights, 4, blocks_.side, fine.column(x) + rows.begin);
  }
}

template class CoarseGrid<float>;
template class CoarseGrid<double>;

} // namespace acctsne
