// Step 6, repulsive forces, Barnes-Hut.
#pragma once

#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "tree/tree.hpp"

#include <vector>

namespace acctsne {

// The ratio of a cell's side to its distance up to which it stands for its points.
double theta_for_angle(double angle, double exponent);

template <typename Real, int Dims>
class TreeRepulsion {
public:
  explicit TreeRepulsion(double exponent = 1) : exponent_(exponent) {}

  // Fills force, in the order of the rows that the tree was built from, with sum_j q_ij (y_i - y_j)
  // / (1 + d^2) and returns Z = sum_i sum_{j != i} q_ij, q = (1 + d^2)^-exponent. `angle` promises
  // scikit-learn's accuracy at that value.
  double forces(const Tree<Real, Dims>& tree, double angle, Real* force, ThreadTeam& team);

private:
  void find_groups(const Tree<Real, Dims>& tree);

  double exponent_;
  std::vector<PointGroup> groups_;
  std::vector<double> partials_;
};

} // namespace acctsne
