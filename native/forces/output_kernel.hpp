// The similarity of two points of the embedding, q = (1 + d^2 / scale)^-exponent before it is
// normalised.
//
// In units of sqrt(scale), u = y / sqrt(scale) and b = 1 / (1 + |u_i - u_j|^2), the scale is gone:
// q = b^exponent, and the gradient of KL with respect to y is
//   4 exponent / sqrt(scale) sum_j (p_ij - q_ij / Z) b_ij (u_i - u_j).
// The attraction never sees the exponent, the repulsion never sees the scale. Everything native
// works on u; y is what goes in and comes out.
#pragma once

#include "acctsne/types.hpp"

#include <cmath>
#include <vector>

namespace acctsne {

struct OutputKernel {
  double exponent = 1;
  double scale = 1;

  // y for u = 1.
  double unit() const { return std::sqrt(scale); }
  // The gradient with respect to y is 4 times this times the difference of the forces on u.
  double gradient_scale() const { return exponent / unit(); }
};

// Positions y, so many numbers, as u.
template <typename Real>
std::vector<Real> in_unit(const Real* positions, Size count, const OutputKernel& kernel) {
  std::vector<Real> u(positions, positions + count);
  for (Real& value : u) {
    value /= static_cast<Real>(kernel.unit());
  }
  return u;
}

} // namespace acctsne
