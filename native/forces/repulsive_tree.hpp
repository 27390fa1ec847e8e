// Step 6, repulsive forces, Barnes-Hut.
#pragma once

#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "tree/tree.hpp"

#include <vector>

namespace acctsne {

// Fills force, in the order of the rows that the tree was built from, with sum_j (y_i - y_j) / (1 +
// d^2)^2 and returns Z = sum_i sum_{j != i} 1 / (1 + d^2), both unnormalised. A cell stands for its
// points when side^2 < theta^2 d^2, with the cell's full side and the distance to its centre of
// mass: scikit-learn's meaning of `angle`.
template <typename Real, int Dims>
double tree_repulsion(const Tree<Real, Dims>& tree, double theta, Real* force,
                      std::vector<double>& partials, ThreadTeam& team);

} // namespace acctsne
