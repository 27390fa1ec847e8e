// Step 2, first half: the search for bandwidths, which the paper calls BSP (its equation 2).
//
// 1. Subtract the row's smallest squared distance and divide by the mean of what remains: the
//    search then does not depend on the data's unit, and no weight can underflow all at once.
// 2. Find beta with H(beta) = log(perplexity), H being the entropy of w_j = exp(-beta d_j)
//    normalised. H falls as beta grows, and dH/dlog(beta) = -beta^2 Var(d): Newton steps on
//    log(beta), kept inside a bracket that halves otherwise, from what beta is in most data.
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

struct WeightSums {
  double total;   // of the weights
  double entropy; // of the weights normalised
};

// What is searched for in one row. Distances are less the smallest, in units of their mean.
class Row {
public:
  explicit Row(Size neighbors)
      : neighbors_(neighbors), padded_(chunk_count(neighbors, kRowPadding) * kRowPadding),
        distances_(at(padded_)), mask_(distances_.size()), weights_(distances_.size()) {
    std::fill_n(mask_.begin(), neighbors, 1.0);
  }

  template <typename Real>
  void load(const Real* given) {
    unit_ =
        kernels_.normalize_row<Real>()(given, mask_.data(), neighbors_, padded_, distances_.data());
  }

  Size neighbors() const { return neighbors_; }
  double smallest() const { return unit_.smallest; } // as given
  double unit() const { return unit_.unit; }         // 0 if all distances are equal
  std::span<const double> weights() const { return {weights_.data(), at(neighbors_)}; }

  Size at_smallest() const { return std::count(first(), first() + neighbors_, 0.0); }

  // Fills the weights exp(-beta d), beta in the row's unit.
  GaussianSums weigh(double beta) {
    return kernels_.gaussian_row(distances_.data(), mask_.data(), padded_, beta, weights_.data());
  }

  // The same; infinite beta leaves the nearest only.
  WeightSums weigh_with_limits(double beta) {
    if (!std::isinf(beta)) {
      const GaussianSums sums = weigh(beta);
      return {sums.total, std::log(sums.total) + beta * (sums.first / sums.total)};
    }
    std::transform(first(), first() + neighbors_, weights_.begin(),
                   [](double d) { return d == 0.0 ? 1.0 : 0.0; });
    const auto nearest = static_cast<double>(at_smallest());
    return {nearest, std::log(nearest)};
  }

private:
  std::vector<double>::const_iterator first() const { return distances_.begin(); }

  const PerplexityKernels& kernels_ = kernels().perplexity;
  Size neighbors_;
  Size padded_;
  std::vector<double> distances_;
  std::vector<double> mask_;
  std::vector<double> weights_;
  RowUnit unit_{0, 0};
};

// What mixing needs besides.
struct Mixture {
  std::vector<double> betas;
  std::vector<double> shares;
  std::vector<double> sum;
};

struct RowResult {
  double beta; // in the row's unit
  bool reached;
  WeightSums sums; // of the weights, which are those of beta
};

// Where the search begins. In units of the mean distance beta is much the same in all data, a
// matter of how many of its neighbours a row is to spread over (benchmarks/steps.py,
// docs/tuning.md).
double first_beta(double neighbors, double target_entropy) {
  const double lack = std::log(neighbors) - target_entropy;
  return std::max(3.45 * lack, 3.6 * std::sqrt(lack));
}

