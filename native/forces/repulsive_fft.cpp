// Step 6, repulsive forces, by convolution on a grid.
//
// With the potential phi(y) = sum_j (1 + |y - y_j|^2)^-e, e the exponent, the repulsive force is
// -1/(2 e) grad phi and Z = sum_i phi(y_i), each without the point's own part: one charge and one
// convolution give both (FIt-SNE and openTSNE convolve four).
//
// 1. Spread: each point adds cubic B-spline weights to 4 x 4 nodes. Points are sorted by strips of
//    columns; strips with even numbers, then with odd ones, are worked on in parallel, so no two
//    threads meet and the order of additions is fixed. Several processes each do some tiles of the
//    grid, in the same order (forces/shared_charges.cpp).
// 2. Convolve with the kernel (forces/convolution.cpp). A map both of whose sides exceed kWideMap
//    is convolved twice: with the near part on this grid, and with the far part on one with
//    kCoarseness times the step, to which charges and from which the potential go by the two-scale
//    relation of splines, exactly (forces/grid_kernel.hpp, kernels/two_scale-inl.hpp). Padding to
//    twice the width then costs little, as only the coarse grid needs it. A map that is wider still
//    is convolved with the near part in blocks (forces/block_convolution.cpp), each of them in
//    caches; a process does those that its points are in.
// 3. Gather: the potential's spline and its analytic gradient at each point, less what the point's
//    own charge did to it, which is a small polynomial in its place within the grid cell, and a
//    constant for the far part.
#include "forces/repulsive_fft.hpp"

#include "forces/repulsive_tree.hpp"
#include "kernels/dispatch.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

