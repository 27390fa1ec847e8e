// Repulsive forces by their definition, with loops over all pairs, those of a method, and how far
// the two are apart.
#pragma once

#include "data.hpp"
#include "forces/repulsive_exact.hpp"

#include <cmath>
#include <vector>

namespace acctsne {

// On all points, and Z.
template <typename Real>
struct RepulsiveForces {
  std::vector<Real> force;
  double z = 0;
};

// The force of all points but one on a position, sum_j q (y - y_j) / (1 + d^2) with q =
// (1 + d^2)^-exponent; returns the sum of q.
template <int Dims, typename Real>
double plain_push(const std::vector<Real>& points, const Real* y, double exponent, double* force,
                  Size left_out = -1) {
  long double z = 0;
  long double sums[Dims] = {};
  for (Size j = 0; j < static_cast<Size>(points.size()) / Dims; ++j) {
    if (j == left_out) {
      continue;
    }
    const Real* other = points.data() + j * Dims;
    const double one_plus_d2 = 1 + squared(y, other, Dims);
    const double q = exponent == 1 ? 1 / one_plus_d2 : std::pow(one_plus_d2, -exponent);
    z += q;
    for (int axis = 0; axis < Dims; ++axis) {
      sums[axis] +=
          q / one_plus_d2 * (static_cast<double>(y[axis]) - static_cast<double>(other[axis]));
    }
  }
  std::copy_n(sums, Dims, force);
  return static_cast<double>(z);
}

template <int Dims, typename Real>
RepulsiveForces<double> plain_repulsion(const std::vector<Real>& points, double exponent = 1) {
  RepulsiveForces<double> expected{std::vector<double>(points.size())};
  for (Size i = 0; i < static_cast<Size>(points.size()) / Dims; ++i) {
    expected.z += plain_push<Dims>(points, points.data() + i * Dims, exponent,
                                   expected.force.data() + i * Dims, i);
  }
  return expected;
}

// What one method gives, or the chosen one.
template <int Dims, typename By, typename Real>
RepulsiveForces<Real> forces_by(By& method, const std::vector<Real>& points, int threads = 2) {
  ThreadTeam team(threads);
  RepulsiveForces<Real> found{std::vector<Real>(points.size())};
  found.z = method.forces(map_of<Dims>(points).map(), found.force.data(), team);
  return found;
}

template <int Dims, typename Real>
RepulsiveForces<Real> all_pairs(const std::vector<Real>& points, int threads = 2) {
  ExactRepulsion<Real> repulsion(Dims);
  return forces_by<Dims>(repulsion, points, threads);
}

// Root mean square of the error, relative to that of the force unless there is none.
template <typename Real, typename Other>
double relative_error(const std::vector<Real>& force, const std::vector<Other>& expected) {
  double error = 0;
  double size = 0;
  for (std::size_t c = 0; c < force.size(); ++c) {
    const auto exact = static_cast<double>(expected[c]);
    error += std::pow(static_cast<double>(force[c]) - exact, 2);
    size += exact * exact;
  }
  return std::sqrt(size > 0 ? error / size : error / static_cast<double>(force.size()));
}
template <typename Real, typename Other>
double relative_error(const RepulsiveForces<Real>& found, const RepulsiveForces<Other>& expected) {
  return relative_error(found.force, expected.force);
}

} // namespace acctsne