RowResult search_row(Row& row, double target_entropy) {
  // The two ends that the entropy can come near: uniform over the nearest (beta to infinity) and
  // over all (beta = 0).
  const Size nearest = row.at_smallest();
  const auto neighbors = static_cast<double>(row.neighbors());
  const double lowest = std::log(static_cast<double>(nearest));
  const double highest = std::log(neighbors);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto end = [&row](double beta, bool reached) -> RowResult {
    return {beta, reached, row.weigh_with_limits(beta)};
  };
  if (target_entropy <= lowest || nearest == row.neighbors()) {
    return end(nearest == row.neighbors() ? 0.0 : kInfinity,
               std::abs(target_entropy - lowest) < 1e-4);
  }
  if (target_entropy >= highest) {
    return end(0.0, target_entropy - highest < 1e-4);
  }

  double beta = first_beta(neighbors, target_entropy);
  double low = 0;
  double high = kInfinity;
  for (int step = 0; step < kMaxSteps; ++step) {
    const GaussianSums sums = row.weigh(beta);
    const double mean = sums.first / sums.total;
    const double entropy = std::log(sums.total) + beta * mean;
    const double excess = entropy - target_entropy;
    if (std::abs(excess) < kEntropyTolerance) {
      return {beta, true, {sums.total, entropy}};
    }
    (excess > 0 ? low : high) = beta;
    const double variance = sums.second / sums.total - mean * mean;
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
  return end(beta, false);
}

// The distribution of a row: weights divided by their total, which is at least 1.
template <typename Real>
void write_row(const ConditionalRows<Real>& rows, Size i, std::span<const double> weights,
               WeightSums sums) {
  const double factor = 1 / sums.total;
  std::transform(weights.begin(), weights.end(), rows.conditional + i * rows.neighbors,
                 [factor](double weight) { return static_cast<Real>(weight * factor); });
  rows.perplexities[i] = std::exp(sums.entropy);
}

struct Scratch {
  Row row;
  Mixture mixture;
};

// Loads every row and calls body(i, scratch); returns how often it said false.
template <typename Real, typename Body>
Size count_failures(const ConditionalRows<Real>& rows, ThreadTeam& team, Body&& body) {
  const Step step("BSP");
  std::vector<Scratch> scratch(at(team.size()), Scratch{Row(rows.neighbors), {}});
  std::vector<Size> failures(at(chunk_count(rows.rows, kRowsPerChunk)), Size{0});
  parallel_for(team, rows.rows, kRowsPerChunk, [&](Size begin, Size end, int worker) {
    Size count = 0;
    Scratch& own = scratch[at(worker)];
    for (Size i = begin; i < end && !team.should_stop(worker); ++i) {
      own.row.load(rows.squared_distances + i * rows.neighbors);
      count += body(i, own) ? 0 : 1;
    }
    failures[at(begin / kRowsPerChunk)] = count;
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
    return row.smallest() > 0 ? -kInfinity : kInfinity;
  }
  return 0.5 * std::log(beta) - beta * (row.smallest() / row.unit()) + std::log(total);
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
  bool all_reached = true;
  mixture.betas.clear();
  mixture.shares.clear();
  for (const double perplexity : perplexities) {
    const RowResult result = search_row(row, std::log(perplexity));
    mixture.betas.push_back(result.beta);
    mixture.shares.push_back(
        mixing == Mixing::equal ? 0.0 : log_density(row, result.beta, result.sums.total));
    all_reached = all_reached && result.reached;
  }
  normalize_shares(mixture.shares);
  mixture.sum.assign(at(row.neighbors()), 0.0);
  for (std::size_t h = 0; h < mixture.betas.size(); ++h) {
    const double factor = mixture.shares[h] / row.weigh_with_limits(mixture.betas[h]).total;
    for (std::size_t j = 0; j < mixture.sum.size(); ++j) {
      mixture.sum[j] += factor * row.weights()[j];
    }
  }
  double entropy = 0;
  for (const double p : mixture.sum) {
    entropy -= p > 0 ? p * std::log(p) : 0.0;
  }
  write_row(rows, i, mixture.sum, {1.0, entropy});
  return all_reached;
}

} // namespace

template <typename Real>
Size search_perplexity(const ConditionalRows<Real>& rows, double perplexity, double* betas,
                       ThreadTeam& team) {
  const double target_entropy = std::log(perplexity);
  return count_failures(rows, team, [&](Size i, Scratch& scratch) {
    Row& row = scratch.row;
    const RowResult result = search_row(row, target_entropy);
    write_row(rows, i, row.weights(), result.sums);
    if (betas != nullptr) {
      betas[i] = row.unit() > 0 ? result.beta / row.unit() : result.beta;
    }
    return result.reached;
  });
}

template <typename Real>
Size mix_perplexities(const ConditionalRows<Real>& rows, std::span<const double> perplexities,
                      Mixing mixing, ThreadTeam& team) {
  return count_failures(rows, team, [&](Size i, Scratch& scratch) {
    return mix_row(rows, perplexities, mixing, i, scratch.row, scratch.mixture);
  });
}

template <typename Real>
void fixed_bandwidth(const ConditionalRows<Real>& rows, double beta, ThreadTeam& team) {
  count_failures(rows, team, [&](Size i, Scratch& scratch) {
    Row& row = scratch.row;
    // A bandwidth that is next to nothing has an infinite beta; equal distances weigh the same.
    const double beta_in_unit = row.unit() > 0 ? beta * row.unit() : 0.0;
    write_row(rows, i, row.weights(), row.weigh_with_limits(beta_in_unit));
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
