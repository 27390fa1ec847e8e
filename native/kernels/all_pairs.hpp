// What the exact repulsion asks of the kernels: all pairs of one position and a range of points.
#pragma once

#include "acctsne/types.hpp"
#include "kernels/variants.hpp"

namespace acctsne {

template <typename Real>
struct AllPairsKernels {
  int lanes; // of a vector of Real

  // Adds sum_j q (y - y_j) / (1 + d^2), q = (1 + d^2)^-exponent, over points [begin, end), one
  // array per axis, to force, and returns sum_j q. The arrays go on, with whatever is finite, for a
  // vector's lanes beyond the end.
  using Range = double (*)(int dims, const Real* const* axes, Size begin, Size end, const Real* y,
                           Real exponent, double* force);
  ByDims<Range> first_power; // with exponent 1, whatever is given
  ByDims<Range> any_power;

  Range range(int dims, double exponent) const {
    return (exponent == 1 ? first_power : any_power).of(dims);
  }
};

} // namespace acctsne
