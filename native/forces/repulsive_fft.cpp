// Step 6, repulsive forces, by convolution on a grid.
//
// With the potential phi(y) = sum_j (1 + |y - y_j|^2)^-e, e the exponent, the repulsive force is
// -1/(2 e) grad phi and Z = sum_i phi(y_i), each without the point's own part: one charge and one
// convolution give both (FIt-SNE and openTSNE convolve four).
//
// 1. Spread: each point adds cubic B-spline weights to 4 x 4 nodes (forces/charge_spreader.cpp).
//    Several processes each do some tiles of the grid (forces/shared_charges.cpp).
// 2. Convolve with the kernel (forces/convolution.cpp). A map both of whose sides exceed kWideMap
//    is convolved twice: with the near part on this grid, and with the far part on one with
//    kCoarseness times the step (forces/coarse_grid.cpp). Padding to twice the width then costs
//    little, as only the coarse grid needs it. A map that is wider still is convolved with the near
//    part in blocks (forces/block_convolution.cpp), each of them in caches; a process does those
//    that its points are in.
// 3. Gather: the potential's spline and its analytic gradient at each point, less what the point's
//    own charge did to it, which is a small polynomial in its place within the grid cell, and a
//    constant for the far part.
#include "forces/repulsive_fft.hpp"

#include "forces/repulsive_tree.hpp"
#include "kernels/dispatch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace acctsne {
namespace {

// Costs in nanoseconds, calibrated by benchmarks/methods.py. The exponent changes nothing.
constexpr double kFixed = 40'000;
constexpr double kPoint = 27;
constexpr double kNode = 0.25; // per node transformed, times log2 of their number

// Nodes beyond those between a map's bounds: a spline reaches over four.
constexpr double kBorderNodes = 5;
// A map that needs fewer nodes than this gets a finer grid: the transform then costs next to
// nothing.
constexpr double kFineNodes = 64;
// Cells that even the narrowest map covers: over few of them the potential would vary by less than
// it is rounded to.
constexpr double kFewestCells = 16;

// How often the step is to be halved for a map that is so many cells wide.
int halvings(double cells) {
  constexpr int kMost = 100;
  const double nodes = cells + kBorderNodes;
  int count = nodes < kFineNodes / 2 ? 2 : (nodes < kFineNodes ? 1 : 0);
  while (cells > 0 && count < kMost && std::ldexp(cells, count) < kFewestCells) {
    ++count;
  }
  return count;
}

// Both sides of a map must be as long as this for two grids to be worth it (benchmarks/steps.py,
// docs/tuning.md).
constexpr double kWideMap = 4 * kNearReach;

// So many blocks must both sides of a grid have for blocks to be worth their margins
// (benchmarks/steps.py, docs/tuning.md).
constexpr Size kFewestBlocks = 6;

double step_for(const RepulsionOptions& options) {
  return grid_step_for_error(options.force_error, options.output_kernel.exponent);
}

} // namespace

double grid_step_for_error(double error, double exponent) {
  return 0.405 * std::pow(error / 0.02, 0.25) / std::sqrt(std::max(exponent, 1.0));
}

template <typename Real, int Dims>
FftRepulsion<Real, Dims>::FftRepulsion(double step, double exponent)
    : step_(step), grid_kernels_(kernels().grid.of<Real>()), kernel_(exponent),
      convolution_(kernel_), coarse_(kernel_), block_convolution_(kernel_) {}

template <typename Real, int Dims>
double FftRepulsion<Real, Dims>::width(const Real* lower, const Real* upper) {
  double widest = 0;
  for (int axis = 0; axis < Dims; ++axis) {
    widest = std::max(widest, static_cast<double>(upper[axis]) - static_cast<double>(lower[axis]));
  }
  return widest;
}

template <typename Real, int Dims>
double FftRepulsion<Real, Dims>::nodes_transformed(const Real* lower, const Real* upper,
                                                   double step) {
  double whole = 1;
  double near = 1;
  double far = 1;
  double shortest = HUGE_VAL;
  for (int axis = 0; axis < Dims; ++axis) {
    const auto span = static_cast<double>(upper[axis]) - static_cast<double>(lower[axis]);
    shortest = std::min(shortest, span);
    whole *= 2 * (span / step + 4);
    near *= (span + kNearReach) / step + 4;
    far *= 2 * (span / (kCoarseness * step) + 4);
  }
  // Half of the lines along x are zeros where lines are padded by their own length.
  constexpr double kWorked = 0.75;
  return Dims == 2 && shortest > kWideMap ? near + kWorked * far : kWorked * whole;
}

template <typename Real, int Dims>
double FftRepulsion<Real, Dims>::cost(const MapView<Real>& map) const {
  const double width_of_map = width(map.lower, map.upper);
  if (!(width_of_map / step_ + kBorderNodes <= static_cast<double>(kMaxGridNodes))) {
    return HUGE_VAL;
  }
  // The potential of a map that is almost one point hardly differs from place to place, and its
  // differences are lost in rounding.
  constexpr double kNarrowest = 100 * static_cast<double>(std::numeric_limits<Real>::epsilon());
  if (width_of_map > 0 && width_of_map < kNarrowest) {
    return HUGE_VAL;
  }
  const double nodes = nodes_transformed(map.lower, map.upper, step_);
  return kFixed + kPoint * static_cast<double>(map.count) + kNode * nodes * std::log2(nodes);
}

