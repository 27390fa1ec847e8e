// What the search for bandwidths asks of the kernels: one row of Gaussian weights.
#pragma once

#include "acctsne/types.hpp"

namespace acctsne {

// Rows handed to gaussian_row are padded to a multiple of this: the widest vector's lanes of
// double.
inline constexpr Size kRowPadding = 8;

struct PerplexityKernels {
  // affinities/perplexity.cpp: with w_j = mask_j exp(-beta d_j), writes w and the sums of w, w d
  // and w d^2. `count` is a multiple of kRowPadding.
  void (*gaussian_row)(const double* distances, const double* mask, Size count, double beta,
                       double* weights, double* sums);
};

} // namespace acctsne
