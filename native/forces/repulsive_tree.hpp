// Step 6, repulsive forces, Barnes-Hut.
#pragma once

#include "acctsne/large_array.hpp"
#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "forces/repulsive.hpp"
#include "tree/tree.hpp"

#include <span>
#include <vector>

namespace acctsne {

// The ratio of a cell's side to its distance up to which it stands for its points.
double theta_for_angle(double angle, double exponent);

// Steps 3, 4 and 6. Builds a tree and lists what acts on each group of its points; both serve later
// calls as long as the points have hardly moved. Forces are always those of the present positions.
template <typename Real, int Dims>
class TreeRepulsion final : public Repulsion<Real> {
public:
  // `angle` promises scikit-learn's accuracy at that value.
  TreeRepulsion(double angle, double exponent);

  using Repulsion<Real>::forces;
  double cost(const MapView<Real>& map) const override;
  void forces(const MapView<Real>& map, Communicator& processes, Real* force, RowSums& z,
              StepSeconds& seconds, ThreadTeam& team) override;

  // The positions that the tree was built from, if it may serve a later call; empty otherwise. With
  // the points they decide the next forces, down to the last bit.
  std::span<const Real> kept() const override { return built_from_; }
  void keep(std::span<const Real> points, ThreadTeam& team) override;

private:
  bool tree_fits(const MapView<Real>& map, StepSeconds& seconds, ThreadTeam& team);
  void make_tree(const MapView<Real>& map, StepSeconds& seconds, ThreadTeam& team);
  void find_groups(ThreadTeam& team);
  // Calls visit(group) for the groups of a subtree.
  template <typename Visit>
  void visit_groups(Size subtree, Visit&& visit) const;
  bool make_lists(ThreadTeam& team);
  void push_groups(Rows own, Real* force, ThreadTeam& team);

  double exponent_;
  Acceptance<Real> accept_{};
  Tree<Real, Dims> tree_;
  std::vector<Real> built_from_;
  Real built_lower_[Dims] = {}; // bounds of built_from_
  Real built_upper_[Dims] = {};
  std::vector<PointGroup> groups_;
  std::vector<std::size_t> group_starts_;   // of each subtree
  LargeArray<InteractionList<Dims>> lists_; // of the groups
  std::size_t lists_room_ = 0;
  std::vector<double> z_of_rows_; // a group's in the row of its first point
  std::vector<Size> moved_;       // points of each chunk that moved too far
};

extern const Both<MethodMakers> kTreeMakers;

} // namespace acctsne