template <typename Real, int Dims>
void FftRepulsion<Real, Dims>::forces(const MapView<Real>& map, Communicator& processes,
                                      Real* force, RowSums& z, StepSeconds& seconds,
                                      ThreadTeam& team) {
  const Step step("repulsive", seconds.repulsive);
  compute_potential(map, processes, team);
  const Step gathering("repulsive: gather");
  const Rows own = rows_of(processes, map.count);
  const auto gather = grid_kernels_.gather_points[Dims - 1];
  // What the far part of a point's own charge does to it, and what the others' charges lack.
  const double correction = static_cast<double>(map.count - 1) * missing_potential() -
                            (has_coarse_ ? kernel_(KernelPart::far, 0) - missing_potential() : 0);
  parallel_for(team, own, z.grain(), [&](Size begin, Size end) {
    *z.of_row(begin) += gather(geometry_, map.points + begin * Dims, end - begin, fine_.column(0),
                               force + begin * Dims) +
                        static_cast<double>(end - begin) * correction;
  });
}

template <typename Real, int Dims>
void FftRepulsion<Real, Dims>::compute_potential(const MapView<Real>& map, Communicator& processes,
                                                 ThreadTeam& team) {
  count_ = map.count;
  prepare_grids(map, team);
  charge(map, processes, team);
  convolve(processes, team);
  outside_geometry_ = geometry_;
  std::fill_n(&outside_geometry_.self[0][0], 16, Real(0));
}

template <typename Real, int Dims>
bool FftRepulsion<Real, Dims>::covers(const Real* y) const {
  for (int axis = 0; axis < Dims; ++axis) {
    const Real at = (y[axis] - geometry_.lower[axis]) * geometry_.inverse_step;
    if (!(at >= 0 && at < static_cast<Real>(fine_.nodes(axis) - 3))) {
      return false;
    }
  }
  return true;
}

template <typename Real, int Dims>
double FftRepulsion<Real, Dims>::at(const Real* y, Real* force) const {
  const auto gather = grid_kernels_.gather_points[Dims - 1];
  return gather(outside_geometry_, y, 1, fine_.column(0), force) +
         missing_potential() * static_cast<double>(count_);
}

template <typename Real, int Dims>
void FftRepulsion<Real, Dims>::prepare_grids(const MapView<Real>& map, ThreadTeam& team) {
  const Real* lower = map.lower;
  const Real* upper = map.upper;
  const double step = std::ldexp(step_, -halvings(width(lower, upper) / step_));
  geometry_.inverse_step = static_cast<Real>(1 / step);
  geometry_.force_scale = static_cast<Real>(-0.5 / kernel_.exponent()) * geometry_.inverse_step;
  geometry_.lower[1] = 0;
  Size nodes[2] = {4, 4};
  has_coarse_ = Dims == 2;
  for (int axis = 0; axis < Dims; ++axis) {
    geometry_.lower[axis] = lower[axis];
    // In the arithmetic of the kernels: the largest first node any point can have.
    const Real last = (upper[axis] - lower[axis]) * geometry_.inverse_step;
    nodes[axis] = static_cast<Size>(last) + 4;
    has_coarse_ = has_coarse_ && static_cast<double>(nodes[axis]) * step > kWideMap;
  }
  // Of a narrow map steps may be so short that a block's nodes could not be counted.
  const GridBlocks blocks = has_coarse_ ? GridBlocks(nodes, step) : GridBlocks();
  in_blocks_ = has_coarse_ && std::min(blocks.count[0], blocks.count[1]) >= kFewestBlocks;
  if (in_blocks_) {
    block_convolution_.prepare(blocks, nodes, step, fine_, potential_, team);
  } else {
    convolution_.prepare(has_coarse_ ? KernelPart::near : KernelPart::whole, nodes, step, fine_,
                         team);
  }
  geometry_.stride = fine_.stride();
  const KernelSpectrum<Real>& spectrum =
      in_blocks_ ? block_convolution_.kernel() : convolution_.kernel();
  std::transform(&spectrum.near_nodes()[0][0], &spectrum.near_nodes()[0][0] + 16,
                 &geometry_.self[0][0], [](double value) { return static_cast<Real>(value); });
  if (has_coarse_) {
    coarse_.prepare(fine_, step, in_blocks_ ? &blocks : nullptr, team);
  }
}

