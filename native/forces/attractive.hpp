// Step 5, attractive forces.
#pragma once

#include "acctsne/communicator.hpp"
#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "forces/edges.hpp"

namespace acctsne {

// force[i] = sum_j p_ij (y_i - y_j) / (1 + |y_i - y_j|^2) of own rows, row-major like the points.
template <typename Real>
void attractive_forces(const Edges<Real>& edges, const Real* points, int dims, Rows own,
                       Real* force, ThreadTeam& team);

// Starts the sums of sum_ij p_ij log(1 + |y_i - y_j|^2) with those of own rows. KL(P || Q) = sum p
// log p (Edges::negative_entropy) + their total + log Z, as P sums to 1.
template <typename Real>
void cross_entropy(const Edges<Real>& edges, const Real* points, int dims, Rows own, RowSums& sums,
                   ThreadTeam& team);

} // namespace acctsne
