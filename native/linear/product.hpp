// Products of matrices, by tiles that stay in registers (kernels/linear-inl.hpp). Every number of a
// product is summed in one order, whoever computes it and however many threads there are.
#pragma once

#include "acctsne/parallel.hpp"
#include "kernels/dispatch.hpp"

#include <vector>

namespace acctsne {

// Numbers that somebody else owns, at any strides.
template <typename Real>
struct MatrixView {
  const Real* numbers;
  Size rows;
  Size columns;
  Size row_stride;
  Size column_stride = 1;

  MatrixView transposed() const { return {numbers, columns, rows, column_stride, row_stride}; }
};

// One row after the other.
template <typename Real>
MatrixView<Real> matrix(const Real* numbers, Size rows, Size columns) {
  return {numbers, rows, columns, columns};
}

// Numbers that begin with a cache line, so that no vector lies in two.
template <typename Real>
class LineAligned {
public:
  void resize(Size count) { lines_.resize(at(chunk_count(count, kNumbers))); }
  Real* data() { return reinterpret_cast<Real*>(lines_.data()); }
  const Real* data() const { return reinterpret_cast<const Real*>(lines_.data()); }

private:
  static constexpr Size kNumbers = 64 / sizeof(Real);
  struct alignas(64) Line {
    Real numbers[kNumbers];
  };
  std::vector<Line> lines_;
};

// The left factor of a product, packed as tiles take it, and the kernels that it is packed for.
template <typename Real>
class LeftFactor {
public:
  // Memory is kept from call to call.
  void pack(const MatrixView<Real>& from);

  Size rows() const { return rows_; }
  Size depth() const { return depth_; }
  const LinearKernels<Real>& kernels() const { return *kernels_; }
  // The numbers of the tile that begins at a row, from a step in depth on.
  const Real* panel(Size row, Size step) const {
    return numbers_.data() + row * depth_ + step * kernels_->tile_rows;
  }

private:
  Size rows_ = 0;
  Size depth_ = 0;
  const LinearKernels<Real>* kernels_ = &acctsne::kernels().linear.of<Real>();
  LineAligned<Real> numbers_;
};

// Which part of a product is wanted: of one that is known to be symmetric, rows from the first to
// that of the column are enough.
enum class Part { whole, upper };

// Memory that products need, for one thread.
template <typename Real>
struct ProductScratch {
  LineAligned<Real> panel;
  LineAligned<Real> tile;
};

// Adds left times right to the product, whose rows are `stride` apart.
template <typename Real>
void add_product(const LeftFactor<Real>& left, const MatrixView<Real>& right, Real* product,
                 Size stride, ProductScratch<Real>& scratch, Part part = Part::whole);

// The same, by a team.
template <typename Real>
void add_product(const LeftFactor<Real>& left, const MatrixView<Real>& right, Real* product,
                 Size stride, ThreadTeam& team);

// Copies the upper triangle of a square matrix to the lower one.
void complete_symmetric(double* matrix, Size size);

} // namespace acctsne
