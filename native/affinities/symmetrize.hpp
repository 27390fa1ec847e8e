// Step 2, second half: joint probabilities P = (C + C^T) / sum from the conditional ones.
#pragma once

#include "acctsne/csr.hpp"
#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"

namespace acctsne {

// `indices` and `conditional` are rows x neighbors; no row may name a neighbour twice or itself.
// Their rows are sorted by column on the way. The result is symmetric, sums to 1, and its columns
// ascend within each row.
template <typename Real>
Csr<Real> symmetrize(PointId* indices, Real* conditional, Size rows, Size neighbors,
                     ThreadTeam& team);

} // namespace acctsne
