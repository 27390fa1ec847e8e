// Step 6, repulsive forces, Barnes-Hut.
#pragma once

#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "tree/tree.hpp"

#include <span>
#include <vector>

namespace acctsne {

// The ratio of a cell's side to its distance up to which it stands for its points.
double theta_for_angle(double angle, double exponent);

// Steps 3, 4 and 6. Builds a tree and lists what acts on each group of its points; both serve later
// calls as long as the points have hardly moved. Forces are always those of the present positions.
template <typename Real, int Dims>
class TreeRepulsion {
public:
  // `angle` promises scikit-learn's accuracy at that value.
  TreeRepulsion(double angle, double exponent);

  // Fills force with sum_j q_ij (y_i - y_j) / (1 + d^2) and returns Z = sum_i sum_{j != i} q_ij,
  // q = (1 + d^2)^-exponent. `lower` and `upper` are the points' bounds.
  double forces(const Real* points, Size count, const Real* lower, const Real* upper, Real* force,
                StepSeconds& seconds, ThreadTeam& team);

  // The positions that the tree was built from, if it may serve a later call; empty otherwise. With
  // the points they decide the next forces, down to the last bit.
  std::span<const Real> built_from() const { return built_from_; }
  // Goes on as if the tree had been built from these; without any, the next call builds one.
  void build_from(std::span<const Real> points, ThreadTeam& team);

private:
  bool tree_fits(const Real* points, Size count, const Real* lower, const Real* upper,
                 StepSeconds& seconds, ThreadTeam& team);
  void make_tree(const Real* points, Size count, const Real* lower, const Real* upper,
                 StepSeconds& seconds, ThreadTeam& team);
  void find_groups();
  void make_lists(ThreadTeam& team);
  double push_groups(Real* force, ThreadTeam& team);

  double exponent_;
  Acceptance<Real> accept_{};
  Tree<Real, Dims> tree_;
  std::vector<Real> built_from_;
  Real built_lower_[Dims] = {}; // bounds of built_from_
  Real built_upper_[Dims] = {};
  std::vector<PointGroup> groups_;
  std::vector<InteractionList<Dims>> lists_; // of the groups
  std::vector<double> partials_;
  std::vector<Size> moved_; // points of each chunk that moved too far
};

} // namespace acctsne
