// Step 2, BSP: for each row, the Gaussian bandwidth whose distribution over the neighbours has the
// perplexity asked for.
#pragma once

#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"

namespace acctsne {

template <typename Real>
struct PerplexityRequest {
  const Real* squared_distances; // rows x neighbors
  Size rows;
  Size neighbors;
  double perplexity;
  Real* conditional; // out: rows x neighbors, p_{j|i}; each row sums to 1
  double* betas;     // out, optional: rows, 1 / (2 sigma_i^2)
};

// Fills the request's outputs and returns the number of rows that cannot reach the perplexity: too
// few neighbours, or too many at the smallest distance. Such a row gets the distribution of the
// nearest perplexity that it can have.
template <typename Real>
Size search_perplexity(const PerplexityRequest<Real>& request, ThreadTeam& team);

} // namespace acctsne
