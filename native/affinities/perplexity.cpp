// Step 2, BSP (the paper's equation 2).
//
// 1. Subtract the row's smallest squared distance and divide by the mean of what remains: the
//    search then does not depend on the data's unit, and no weight can underflow all at once.
// 2. Find beta with H(beta) = log(perplexity), H being the entropy of w_j = exp(-beta d_j)
//    normalised. H falls as beta grows, and dH/dlog(beta) = -beta^2 Var(d): Newton steps on
//    log(beta), kept inside a bracket that halves otherwise.
#include "affinities/perplexity.hpp"

#include "kernels/dispatch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace acctsne {
namespace {

// Entropy is met to this tolerance: scikit-learn stops at 1e-5, openTSNE at 1e-8. Newton's last
// step overshoots either.
constexpr double kEntropyTolerance = 1e-10;
constexpr int kMaxSteps = 200;
constexpr Size kRowsPerChunk = 256;

struct RowScratch {
  std::vector<double> distances;
  std::vector<double> mask;
  std::vector<double> weights;
};

struct RowResult {
  double beta; // in the normalised unit
  bool reached;
};

RowResult search_row(RowScratch& row, Size neighbors, Size padded, double target_entropy) {
  const auto gaussian_row = kernels().gaussian_row;

  // The two ends that the entropy can come near: uniform over the nearest (beta to infinity) and
  // over all (beta = 0).
  Size nearest = 0;
  for (Size j = 0; j < neighbors; ++j) {
    nearest += row.distances[static_cast<std::size_t>(j)] == 0.0 ? 1 : 0;
  }
  const double lowest = std::log(static_cast<double>(nearest));
  const double highest = std::log(static_cast<double>(neighbors));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (target_entropy <= lowest || nearest == neighbors) {
    return {nearest == neighbors ? 0.0 : kInfinity, std::abs(target_entropy - lowest) < 1e-4};
  }
  if (target_entropy >= highest) {
    return {0.0, target_entropy - highest < 1e-4};
  }

  double beta = 1;
  double low = 0;
  double high = kInfinity;
  for (int step = 0; step < kMaxSteps; ++step) {
    double sums[3];
    gaussian_row(row.distances.data(), row.mask.data(), padded, beta, row.weights.data(), sums);
    const double mean = sums[1] / sums[0];
    const double entropy = std::log(sums[0]) + beta * mean;
    const double excess = entropy - target_entropy;
    if (std::abs(excess) < kEntropyTolerance) {
      return {beta, true};
    }
    (excess > 0 ? low : high) = beta;
    const double variance = sums[2] / sums[0] - mean * mean;
    const double slope = beta * beta * variance;
    // Far from the root Newton may jump anywhere: a factor of 16 at most, and never out of the
    // bracket.
    double next = beta * std::exp(std::clamp(excess / slope, -2.8, 2.8));
    if (!(next > low && next < high)) {
      next = high == kInfinity ? beta * 16 : (low == 0 ? beta / 16 : 0.5 * (low + high));
    }
    if (next == beta || next > 1e300 || next < 1e-300) {
      break;
    }
    beta = next;
  }
  return {beta, false};
}

template <typename Real>
bool solve_row(const PerplexityRequest<Real>& request, Size i, RowScratch& row) {
  const Size k = request.neighbors;
  const Size padded = chunk_count(k, kRowPadding) * kRowPadding;
  row.distances.assign(static_cast<std::size_t>(padded), 0.0);
  row.mask.assign(static_cast<std::size_t>(padded), 0.0);
  row.weights.resize(static_cast<std::size_t>(padded));

  const Real* given = request.squared_distances + i * k;
  double smallest = std::numeric_limits<double>::infinity();
  for (Size j = 0; j < k; ++j) {
    smallest = std::min(smallest, static_cast<double>(given[j]));
  }
  double unit = 0;
  for (Size j = 0; j < k; ++j) {
    unit = std::max(unit, static_cast<double>(given[j]) - smallest);
  }
  double mean = 0;
  for (Size j = 0; j < k; ++j) {
    const auto at = static_cast<std::size_t>(j);
    row.mask[at] = 1;
    row.distances[at] = unit > 0 ? (static_cast<double>(given[j]) - smallest) / unit : 0.0;
    mean += row.distances[at] / static_cast<double>(k);
  }
  if (mean > 0) {
    unit *= mean;
    for (Size j = 0; j < k; ++j) {
      row.distances[static_cast<std::size_t>(j)] /= mean;
    }
  }

  const RowResult result = search_row(row, k, padded, std::log(request.perplexity));
  double total = 0;
  for (Size j = 0; j < k; ++j) {
    const auto at = static_cast<std::size_t>(j);
    if (std::isinf(result.beta)) {
      row.weights[at] = row.distances[at] == 0.0 ? 1.0 : 0.0;
    } else {
      row.weights[at] = std::exp(-result.beta * row.distances[at]);
    }
    total += row.weights[at];
  }
  for (Size j = 0; j < k; ++j) {
    request.conditional[i * k + j] =
        static_cast<Real>(row.weights[static_cast<std::size_t>(j)] / total);
  }
  if (request.betas != nullptr) {
    request.betas[i] = unit > 0 ? result.beta / unit : result.beta;
  }
  return result.reached;
}

} // namespace

template <typename Real>
Size search_perplexity(const PerplexityRequest<Real>& request, ThreadTeam& team) {
  std::vector<RowScratch> scratch(static_cast<std::size_t>(team.size()));
  std::vector<Size> missed(static_cast<std::size_t>(chunk_count(request.rows, kRowsPerChunk)),
                           Size{0});
  team.for_chunks(static_cast<Size>(missed.size()), [&](Size chunk, int worker) {
    const Size begin = chunk * kRowsPerChunk;
    const Size end = std::min(begin + kRowsPerChunk, request.rows);
    Size count = 0;
    for (Size i = begin; i < end && !team.should_stop(worker); ++i) {
      count += solve_row(request, i, scratch[static_cast<std::size_t>(worker)]) ? 0 : 1;
    }
    missed[static_cast<std::size_t>(chunk)] = count;
  });
  Size total = 0;
  for (const Size count : missed) {
    total += count;
  }
  return total;
}

template Size search_perplexity(const PerplexityRequest<float>&, ThreadTeam&);
template Size search_perplexity(const PerplexityRequest<double>&, ThreadTeam&);

} // namespace acctsne
