// Step 6, repulsive forces, every pair: method "exact", and the referee of the other methods.
#pragma once

#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"

#include <span>
#include <vector>

namespace acctsne {

template <typename Real, int Dims>
class ExactRepulsion {
public:
  explicit ExactRepulsion(double exponent = 1) : exponent_(exponent) {}

  // For each listed row i, unnormalised: force = sum_j q_ij (y_i - y_j) / (1 + d^2) and z = sum_j
  // q_ij with q = (1 + d^2)^-exponent, j != i. Returns the sum of z. `force` is rows x Dims, `z`
  // may be null.
  double forces(const Real* points, Size count, std::span<const PointId> rows, Real* force,
                double* z, ThreadTeam& team);

  // The same for all points in their order.
  double forces(const Real* points, Size count, Real* force, ThreadTeam& team);

private:
  template <typename RowOf>
  double run(const Real* points, Size count, Size rows, RowOf&& row_of, Real* force, double* z,
             ThreadTeam& team);

  double exponent_;
  std::vector<Real> axes_[Dims]; // the points, one array per axis
  std::vector<double> partials_;
};

} // namespace acctsne
