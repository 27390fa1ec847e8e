// Step 2, first half: for each row, a distribution over its neighbours that falls with distance as
// a Gaussian does, of the perplexity asked for, of several mixed, or of a given bandwidth.
#pragma once

#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"

#include <span>

namespace acctsne {

template <typename Real>
struct ConditionalRows {
  const Real* squared_distances; // rows x neighbors
  Size rows;
  Size neighbors;
  Real* conditional;    // out: rows x neighbors, p_{j|i}; each row sums to 1
  double* perplexities; // out: rows, exp of the entropy of each row
};

// Finds each row's bandwidth; `betas` (out, optional) are 1 / (2 sigma_i^2). Returns the number of
// rows that cannot reach the perplexity: too few neighbours, or too many at the smallest distance.
// Such a row gets the distribution of the nearest perplexity that it can have.
template <typename Real>
Size search_perplexity(const ConditionalRows<Real>& rows, double perplexity, double* betas,
                       ThreadTeam& team);

// How the Gaussians of several perplexities become one distribution.
enum class Mixing {
  equal,  // the mean of the normalised distributions
  density // the sum of densities on a line, sqrt(beta) exp(-beta d^2), then normalised
};

// Finds a bandwidth for each perplexity and mixes them. Returns the number of rows that miss one
// perplexity or more.
template <typename Real>
Size mix_perplexities(const ConditionalRows<Real>& rows, std::span<const double> perplexities,
                      Mixing mixing, ThreadTeam& team);

// Gaussians of one bandwidth for all rows, beta = 1 / (2 sigma^2).
template <typename Real>
void fixed_bandwidth(const ConditionalRows<Real>& rows, double beta, ThreadTeam& team);

} // namespace acctsne
