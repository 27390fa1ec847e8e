// The KL divergence of a map, exactly.
#include "quality/exact_kl.hpp"

#include "forces/repulsive_exact.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace acctsne {
namespace {

constexpr Size kRowsPerChunk = 256;

// Of one row of P: the sum of p (log p + exponent log(1 + d^2)), and that of p.
struct RowTerms {
  double terms = 0;
  double mass = 0;
};

RowTerms row_terms(const CsrView<double>& P, const double* u, int dims, double exponent, Size i) {
  RowTerms sums;
  const auto row = static_cast<std::size_t>(i);
  for (EdgeId e = P.offsets[row]; e < P.offsets[row + 1]; ++e) {
    const double p = P.values[at(e)];
    if (!(p > 0)) {
      continue;
    }
    const Size j = P.columns[at(e)];
    double d2 = 0;
    for (int axis = 0; axis < dims; ++axis) {
      const double difference = u[i * dims + axis] - u[j * dims + axis];
      d2 += difference * difference;
    }
    sums.terms += p * (std::log(p) + exponent * std::log1p(d2));
    sums.mass += p;
  }
  return sums;
}

// Z of points that flew apart may vanish.
double log_of(double z) {
  return std::log(std::max(z, 1e-300));
}

} // namespace

double exact_kl(const CsrView<double>& P, const double* positions, int dims,
                const OutputKernel& output_kernel, ThreadTeam& team) {
  const Size rows = P.rows();
  const std::vector<double> u = in_unit(positions, rows * dims, output_kernel);
  ExactRepulsion<double> all_pairs(dims, output_kernel.exponent);
  std::vector<double> unused(u.size());
  const double z =
      all_pairs.forces(Bounds<double>(u.data(), rows, dims).map(), unused.data(), team);

  std::vector<double> partials;
  const double terms = parallel_sum(team, rows, kRowsPerChunk, partials, [&](Size begin, Size end) {
    double sum = 0;
    for (Size i = begin; i < end; ++i) {
      sum += row_terms(P, u.data(), dims, output_kernel.exponent, i).terms;
    }
    return sum;
  });
  return std::max(0.0, terms + log_of(z)); // below zero it is one of rounding
}

std::vector<double> kl_by_point(const CsrView<double>& P, const double* positions, int dims,
                                const OutputKernel& output_kernel, double z, ThreadTeam& team) {
  const Size rows = P.rows();
  const std::vector<double> u = in_unit(positions, rows * dims, output_kernel);
  std::vector<double> shares(at(rows));
  parallel_for(team, rows, kRowsPerChunk, [&](Size begin, Size end) {
    for (Size i = begin; i < end; ++i) {
      const RowTerms sums = row_terms(P, u.data(), dims, output_kernel.exponent, i);
      shares[at(i)] = sums.terms + sums.mass * log_of(z);
    }
  });
  return shares;
}

} // namespace acctsne
