// Step 6, repulsive forces, every pair: method "exact", and the referee of the other methods.
#pragma once

#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"

#include <span>
#include <vector>

namespace acctsne {

template <typename Real>
class ExactRepulsion {
public:
  explicit ExactRepulsion(int dims, double exponent = 1) : dims_(dims), exponent_(exponent) {}

  // For each listed row i, unnormalised: force = sum_j q_ij (y_i - y_j) / (1 + d^2) and z = sum_j
  // q_ij with q = (1 + d^2)^-exponent, j != i. Returns the sum of z. `force` is rows x dims, `z`
  // may be null.
  double forces(const Real* points, Size count, std::span<const PointId> rows, Real* force,
                double* z, ThreadTeam& team);

  // The same for all points in their order.
  double forces(const Real* points, Size count, Real* force, ThreadTeam& team);

  // The points that repel whatever is put among them.
  void take_points(const Real* points, Size count, ThreadTeam& team);

  // Their force on a position, and its z.
  double at(const Real* y, Real* force) const;

private:
  template <typename RowOf>
  double run(const Real* points, Size count, Size rows, RowOf&& row_of, Real* force, double* z,
             ThreadTeam& team);

  int dims_;
  double exponent_;
  Size count_ = 0;
  std::vector<Real> coordinates_; // of the points, one array per axis, a vector longer than it
  std::vector<const Real*> axes_; // where each begins
  std::vector<double> sums_;      // rows x dims: the forces before they are rounded
  std::vector<double> partials_;
};

} // namespace acctsne
