// Step 5, attractive forces.
#pragma once

#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "forces/edges.hpp"

#include <vector>

namespace acctsne {

// force[i] = sum_j p_ij (y_i - y_j) / (1 + |y_i - y_j|^2), row-major like the points.
template <typename Real>
void attractive_forces(const Edges<Real>& edges, const Real* points, int dims, Real* force,
                       ThreadTeam& team);

// sum_ij p_ij log(1 + |y_i - y_j|^2). KL(P || Q) = sum p log p (Edges::negative_entropy) + this +
// log Z, as P sums to 1.
template <typename Real>
double cross_entropy(const Edges<Real>& edges, const Real* points, int dims,
                     std::vector<double>& partials, ThreadTeam& team);

} // namespace acctsne