template <typename Real, int Dims>
void FftRepulsion<Real, Dims>::charge(const MapView<Real>& map, Communicator& processes,
                                      ThreadTeam& team) {
  if (processes.size() == 1) {
    part_ends_.clear();
    for (Size begin = 0; begin < map.count; begin += kPointsPerSum) {
      part_ends_.push_back(std::min(begin + kPointsPerSum, map.count));
    }
    spreader_.spread(geometry_, {map.points, map.count, part_ends_, {}}, fine_, team);
    return;
  }
  const Size nodes[2] = {fine_.nodes(0), fine_.nodes(1)};
  if (in_blocks_) {
    shared_.divide(nodes, block_convolution_.blocks());
  } else {
    shared_.divide(nodes);
  }
  shared_.send_points(geometry_, map.points, map.count, processes, team);
  spreader_.spread(geometry_, shared_.points(), fine_, team);
  shared_.exchange_tiles(fine_, processes, team);
}

template <typename Real, int Dims>
void FftRepulsion<Real, Dims>::convolve(Communicator& processes, ThreadTeam& team) {
  const Step step("repulsive: transform");
  using Task = typename GridConvolution<Real>::Task;
  const Task fine = {&convolution_, &fine_};
  if (in_blocks_) {
    convolve_in_blocks(processes, team);
  } else if (has_coarse_) {
    coarse_.charge(fine_, team);
    const Task both[] = {fine, coarse_.convolution()};
    GridConvolution<Real>::run(both, team);
    coarse_.add_to(fine_, team);
  } else {
    GridConvolution<Real>::run(std::span(&fine, 1), team);
  }
}

template <typename Real, int Dims>
void FftRepulsion<Real, Dims>::convolve_in_blocks(Communicator& processes, ThreadTeam& team) {
  std::vector<Size> wanted;
  if (processes.size() == 1) {
    coarse_.charge(fine_, team);
    wanted.resize(acctsne::at(block_convolution_.blocks().total()));
    std::iota(wanted.begin(), wanted.end(), Size{0});
  } else {
    const SharedBlocks& shared = shared_.blocks();
    coarse_.charge(fine_, shared.coarsened_by(processes.rank()), team);
    shared.gather_coarse(coarse_.grid(), processes);
    wanted = shared.needed_by(processes.rank());
  }
  const auto far = coarse_.convolution();
  GridConvolution<Real>::run(std::span(&far, 1), team);
  // The far potential is added to a block while it is in caches.
  team.for_chunks(static_cast<Size>(wanted.size()), [&](Size i, int worker) {
    block_convolution_.run(fine_, wanted[acctsne::at(i)], potential_, worker);
    coarse_.add_to(potential_, wanted[acctsne::at(i)], worker);
  });
  std::swap(fine_, potential_);
}

namespace {

// How far beyond the map its field's grid reaches: placed points seldom leave it.
constexpr double kMargin = 5;

template <typename Real, int Dims>
class GridField final : public RepulsiveField<Real> {
public:
  GridField(const MapView<Real>& map, const RepulsionOptions& options, ThreadTeam& team)
      : grid_(step_for(options), options.output_kernel.exponent),
        outside_(kTreeMakers.of<Real>().field(Dims, map, options, team)) {
    Real lower[Dims];
    Real upper[Dims];
    for (int axis = 0; axis < Dims; ++axis) {
      lower[axis] = map.lower[axis] - static_cast<Real>(kMargin);
      upper[axis] = map.upper[axis] + static_cast<Real>(kMargin);
    }
    const MapView<Real> with_margin = {map.points, map.count, lower, upper};
    has_grid_ = std::isfinite(grid_.cost(with_margin));
    if (has_grid_) {
      grid_.compute_potential(with_margin, one_process, team);
    }
  }

  double at(const Real* u, Real* force) const override {
    return has_grid_ && grid_.covers(u) ? grid_.at(u, force) : outside_->at(u, force);
  }

private:
  bool has_grid_ = false;
  FftRepulsion<Real, Dims> grid_;
  std::unique_ptr<RepulsiveField<Real>> outside_;
};

// Calls body with the dimension as a compile-time constant, which is 1 or 2.
template <typename Body>
auto with_grid_dims(int dims, Body&& body) {
  return dims == 1 ? body(std::integral_constant<int, 1>{})
                   : body(std::integral_constant<int, 2>{});
}

template <typename Real>
constexpr MethodMakers<Real> makers = {
    .repulsion =
        [](int dims, const RepulsionOptions& options) {
          return with_grid_dims(dims, [&](auto d) -> std::unique_ptr<Repulsion<Real>> {
            return std::make_unique<FftRepulsion<Real, d()>>(step_for(options),
                                                             options.output_kernel.exponent);
          });
        },
    // The grid covers the map and a margin; elsewhere, and where it would be too large, the tree's.
    .field =
        [](int dims, const MapView<Real>& map, const RepulsionOptions& options, ThreadTeam& team) {
          return with_grid_dims(dims, [&](auto d) -> std::unique_ptr<RepulsiveField<Real>> {
            return std::make_unique<GridField<Real, d()>>(map, options, team);
          });
        },
};

} // namespace

constinit const Both<MethodMakers> kFftMakers = {makers<float>, makers<double>};

template class FftRepulsion<float, 1>;
template class FftRepulsion<float, 2>;
template class FftRepulsion<double, 1>;
template class FftRepulsion<double, 2>;

} // namespace acctsne
