// Products of matrices: factors are packed so that a tile reads both from the first to the last.
#include "linear/product.hpp"

#include "kernels/dispatch.hpp"

#include <algorithm>

namespace acctsne {
namespace {

// Steps in depth after which a tile is written: a right panel of so many stays in the first cache
// beside the left ones that pass by (benchmarks/frame.py, docs/tuning.md).
constexpr Size kDepth = 192;

// Packs columns from `first` on, as many as a tile has, with zeros for those beyond the last.
template <typename Real>
void pack_right(const LinearKernels<Real>& kernels, const MatrixView<Real>& from, Size step,
                Size depth, Size first, Real* to) {
  const Size width = kernels.tile_columns;
  const Size count = std::min(width, from.columns - first);
  const Real* begin = from.numbers + step * from.row_stride + first * from.column_stride;
  if (count == width && from.row_stride == 1) {
    kernels.pack_transposed(begin, from.column_stride, depth, to);
    return;
  }
  for (Size k = 0; k < depth; ++k, to += width) {
    const Real* row = begin + k * from.row_stride;
    if (from.column_stride == 1) {
      std::copy_n(row, count, to);
    } else {
      for (Size c = 0; c < count; ++c) {
        to[c] = row[c * from.column_stride];
      }
    }
    std::fill(to + count, to + width, Real(0));
  }
}

} // namespace

template <typename Real>
void LeftFactor<Real>::pack(const MatrixView<Real>& from) {
  rows_ = from.rows;
  depth_ = from.columns;
  const Size tile = kernels_->tile_rows;
  numbers_.resize(chunk_count(rows_, tile) * tile * depth_);
  for (Size first = 0; first < rows_; first += tile) {
    const Size count = std::min(tile, rows_ - first);
    Real* to = numbers_.data() + first * depth_;
    for (Size k = 0; k < depth_; ++k, to += tile) {
      const Real* column = from.numbers + first * from.row_stride + k * from.column_stride;
      for (Size r = 0; r < count; ++r) {
        to[r] = column[r * from.row_stride];
      }
      std::fill(to + count, to + tile, Real(0));
    }
  }
}

template <typename Real>
void add_product(const LeftFactor<Real>& left, const MatrixView<Real>& right, Real* product,
                 Size stride, ProductScratch<Real>& scratch, Part part) {
  const LinearKernels<Real>& linear = left.kernels();
  const Size tile_rows = linear.tile_rows;
  const Size tile_columns = linear.tile_columns;
  scratch.panel.resize(kDepth * tile_columns);
  scratch.tile.resize(tile_rows * tile_columns);
  Real* panel = scratch.panel.data();
  Real* tile = scratch.tile.data();
  for (Size column = 0; column < right.columns; column += tile_columns) {
    const Size columns = std::min(tile_columns, right.columns - column);
    const Size last_row =
        part == Part::upper ? std::min(left.rows(), column + columns) : left.rows();
    for (Size step = 0; step < left.depth(); step += kDepth) {
      const Size depth = std::min(kDepth, left.depth() - step);
      pack_right(linear, right, step, depth, column, panel);
      for (Size row = 0; row < last_row; row += tile_rows) {
        const Size rows = std::min(tile_rows, left.rows() - row);
        Real* to = product + row * stride + column;
        if (rows == tile_rows && columns == tile_columns) {
          linear.multiply_tile(left.panel(row, step), panel, depth, to, stride);
          continue;
        }
        std::fill_n(tile, tile_rows * tile_columns, Real(0));
        linear.multiply_tile(left.panel(row, step), panel, depth, tile, tile_columns);
        for (Size r = 0; r < rows; ++r) {
          for (Size c = 0; c < columns; ++c) {
            to[r * stride + c] += tile[r * tile_columns + c];
          }
        }
      }
    }
  }
}

template <typename Real>
void add_product(const LeftFactor<Real>& left, const MatrixView<Real>& right, Real* product,
                 Size stride, ThreadTeam& team) {
  // Whole tiles, and so much work that a thread is worth waking.
  constexpr Size kTerms = 1 << 20;
  const Size tile = left.kernels().tile_columns;
  const Size terms = std::max<Size>(1, left.rows() * left.depth() * tile);
  const Size grain = tile * std::max<Size>(1, kTerms / terms);
  std::vector<ProductScratch<Real>> scratch(at(team.size()));
  parallel_for(team, right.columns, grain, [&](Size begin, Size end, int worker) {
    MatrixView<Real> columns = right;
    columns.numbers += begin * right.column_stride;
    columns.columns = end - begin;
    add_product(left, columns, product + begin, stride, scratch[at(worker)]);
  });
}

void complete_symmetric(double* matrix, Size size) {
  for (Size row = 1; row < size; ++row) {
    for (Size column = 0; column < row; ++column) {
      matrix[row * size + column] = matrix[column * size + row];
    }
  }
}

#define ACCTSNE_PRODUCTS_OF(Real)                                                                  \
  template class LeftFactor<Real>;                                                                 \
  template void add_product(const LeftFactor<Real>&, const MatrixView<Real>&, Real*, Size,         \
                            ProductScratch<Real>&, Part);                                          \
  template void add_product(const LeftFactor<Real>&, const MatrixView<Real>&, Real*, Size,         \
                            ThreadTeam&);
ACCTSNE_PRODUCTS_OF(float)
ACCTSNE_PRODUCTS_OF(double)
#undef ACCTSNE_PRODUCTS_OF

} // namespace acctsne
