// The KL divergence by its definition, with two loops over all pairs.
#pragma once

#include "acctsne/csr.hpp"
#include "data.hpp"
#include "forces/output_kernel.hpp"

#include <cmath>
#include <vector>

namespace acctsne {

inline double falloff(const std::vector<double>& points, Size i, Size j, int dims, double scale) {
  return 1 / (1 + squared(points.data() + i * dims, points.data() + j * dims, dims) / scale);
}

// KL(P || Q) as it is defined: sum of p log(p / q) with q normalised over all pairs.
template <typename Real>
double plain_kl(const Csr<Real>& P, const std::vector<double>& points, int dims,
                const OutputKernel& output_kernel = {}) {
  const Size n = P.view().rows();
  const auto unnormalised = [&](Size i, Size j) {
    return std::pow(falloff(points, i, j, dims, output_kernel.scale), output_kernel.exponent);
  };
  double z = 0;
  for (Size i = 0; i < n; ++i) {
    for (Size j = 0; j < n; ++j) {
      z += i == j ? 0.0 : unnormalised(i, j);
    }
  }
  double kl = 0;
  for (Size i = 0; i < n; ++i) {
    for (EdgeId e = P.offsets[at(i)]; e < P.offsets[at(i + 1)]; ++e) {
      const auto p = static_cast<double>(P.values[at(e)]);
      const Size j = P.columns[at(e)];
      kl += p * std::log(p * z / unnormalised(i, j));
    }
  }
  return kl;
}

} // namespace acctsne
