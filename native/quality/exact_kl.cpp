// The KL divergence of a map, exactly.
#include "quality/exact_kl.hpp"

#include "forces/repulsive_exact.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace acctsne {
namespace {

constexpr Size kRowsPerChunk = 256;

// Sum of p (log p + exponent log(1 + d^2)) over the entries of rows [begin, end).
double row_terms(const CsrView<double>& P, const double* u, int dims, double exponent, Size begin,
                 Size end) {
  double sum = 0;
  for (Size i = begin; i < end; ++i) {
    const auto row = static_cast<std::size_t>(i);
    for (EdgeId e = P.offsets[row]; e < P.offsets[row + 1]; ++e) {
      const double p = P.values[static_cast<std::size_t>(e)];
      if (!(p > 0)) {
        continue;
      }
      const Size j = P.columns[static_cast<std::size_t>(e)];
      double d2 = 0;
      for (int axis = 0; axis < dims; ++axis) {
        const double difference = u[i * dims + axis] - u[j * dims + axis];
        d2 += difference * difference;
      }
      sum += p * (std::log(p) + exponent * std::log1p(d2));
    }
  }
  return sum;
}

} // namespace

double exact_kl(const CsrView<double>& P, const double* positions, int dims,
                const OutputKernel& output_kernel, ThreadTeam& team) {
  const auto rows = static_cast<Size>(P.offsets.size()) - 1;
  std::vector<double> u(positions, positions + rows * dims);
  for (double& value : u) {
    value /= output_kernel.unit();
  }
  ExactRepulsion<double> all_pairs(dims, output_kernel.exponent);
  std::vector<double> unused(u.size());
  const double z =
      all_pairs.forces(Bounds<double>(u.data(), rows, dims).map(), unused.data(), team);

  std::vector<double> partials(static_cast<std::size_t>(chunk_count(rows, kRowsPerChunk)));
  parallel_for(team, rows, kRowsPerChunk, [&](Size begin, Size end) {
    partials[static_cast<std::size_t>(begin / kRowsPerChunk)] =
        row_terms(P, u.data(), dims, output_kernel.exponent, begin, end);
  });
  const double terms = std::accumulate(partials.begin(), partials.end(), 0.0);
  // Z of points that flew apart may vanish; a divergence below zero is one of rounding.
  return std::max(0.0, terms + std::log(std::max(z, 1e-300)));
}

} // namespace acctsne
