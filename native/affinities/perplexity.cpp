// Step 2, BSP (the paper's equation 2).
//
// 1. Subtract the row's smallest squared distance and divide by the mean of what remains: the
//    search then does not depend on the data's unit, and no weight can underflow all at once.
// 2. Find beta with H(beta) = log(perplexity), H being the entropy of w_j = exp(-beta d_j)
//    normalised. H falls as beta grows, and dH/dlog(beta) = -beta^2 Var(d): Newton steps on
//    log(beta), kept inside a bracket that halves otherwise.
// 3. Several perplexities share step 1, and their distributions are added with a weight each.
#include "affinities/perplexity.hpp"

#include "kernels/dispatch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace acctsne {
namespace {

// Entropy is met to this tolerance: scikit-learn stops at 1e-5, openTSNE at 1e-8. Newton's last
// step overshoots either.
constexpr double kEntropyTolerance = 1e-10;
constexpr int kMaxSteps = 200;
constexpr Size kRowsPerChunk = 256;

struct Row {
  std::vector<double> distances; // less the smallest, in units of `unit`
  std::vector<double> mask;
  std::vector<double> weights;
  double smallest = 0; // as given
  double unit = 0;     // 0 if all distances are equal
};

// What mixing needs besides.
struct Mixture {
  std::vector<double> betas;
  std::vector<double> shares;
  std::vector<double> sum;
};

struct RowResult {
  double beta; // in the normalised unit
  bool reached;
};

RowResult search_row(Row& row, Size neighbors, double target_entropy) {
  const auto gaussian_row = kernels().perplexity.gaussian_row;
  const auto padded = static_cast<Size>(row.distances.size());

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

// The row's distances, shifted and scaled.
template <typename Real>
void load_row(const ConditionalRows<Real>& rows, Size i, Row& row) {
  const Size k = rows.neighbors;
  const Size padded = chunk_count(k, kRowPadding) * kRowPadding;
  row.distances.assign(static_cast<std::size_t>(padded), 0.0);
  row.mask.assign(static_cast<std::size_t>(padded), 0.0);
  row.weights.resize(static_cast<std::size_t>(padded));

  const Real* given = rows.squared_distances + i * k;
  row.smallest = std::numeric_limits<double>::infinity();
  for (Size j = 0; j < k; ++j) {
    row.smallest = std::min(row.smallest, static_cast<double>(given[j]));
  }
  row.unit = 0;
  for (Size j = 0; j < k; ++j) {
    row.unit = std::max(row.unit, static_cast<double>(given[j]) - row.smallest);
  }
  double mean = 0;
  for (Size j = 0; j < k; ++j) {
    const auto at = static_cast<std::size_t>(j);
    row.mask[at] = 1;
    row.distances[at] =
        row.unit > 0 ? (static_cast<double>(given[j]) - row.smallest) / row.unit : 0.0;
    mean += row.distances[at] / static_cast<double>(k);
  }
  if (mean > 0) {
    row.unit *= mean;
    for (Size j = 0; j < k; ++j) {
      row.distances[static_cast<std::size_t>(j)] /= mean;
    }
  }
}

struct RowSums {
  double total;   // of the weights
  double entropy; // of the weights normalised
};

// Fills the weights exp(-beta d) of a row, beta in its unit; infinite beta leaves the nearest only.
RowSums weigh_row(Row& row, Size neighbors, double beta) {
  double total = 0;
  double weighted = 0;
  for (Size j = 0; j < neighbors; ++j) {
    const auto at = static_cast<std::size_t>(j);
    if (std::isinf(beta)) {
      row.weights[at] = row.distances[at] == 0.0 ? 1.0 : 0.0;
    } else {
      row.weights[at] = std::exp(-beta * row.distances[at]);
    }
    if (row.weights[at] > 0 && row.distances[at] > 0) {
      weighted += row.weights[at] * (beta * row.distances[at]);
    }
    total += row.weights[at];
  }
  return {total, std::log(total) + weighted / total};
}

template <typename Real>
void write_row(const ConditionalRows<Real>& rows, Size i, const std::vector<double>& weights,
               double total, double entropy) {
  for (Size j = 0; j < rows.neighbors; ++j) {
    rows.conditional[i * rows.neighbors + j] =
        static_cast<Real>(weights[static_cast<std::size_t>(j)] / total);
  }
  rows.perplexities[i] = std::exp(entropy);
}

struct Scratch {
  Row row;
  Mixture mixture;
};

// Calls body(i, scratch) for every row; returns how often it said false.
template <typename Body>
Size count_failures(Size rows, ThreadTeam& team, Body&& body) {
  const Step step("BSP");
  std::vector<Scratch> scratch(static_cast<std::size_t>(team.size()));
  std::vector<Size> failures(static_cast<std::size_t>(chunk_count(rows, kRowsPerChunk)), Size{0});
  team.for_chunks(static_cast<Size>(failures.size()), [&](Size chunk, int worker) {
    const Size begin = chunk * kRowsPerChunk;
    const Size end = std::min(begin + kRowsPerChunk, rows);
    Size count = 0;
    for (Size i = begin; i < end && !team.should_stop(worker); ++i) {
      count += body(i, scratch[static_cast<std::size_t>(worker)]) ? 0 : 1;
    }
    failures[static_cast<std::size_t>(chunk)] = count;
  });
  return std::accumulate(failures.begin(), failures.end(), Size{0});
}

// The logarithm of a Gaussian's part in the sum of densities: sqrt(beta) exp(-beta d^2) over all
// neighbours. `total` is the sum of its shifted weights. Beta is in the row's unit, which leaves
// out a factor that all Gaussians of the row share.
double log_density(const Row& row, double beta, double total) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (beta == 0) {
    return -kInfinity;
  }
  if (std::isinf(beta)) { // the limit: all or nothing, as the nearest are at distance 0 or not
    return row.smallest > 0 ? -kInfinity : kInfinity;
  }
  return 0.5 * std::log(beta) - beta * (row.smallest / row.unit) + std::log(total);
}

// Turns logarithms into shares that add up to 1, also where all are infinite.
void normalize_shares(std::vector<double>& shares) {
  const double largest = *std::max_element(shares.begin(), shares.end());
  double total = 0;
  for (double& share : shares) {
    share = share == largest ? 1.0 : std::exp(share - largest);
    total += share;
  }
  for (double& share : shares) {
    share /= total;
  }
}

template <typename Real>
bool mix_row(const ConditionalRows<Real>& rows, std::span<const double> perplexities, Mixing mixing,
             Size i, Row& row, Mixture& mixture) {
  const Size k = rows.neighbors;
  load_row(rows, i, row);
  bool all_reached = true;
  mixture.betas.clear();
  mixture.shares.clear();
  for (const double perplexity : perplexities) {
    const RowResult result = search_row(row, k, std::log(perplexity));
    const double total = weigh_row(row, k, result.beta).total;
    mixture.betas.push_back(result.beta);
    mixture.shares.push_back(mixing == Mixing::kEqual ? 0.0 : log_density(row, result.beta, total));
    all_reached = all_reached && result.reached;
  }
  normalize_shares(mixture.shares);
  mixture.sum.assign(static_cast<std::size_t>(k), 0.0);
  for (std::size_t h = 0; h < mixture.betas.size(); ++h) {
    const double factor = mixture.shares[h] / weigh_row(row, k, mixture.betas[h]).total;
    for (std::size_t j = 0; j < mixture.sum.size(); ++j) {
      mixture.sum[j] += factor * row.weights[j];
    }
  }
  double entropy = 0;
  for (const double p : mixture.sum) {
    entropy -= p > 0 ? p * std::log(p) : 0.0;
  }
  write_row(rows, i, mixture.sum, 1.0, entropy);
  return all_reached;
}

} // namespace