namespace acctsne {
namespace {

// Points of a chunk that is sorted into strips: so few that many threads have even shares, unless
// the chunks' histograms would be too many to add up one by one.
Size points_per_chunk(Size count) {
  constexpr Size kFewestPoints = 512;
  constexpr Size kMostChunks = 256;
  return std::max(kFewestPoints, chunk_count(count, kMostChunks));
}

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

// How often the step is to be halved for a map that needs so many nodes.
int halvings(double nodes_needed, double cells) {
  constexpr int kMost = 100;
  int count = nodes_needed < kFineNodes / 2 ? 2 : (nodes_needed < kFineNodes ? 1 : 0);
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

// Numbers between the two grids that a block's far potential is made of.
Size block_lines_size(const GridBlocks& blocks) {
  return (blocks.side / kCoarseness + 3) * blocks.side;
}

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
      convolution_(kernel_), far_convolution_(kernel_), block_convolution_(kernel_) {}

template <typename Real, int Dims>
double FftRepulsion<Real, Dims>::nodes_needed(const Real* lower, const Real* upper, double step) {
  double span = 0;
  for (int axis = 0; axis < Dims; ++axis) {
    span = std::max(span, static_cast<double>(upper[axis]) - static_cast<double>(lower[axis]));
  }
  return span / step + kBorderNodes;
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
  if (!(nodes_needed(map.lower, map.upper, step_) <= static_cast<double>(kMaxGridNodes))) {
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
  const double widest = nodes_needed(lower, upper, step_);
  const double step = std::ldexp(step_, -halvings(widest, widest - kBorderNodes));
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
  const GridBlocks blocks(nodes, step);
  in_blocks_ = has_coarse_ && std::min(blocks.count[0], blocks.count[1]) >= kFewestBlocks;
  if (in_blocks_) {
    block_convolution_.prepare(blocks, nodes, step, fine_, potential_, team);
    block_lines_.resize(acctsne::at(team.size() * block_lines_size(blocks)));
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
    const Size coarse_nodes[2] = {chunk_count(nodes[0], kCoarseness) + 3,
                                  chunk_count(nodes[1], kCoarseness) + 3};
    far_convolution_.prepare(KernelPart::far, coarse_nodes, kCoarseness * step, coarse_, team);
    // A line of coarsen() with its zeros, or one of add_far_potential().
    line_size_ = fine_.stride() + 8 * kCoarseness;
    lines_.resize(
        static_cast<std::size_t>(std::max<Size>(team.size(), coarse_nodes[0]) * line_size_));
  }
}

template <typename Real, int Dims>
void FftRepulsion<Real, Dims>::charge(const MapView<Real>& map, Communicator& processes,
                                      ThreadTeam& team) {
  const auto strips = static_cast<std::size_t>(chunk_count(fine_.nodes(0), kStripColumns));
  is_full_.resize(strips);
  if (processes.size() > 1) {
    const Size nodes[2] = {fine_.nodes(0), fine_.nodes(1)};
    if (in_blocks_) {
      shared_.divide(nodes, block_convolution_.blocks());
    } else {
      shared_.divide(nodes);
    }
    shared_.send_points(geometry_, map.points, map.count, processes, team);
    const ChargingPoints<Real> charging = shared_.points();
    sort_into_strips(charging.points, charging.count, team);
    for (std::size_t strip = 0; strip < strips; ++strip) {
      is_full_[strip] = shared_.points_in(static_cast<Size>(strip)) > kPointsPerSum;
    }
    spread(charging, team);
    shared_.exchange_tiles(fine_, processes, team);
    return;
  }
  part_ends_.clear();
  for (Size begin = 0; begin < map.count; begin += kPointsPerSum) {
    part_ends_.push_back(std::min(begin + kPointsPerSum, map.count));
  }
  sort_into_strips(map.points, map.count, team);
  for (std::size_t strip = 0; strip < strips; ++strip) {
    is_full_[strip] = strip_starts_[strip + 1] - strip_starts_[strip] > kPointsPerSum;
  }
  spread({map.points, map.count, part_ends_}, team);
}

template <typename Real, int Dims>
void FftRepulsion<Real, Dims>::sort_into_strips(const Real* points, Size count, ThreadTeam& team) {
  const Step step("repulsive: spread");
  const auto n = static_cast<std::size_t>(count);
  const auto strips = static_cast<std::size_t>(chunk_count(fine_.nodes(0), kStripColumns));
  const Size grain = points_per_chunk(count);
  const auto chunks = static_cast<std::size_t>(chunk_count(count, grain));
  ids_.resize(n);
  strip_of_.resize(n);
  strip_starts_.resize(strips + 1);
  histograms_.resize(chunks * strips);

  parallel_for(team, count, grain, [&](Size begin, Size end) {
    std::uint32_t* histogram =
        histograms_.data() + static_cast<std::size_t>(begin / grain) * strips;
    std::fill_n(histogram, strips, 0u);
    for (Size i = begin; i < end; ++i) {
      const Real at = (points[i * Dims] - geometry_.lower[0]) * geometry_.inverse_step;
      const auto strip = static_cast<std::int32_t>(at) / static_cast<std::int32_t>(kStripColumns);
      strip_of_[static_cast<std::size_t>(i)] = strip;
      ++histogram[strip];
    }
  });
  std::uint32_t start = 0;
  for (std::size_t strip = 0; strip < strips; ++strip) {
    strip_starts_[strip] = start;
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      start += std::exchange(histograms_[chunk * strips + strip], start);
    }
  }
  strip_starts_[strips] = start;
  parallel_for(team, count, grain, [&](Size begin, Size end) {
    std::uint32_t* next = histograms_.data() + static_cast<std::size_t>(begin / grain) * strips;
    for (Size i = begin; i < end; ++i) {
      ids_[next[strip_of_[static_cast<std::size_t>(i)]]++] = static_cast<PointId>(i);
    }
  });
}

template <typename Real, int Dims>
void FftRepulsion<Real, Dims>::spread(const ChargingPoints<Real>& charging, ThreadTeam& team) {
  const Step step("repulsive: spread");
  fine_.clear(team);
  const auto kernel = grid_kernels_.spread_points[Dims - 1];
  const Size strips = static_cast<Size>(strip_starts_.size()) - 1;
  for (Size parity = 0; parity < 2; ++parity) {
    team.for_chunks((strips - parity + 1) / 2, [&](Size chunk, int) {
      const std::size_t strip = acctsne::at(2 * chunk + parity);
      if (!is_full_[strip]) {
        const Size begin = strip_starts_[strip];
        kernel(geometry_, charging.points, ids_.data() + begin, strip_starts_[strip + 1] - begin,
               fine_.column(0));
      }
    });
    spread_in_parts(charging, parity, team);
  }
}

// The full strips of one parity. Parts of their points are spread over columns of their own, which
// are then added to the grid's in the order of the parts.
template <typename Real, int Dims>
void FftRepulsion<Real, Dims>::spread_in_parts(const ChargingPoints<Real>& charging, Size parity,
                                               ThreadTeam& team) {
  parts_.clear();
  for (std::size_t strip = acctsne::at(parity); strip < is_full_.size(); strip += 2) {
    const PointId* last = ids_.data() + strip_starts_[strip + 1];
    for (const PointId* ids = ids_.data() + strip_starts_[strip]; is_full_[strip] && ids < last;) {
      const Size part_end = *std::ranges::upper_bound(charging.part_ends, Size{*ids});
      const PointId* next = std::lower_bound(ids, last, part_end);
      parts_.push_back({static_cast<Size>(strip) * kStripColumns, ids, next});
      ids = next;
    }
  }
  if (parts_.empty()) {
    return;
  }
  const auto kernel = grid_kernels_.spread_points[Dims - 1];
  constexpr Size kColumns = kStripColumns + 3; // a point's four may reach into the next strip
  const Size part_size = kColumns * fine_.stride();
  constexpr Size kAtOnce = 64; // enough for many threads, few enough to stay in caches
  part_columns_.resize(acctsne::at(kAtOnce * part_size));
  for (Size first = 0; first < static_cast<Size>(parts_.size()); first += kAtOnce) {
    const std::span<const Part> some = std::span(parts_).subspan(
        acctsne::at(first), std::min(acctsne::at(kAtOnce), parts_.size() - acctsne::at(first)));
    team.for_chunks(static_cast<Size>(some.size()), [&](Size i, int) {
      const Part& part = some[acctsne::at(i)];
      Real* columns = part_columns_.data() + i * part_size;
      std::fill_n(columns, part_size, Real(0));
      // The kernel counts nodes from the grid's first column.
      GridGeometry<Real> geometry = geometry_;
      geometry.first_column = part.first_column;
      kernel(geometry, charging.points, part.begin, part.end - part.begin, columns);
    });
    team.for_chunks(kColumns, [&](Size column, int) {
      const Real* from = part_columns_.data() + column * fine_.stride();
      for (const Part& part : some) {
        if (part.first_column + column < fine_.nodes(0)) {
          Real* to = fine_.column(part.first_column + column);
          std::transform(from, from + fine_.stride(), to, to, std::plus<>());
        }
        from += part_size;
      }
    });
  }
}

template <typename Real, int Dims>
void FftRepulsion<Real, Dims>::convolve(Communicator& processes, ThreadTeam& team) {
  const Step step("repulsive: transform");
  using Task = typename GridConvolution<Real>::Task;
  const Task fine = {&convolution_, &fine_};
  const Task coarse = {&far_convolution_, &coarse_};
  if (has_coarse_) {
    coarsen(processes, team);
  }
  if (in_blocks_) {
    GridConvolution<Real>::run(std::span(&coarse, 1), team);
    convolve_blocks(processes, team);
  } else if (has_coarse_) {
    const Task both[] = {fine, coarse};
    GridConvolution<Real>::run(both, team);
    add_far_potential(team);
  } else {
    GridConvolution<Real>::run(std::span(&fine, 1), team);
  }
}

template <typename Real, int Dims>
void FftRepulsion<Real, Dims>::coarsen(Communicator& processes, ThreadTeam& team) {
  coarse_.clear(team); // the transform reads whole vectors
  const auto line = [&](int worker) { return lines_.data() + worker * line_size_; };
  if (!in_blocks_ || processes.size() == 1) {
    team.for_chunks(coarse_.nodes(0), [&](Size x, int worker) {
      coarsen_column(x, {0, coarse_.nodes(1)}, line(worker));
    });
    return;
  }
  const GridBlocks& blocks = block_convolution_.blocks();
  const std::vector<Size> own = shared_.blocks().coarsened_by(processes.rank());
  team.for_chunks(static_cast<Size>(own.size()), [&](Size i, int worker) {
    const Rows columns = blocks.coarse_columns_of(own[acctsne::at(i)], coarse_.nodes(0));
    for (Size x = columns.begin; x < columns.end; ++x) {
      coarsen_column(x, blocks.coarse_rows_of(own[acctsne::at(i)], coarse_.nodes(1)), line(worker));
    }
  });
  shared_.blocks().gather_coarse(coarse_, processes);
}

// Some rows of a column of the coarse grid. `line` has room for the fine nodes that they are made
// of.
template <typename Real, int Dims>
void FftRepulsion<Real, Dims>::coarsen_column(Size x, Rows rows, Real* line) {
  const Real* columns[4 * kCoarseness];
  Real weights[4 * kCoarseness];
  const Size first = kCoarseness * (rows.begin - 3); // of the line's nodes
  const Size begin = std::max<Size>(first, 0);
  const Size end = std::min(kCoarseness * rows.end, fine_.nodes(1));
  int count = 0;
  for (Size i = 3; i < 4 * kCoarseness; ++i) {
    const Size from = kCoarseness * (x - 3) + i;
    if (from >= 0 && from < fine_.nodes(0)) {
      columns[count] = fine_.column(from) + begin;
      weights[count++] = TwoScale<Real>::kWeights[i];
    }
  }
  std::fill_n(line, line_size_, Real(0));
  const Size length = chunk_count(end - begin, grid_kernels_.lanes) * grid_kernels_.lanes;
  grid_kernels_.add_lines(columns, weights, count, length, line + begin - first);
  grid_kernels_.coarsen_line(line + 3 * kCoarseness, rows.end - rows.begin,
                             coarse_.column(x) + rows.begin);
}

// The near potential of blocks, and the far one added while they are in caches.
template <typename Real, int Dims>
void FftRepulsion<Real, Dims>::convolve_blocks(Communicator& processes, ThreadTeam& team) {
  const GridBlocks& blocks = block_convolution_.blocks();
  std::vector<Size> own;
  if (processes.size() > 1) {
    own = shared_.blocks().needed_by(processes.rank());
  } else {
    own.resize(acctsne::at(blocks.total()));
    std::iota(own.begin(), own.end(), Size{0});
  }
  team.for_chunks(static_cast<Size>(own.size()), [&](Size i, int worker) {
    block_convolution_.run(fine_, own[acctsne::at(i)], potential_, worker);
    add_far_potential(own[acctsne::at(i)], block_lines_.data() + worker * block_lines_size(blocks));
  });
  std::swap(fine_, potential_);
}

template <typename Real, int Dims>
void FftRepulsion<Real, Dims>::add_far_potential(Size block, Real* lines) {
  const GridBlocks& blocks = block_convolution_.blocks();
  const Rows columns = blocks.columns_of(block);
  const Rows rows = blocks.rows_of(block);
  const Size first = columns.begin / kCoarseness;
  const Size end = std::min(columns.end / kCoarseness + 3, coarse_.nodes(0));
  // Beyond the grid, nodes are not wanted.
  const Size fours =
      std::min(rows.end / kCoarseness, coarse_.nodes(1) - 3) - rows.begin / kCoarseness;
  for (Size x = first; x < end; ++x) {
    Real* line = lines + (x - first) * blocks.side;
    grid_kernels_.refine_line(coarse_.column(x) + rows.begin / kCoarseness, fours, line);
    std::fill(line + fours * kCoarseness, line + blocks.side, Real(0));
  }
  for (Size x = columns.begin; x < std::min(columns.end, fine_.nodes(0)); ++x) {
    const Real* around[4];
    Real weights[4];
    for (Size i = 0; i < 4; ++i) {
      around[i] = lines + (x / kCoarseness + 3 - i - first) * blocks.side;
      weights[i] = TwoScale<Real>::kWeights[kCoarseness * i + x % kCoarseness];
    }
    grid_kernels_.add_lines(around, weights, 4, blocks.side, potential_.column(x) + rows.begin);
  }
}

template <typename Real, int Dims>
void FftRepulsion<Real, Dims>::add_far_potential(ThreadTeam& team) {
  const GridKernels<Real>& kernel = grid_kernels_;
  parallel_for(team, coarse_.nodes(0), 2, [&](Size begin, Size end) {
    for (Size x = begin; x < end; ++x) {
      kernel.refine_line(coarse_.column(x), coarse_.nodes(1) - 3, lines_.data() + x * line_size_);
    }
  });
  parallel_for(team, fine_.nodes(0), 4, [&](Size begin, Size end) {
    for (Size x = begin; x < end; ++x) {
      const Real* lines[4];
      Real weights[4];
      for (Size i = 0; i < 4; ++i) {
        lines[i] = lines_.data() + (x / kCoarseness + 3 - i) * line_size_;
        weights[i] = TwoScale<Real>::kWeights[kCoarseness * i + x % kCoarseness];
      }
      kernel.add_lines(lines, weights, 4, fine_.stride(), fine_.column(x));
    }
  });
}

namespace {

// How far beyond the map its field's grid reaches: placed points seldom leave it.
constexpr double kMargin = 5;

template <typename Real, int Dims>
class GridField final : public RepulsiveField<Real> {
public:
  GridField(const MapView<Real>& map, const RepulsionOptions& options, ThreadTeam& team)
      : grid_(step_for(options), options.output_kernel.exponent),
        outside_(make_tree_field<Real>(Dims, map, options, team)) {
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

} // namespace

template <typename Real>
std::unique_ptr<Repulsion<Real>> make_fft_repulsion(int dims, const RepulsionOptions& options) {
  return with_grid_dims(dims, [&](auto d) -> std::unique_ptr<Repulsion<Real>> {
    return std::make_unique<FftRepulsion<Real, d()>>(step_for(options),
                                                     options.output_kernel.exponent);
  });
}

template <typename Real>
std::unique_ptr<RepulsiveField<Real>> make_fft_field(int dims, const MapView<Real>& map,
                                                     const RepulsionOptions& options,
                                                     ThreadTeam& team) {
  return with_grid_dims(dims, [&](auto d) -> std::unique_ptr<RepulsiveField<Real>> {
    return std::make_unique<GridField<Real, d()>>(map, options, team);
  });
}

#define ACCTSNE_INSTANTIATE(Real)                                                                  \
  template class FftRepulsion<Real, 1>;                                                            \
  template class FftRepulsion<Real, 2>;                                                            \
  template std::unique_ptr<Repulsion<Real>> make_fft_repulsion(int, const RepulsionOptions&);      \
  template std::unique_ptr<RepulsiveField<Real>> make_fft_field(                                   \
      int, const MapView<Real>&, const RepulsionOptions&, ThreadTeam&);
ACCTSNE_INSTANTIATE(float)
ACCTSNE_INSTANTIATE(double)
#undef ACCTSNE_INSTANTIATE

} // namespace acctsne
