// The repulsion of a fixed map on any position, for points that are placed into it.
#pragma once

#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "forces/repulsive.hpp"
#include "forces/repulsive_exact.hpp"
#include "forces/repulsive_fft.hpp"
#include "tree/tree.hpp"

#include <type_traits>

namespace acctsne {

// What it gives at a position depends on the map and the position alone.
template <typename Real, int Dims>
class RepulsiveField {
public:
  // Of points in the output kernel's unit. The first argument, the dimension, is Dims.
  RepulsiveField(int, const Real* points, Size count, const RepulsionOptions& options,
                 ThreadTeam& team);

  // Fills force with sum_j q_j (u - u_j) / (1 + |u - u_j|^2) and returns z = sum_j q_j, over all
  // points of the map.
  double at(const Real* u, Real* force) const;

private:
  double exponent_;
  Acceptance<Real> accept_{};
  Tree<Real, Dims> tree_;
  struct NoGrid {
    explicit NoGrid(double) {}
  };
  std::conditional_t<Dims <= 2, FftRepulsion<Real, Dims == 1 ? 1 : 2>, NoGrid> grid_;
  bool has_grid_ = false;
};

// Of any number of dimensions: the sum over all points.
template <typename Real>
class RepulsiveField<Real, kAnyDims> {
public:
  RepulsiveField(int dims, const Real* points, Size count, const RepulsionOptions& options,
                 ThreadTeam& team)
      : repulsion_(dims, options.output_kernel.exponent) {
    repulsion_.take_points(points, count, team);
  }

  double at(const Real* u, Real* force) const { return repulsion_.at(u, force); }

private:
  ExactRepulsion<Real> repulsion_;
};

} // namespace acctsne
