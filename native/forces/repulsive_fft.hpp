// Step 6, repulsive forces, by convolution on a grid (1-D and 2-D).
#pragma once

#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "forces/block_convolution.hpp"
#include "forces/charge_spreader.hpp"
#include "forces/coarse_grid.hpp"
#include "forces/convolution.hpp"
#include "forces/grid.hpp"
#include "forces/repulsive.hpp"
#include "forces/shared_charges.hpp"
#include "kernels/grid.hpp"

#include <vector>

namespace acctsne {

// Grid step for a relative force error (rms error / rms force), which grows with its fourth power
// (benchmarks/force_error.py, docs/tuning.md). The width of (1 + r^2)^-exponent is about 1 /
// sqrt(exponent), and the step follows it; below 1 the kernel's core is as narrow as at 1, and so
// is the step.
double grid_step_for_error(double error, double exponent = 1);

// Longest side of a grid, in nodes. A larger map is the tree's business: with both sides so long, a
// grid has 2^24 nodes, of which charges and potential each take 67 MB in float.
inline constexpr Size kMaxGridNodes = 4096;

template <typename Real, int Dims>
class FftRepulsion final : public Repulsion<Real> {
  static_assert(Dims <= 2);

public:
  explicit FftRepulsion(double step, double exponent = 1);

  using Repulsion<Real>::forces;
  double cost(const MapView<Real>& map) const override;
  bool needs_all_points() const override { return false; }
  // Requires a finite cost.
  void forces(const MapView<Real>& map, Communicator& processes, Real* force, RowSums& z,
              StepSeconds& seconds, ThreadTeam& team) override;

  // Of the longest side of a map over these bounds.
  static double width(const Real* lower, const Real* upper);

  // Nodes that are transformed for such a map, padding included: what its cost depends on.
  static double nodes_transformed(const Real* lower, const Real* upper, double step);

  // The potential of all points over the map's bounds, kept for at(). Of these, a process has to
  // know its own.
  void compute_potential(const MapView<Real>& map, Communicator& processes, ThreadTeam& team);
  // Whether a position is within the bounds of the last potential.
  bool covers(const Real* y) const;
  // Fills `force` with the force of the points of the last potential on a covered position and
  // returns its z.
  double at(const Real* y, Real* force) const;

private:
  void prepare_grids(const MapView<Real>& map, ThreadTeam& team);
  void charge(const MapView<Real>& map, Communicator& processes, ThreadTeam& team);
  void convolve(Communicator& processes, ThreadTeam& team);
  void convolve_in_blocks(Communicator& processes, ThreadTeam& team);
  double missing_potential() const {
    return (has_coarse_ ? coarse_.kernel() : convolution_.kernel()).shift();
  }

  double step_;
  const GridKernels<Real>& grid_kernels_;
  GridKernel kernel_;
  GridGeometry<Real> geometry_{};
  Grid<Real> fine_;
  GridConvolution<Real> convolution_; // with the whole kernel, or with its near part
  bool has_coarse_ = false;
  CoarseGrid<Real> coarse_;
  bool in_blocks_ = false; // then the near part is convolved so
  BlockConvolution<Real> block_convolution_;
  Grid<Real> potential_;                  // of its blocks, as fine_ has what they are made of
  GridGeometry<Real> outside_geometry_{}; // without the parts that take off a point's own charge

  Size count_ = 0; // of the points of the last potential
  ChargeSpreader<Real, Dims> spreader_;
  SharedCharges<Real, Dims> shared_;
  std::vector<Size> part_ends_;
};

extern const Both<MethodMakers> kFftMakers;

} // namespace acctsne
