// What the search for bandwidths asks of the kernels: one row's distances and Gaussian weights.
#pragma once

#include "acctsne/types.hpp"

namespace acctsne {

// Rows are padded to a multiple of this: the widest vector's lanes of double.
inline constexpr Size kRowPadding = 8;

// What a row's distances were before they were normalised: d times unit, plus the smallest. The
// unit is 0 if all are equal.
struct RowUnit {
  double smallest;
  double unit;
};

// Sums over a row of w, w d and w d^2.
struct GaussianSums {
  double total;
  double first;
  double second;
};

// For affinities/perplexity.cpp. The mask is 1 for each of a row's numbers, and 0 for its padding.
struct PerplexityKernels {
  // Writes a row's distances less the smallest, divided by the mean of that; zeros if all are
  // equal, and in the padding.
  template <typename Real>
  using NormalizeRow = RowUnit(const Real* given, const double* mask, Size count, Size padded,
                               double* distances);
  NormalizeRow<float>* normalize_floats;
  NormalizeRow<double>* normalize_doubles;

  template <typename Real>
  NormalizeRow<Real>* normalize_row() const {
    if constexpr (sizeof(Real) == sizeof(float)) {
      return normalize_floats;
    } else {
      return normalize_doubles;
    }
  }

  // Writes w_j = mask_j exp(-beta d_j) and returns its sums.
  GaussianSums (*gaussian_row)(const double* distances, const double* mask, Size padded,
                               double beta, double* weights);
};

} // namespace acctsne
