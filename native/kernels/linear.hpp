// What the matrix products and decompositions of native/linear ask of the kernels.
#pragma once

#include "acctsne/types.hpp"
#include "kernels/variants.hpp"

namespace acctsne {

template <typename Real>
struct LinearKernels {
  // A tile of a product, which stays in registers while it is summed.
  int tile_rows;
  int tile_columns;

  // linear/product.cpp: adds the product of two packed panels to a tile whose rows are `stride`
  // apart. The left one has tile_rows numbers for each step in depth, the right one tile_columns.
  void (*multiply_tile)(const Real* left, const Real* right, Size depth, Real* product,
                        Size stride);
  // linear/product.cpp: packs a right panel of tile_columns columns that lie in memory as rows,
  // `stride` apart.
  void (*pack_transposed)(const Real* columns, Size stride, Size depth, Real* panel);

  // linear/orthonormal.cpp, linear/eigen.cpp, neighbors/centred_rows.cpp.
  Real (*dot)(const Real* a, const Real* b, Size count);
  // linear/orthonormal.cpp, linear/eigen.cpp.
  void (*add_multiple)(Real factor, const Real* from, Size count, Real* to);
  // linear/eigen.cpp: a becomes cosine * a - sine * b, and b sine * a + cosine * b.
  void (*rotate)(Real cosine, Real sine, Size count, Real* a, Real* b);

  // linear/orthonormal.cpp, linear/eigen.cpp, neighbors/centred_rows.cpp,
  // neighbors/centred_sparse_rows.cpp: the largest size of a number.
  Real (*largest_size)(const Real* numbers, Size count);
  // neighbors/multiplied_rows.hpp: scale * row - centre, in double, rounded to float or to Real;
  // returns its squared norm.
  double (*centre_in_float)(const Real* row, double scale, const double* centre, Size count,
                            float* to);
  double (*centre)(const Real* row, double scale, const double* centre, Size count, Real* to);
};

} // namespace acctsne
