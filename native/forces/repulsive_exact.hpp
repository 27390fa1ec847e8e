// Step 6, repulsive forces, by all pairs.
#pragma once

#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "forces/repulsive.hpp"
#include "kernels/all_pairs.hpp"

#include <span>
#include <vector>

namespace acctsne {

// The points that repel, one array per axis.
template <typename Real>
class AllPairs {
public:
  AllPairs(int dims, double exponent);

  void take_points(const Real* points, Size count, ThreadTeam& team);

  // Their force on a position, sum_j q (u - u_j) / (1 + d^2) with q = (1 + d^2)^-exponent, and its
  // z = sum_j q. Without the point `left_out`, which may be -1 for none.
  double at(const Real* u, Size left_out, Real* force) const;

private:
  int dims_;
  double exponent_;
  const AllPairsKernels<Real>& kernels_;
  Size count_ = 0;
  std::vector<Real> coordinates_; // a vector longer than the points along each axis
  std::vector<const Real*> axes_; // where each begins
};

template <typename Real>
class ExactRepulsion final : public Repulsion<Real> {
public:
  explicit ExactRepulsion(int dims, double exponent = 1)
      : dims_(dims), exponent_(exponent), pairs_(dims, exponent) {}

  using Repulsion<Real>::forces;
  double cost(const MapView<Real>& map) const override;
  void forces(const MapView<Real>& map, Communicator& processes, Real* force, RowSums& z,
              StepSeconds& seconds, ThreadTeam& team) override;

  // On the listed rows only, in their order, and the z of each.
  void forces(const Real* points, Size count, std::span<const PointId> rows, Real* force, double* z,
              ThreadTeam& team);

private:
  int dims_;
  double exponent_;
  AllPairs<Real> pairs_;
  std::vector<double> z_of_rows_;
};

extern const Both<MethodMakers> kExactMakers;

} // namespace acctsne