template <typename Real>
Size search_perplexity(const ConditionalRows<Real>& rows, double perplexity, double* betas,
                       ThreadTeam& team) {
  return count_failures(rows.rows, team, [&](Size i, Scratch& scratch) {
    Row& row = scratch.row;
    load_row(rows, i, row);
    const RowResult result = search_row(row, rows.neighbors, std::log(perplexity));
    const RowSums sums = weigh_row(row, rows.neighbors, result.beta);
    write_row(rows, i, row.weights, sums.total, sums.entropy);
    if (betas != nullptr) {
      betas[i] = row.unit > 0 ? result.beta / row.unit : result.beta;
    }
    return result.reached;
  });
}

template <typename Real>
Size mix_perplexities(const ConditionalRows<Real>& rows, std::span<const double> perplexities,
                      Mixing mixing, ThreadTeam& team) {
  return count_failures(rows.rows, team, [&](Size i, Scratch& scratch) {
    return mix_row(rows, perplexities, mixing, i, scratch.row, scratch.mixture);
  });
}

template <typename Real>
void fixed_bandwidth(const ConditionalRows<Real>& rows, double beta, ThreadTeam& team) {
  count_failures(rows.rows, team, [&](Size i, Scratch& scratch) {
    Row& row = scratch.row;
    load_row(rows, i, row);
    // A bandwidth that is next to nothing has an infinite beta; equal distances weigh the same.
    const double scaled_beta = row.unit > 0 ? beta * row.unit : 0.0;
    const RowSums sums = weigh_row(row, rows.neighbors, scaled_beta);
    write_row(rows, i, row.weights, sums.total, sums.entropy);
    return true;
  });
}

template Size search_perplexity(const ConditionalRows<float>&, double, double*, ThreadTeam&);
template Size search_perplexity(const ConditionalRows<double>&, double, double*, ThreadTeam&);
template Size mix_perplexities(const ConditionalRows<float>&, std::span<const double>, Mixing,
                               ThreadTeam&);
template Size mix_perplexities(const ConditionalRows<double>&, std::span<const double>, Mixing,
                               ThreadTeam&);
template void fixed_bandwidth(const ConditionalRows<float>&, double, ThreadTeam&);
template void fixed_bandwidth(const ConditionalRows<double>&, double, ThreadTeam&);

} // namespace acctsne
