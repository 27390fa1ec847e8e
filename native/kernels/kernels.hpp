// The kernel table: the innermost loops of every step, compiled once per instruction set from one
// body.
//
// Callers hold the table for a whole pass and hand over raw pointers only; vector types never cross
// this border.
#pragma once

#include "acctsne/types.hpp"
#include "tree/node.hpp"

#include <tuple>

namespace acctsne {

// Queries that one call of filter_tile, estimate_tile or probe_tile compares with one panel of
// points.
inline constexpr int kTileQueries = 6;

// Numbers of leading dims after which a tile may be given up; the last is all of them.
inline constexpr int kMostStages = 4;
struct TileStages {
  TileStages(const Size (&wanted)[kMostStages - 1], Size all) {
    for (const Size stage : wanted) {
      if (stage < all) {
        dims[count++] = stage;
      }
    }
    dims[count++] = all;
  }
  int count = 0;
  Size dims[kMostStages];
};

// Coordinates of points as 16-bit integers, each point's in a unit of its own.
struct FilterQueries {
  const std::int16_t* coordinates[kTileQueries];
  float factors[kTileQueries];                   // -2 units
  float norms[kTileQueries];                     // squared
  float rest_factors[kMostStages][kTileQueries]; // -2 norms of what lies beyond each stage's dims
  float limits[kTileQueries];
};
struct FilterPanel {
  const std::int16_t* coordinates; // pairs of dims, one after the other: panel_points x 2
  const float* units;
  const float* norms;
  const float* rests;  // stage after stage
  const float* limits; // of the points themselves, or null
};
// A bit for each point of the panel whose distance from query q may be below the query's limit, and
// below the point's own.
struct FilterHits {
  std::uint64_t of_query[kTileQueries];
  std::uint64_t of_point[kTileQueries];
};

struct ProbeQueries {
  const float* coordinates[kTileQueries];
  float rests[kTileQueries]; // norm of what lies beyond the dims
  float limits[kTileQueries];
};

// Most points of a group that walks the tree together: larger groups walk less often and interact
// with more. Final MNIST-70k map, float, AVX-512, 2 threads: 7.5 ms with 24, 6.6 with 32, 5.3 with
// 48, 5.0 with 64.
inline constexpr int kGroupPoints = 64;

// A kernel that depends on the embedding's dimension. All are told it; those compiled for it need
// not look.
template <typename Kernel>
struct ByDims {
  Kernel compiled[kCompiledDims];
  Kernel any;

  Kernel of(int dims) const { return dims <= kCompiledDims ? compiled[dims - 1] : any; }
};

// What update_points gathers over its range, besides moving the points: a view of size(dims)
// numbers.
struct UpdateSums {
  static constexpr Size size(int dims) { return 3 * dims + 4; }
  UpdateSums(double* numbers, int dims)
      : position(numbers), lower(numbers + dims), upper(numbers + 2 * dims),
        squared_gradient(numbers[3 * dims]), last_work(numbers[3 * dims + 1]),
        next_work(numbers[3 * dims + 2]), turned(numbers[3 * dims + 3]) {}

  double* position; // these three: one value an axis
  double* lower;
  double* upper;
  double& squared_gradient; // of delta-bar-delta scaled by the gains, as scikit-learn has it
  double& last_work;        // products of the gradient and the step that led here
  double& next_work;        // products of the gradient and the step from here
  double& turned;           // coordinates of points whose step turned round and grew
};

// How a gradient becomes a step (kernels/step_rule-inl.hpp).
enum class StepRule { delta_bar_delta, heavy_ball };

template <typename Real>
struct UpdateParameters {
  Real attraction_scale; // 4 * exaggeration
  Real repulsion_scale;  // -4 / Z
  Real learning_rate;    // in scikit-learn's unit: the gradient carries its factor 4
  Real momentum;
  Real max_step;     // steps longer than this are shortened to it
  const Real* shift; // taken from every position: the mean before this step; null for nothing
  StepRule rule;
};

// Coordinates of all points, those of a point side by side.
template <typename Real>
struct UpdateArrays {
  const Real* attractive;
  const Real* repulsive;
  const Real* preconditioner; // of the heavy ball
  Real* points;
  Real* updates; // the last step
  Real* gains;
};

// Rows that share a window of near columns (forces/edges.cpp).
inline constexpr Size kEdgeBlockRows = 256;
inline constexpr Size kEdgeWindow = 65536;

// The first column of the window of the block that begins at `first_row`.
constexpr Size edge_window(Size first_row, Size rows) {
  const Size centered = first_row - (kEdgeWindow - kEdgeBlockRows) / 2;
  const Size last = rows - kEdgeWindow;
  const Size window = centered < last ? centered : last;
  return window > 0 ? window : 0;
}

// P as forces/edges.cpp stores it. Values are half-precision numbers, to be divided by half_scale,
// if that is not zero, and Real otherwise.
template <typename Real>
struct EdgeView {
  Size rows;
  Real half_scale;
  const EdgeId* near_offsets;        // rows + 1, multiples of edge_lanes
  const std::uint16_t* near_columns; // counted from the window of the row's block
  const void* near_values;
  const EdgeId* far_offsets; // rows + 1, multiples of edge_lanes
  const PointId* far_columns;
  const void* far_values;
};

// A complex FFT of 2^a 3^b 5^c elements, a >= 4, cut into passes; the first and the last have radix
// 4. In between, a pass does many small FFTs, which are cut into factors of 2 to 5.
struct FftPass {
  int radix;
  int factors;
  int factor[6];
};
inline constexpr int kMaxRadix = 64; // two buffers of so many complex vectors fit the first cache
template <typename Real>
struct FftPlan {
  Size length;
  int passes;
  FftPass pass[4];
  // Of each pass but the last: the factors' but the last, then its own; for each block, the powers
  // 1 ... radix - 1 of its root, cosine and sine.
  const Real* twiddles;
};

// Where the nodes of the grid [x][y] lie.
template <typename Real>
struct GridGeometry {
  Real lower[2];     // node (0, 0)
  Real inverse_step; // nodes per unit
  Real force_scale;  // force for a potential that grows by 1 a step
  Size stride;       // elements from one x to the next
  Size first_column; // the x whose column the array begins with
  Real self[4][4];   // what a charge on node (0, 0) does to nodes (+-m, +-n), summed over the signs
};

// The coefficient of a coarse cubic B-spline in the sum of fine ones with a quarter of its step
// that it equals, after three zeros: the fourfold convolution of four ones, over 64.
inline constexpr Size kCoarseness = 4;
template <typename Real>
struct TwoScale {
  static constexpr Real kWeights[16] = {0,
                                        0,
                                        0,
                                        Real(1) / 64, //
                                        Real(4) / 64,
                                        Real(10) / 64,
                                        Real(20) / 64,
                                        Real(31) / 64, //
                                        Real(40) / 64,
                                        Real(44) / 64,
                                        Real(40) / 64,
                                        Real(31) / 64, //
                                        Real(20) / 64,
                                        Real(10) / 64,
                                        Real(4) / 64,
                                        Real(1) / 64};
};

// Repulsion with the similarity q = (1 + d^2)^-exponent.
template <typename Real>
struct RepulsiveKernels {
  // forces/repulsive_exact.cpp: adds sum_j q (y - y_j) / (1 + d^2) over points [begin, end), one
  // array per axis, to force, and returns sum_j q. The arrays go on, with whatever is finite, for a
  // vector's lanes beyond the end.
  using Range = double (*)(int dims, const Real* const* axes, Size begin, Size end, const Real* y,
                           Real exponent, double* force);
  ByDims<Range> range;

  // forces/repulsive_tree.cpp: adds what is listed, and the group's own points if asked for, to the
  // forces on the group's points; returns the sum of their z.
  template <int Dims>
  using PushGroup = double (*)(const TreeView<Real, Dims>& tree, PointGroup group,
                               const InteractionList<Dims>& list, bool with_group, Real exponent,
                               Real* force);
  std::tuple<PushGroup<1>, PushGroup<2>, PushGroup<3>> push_group;

  // forces/field.cpp: force of all points on a position, and its z.
  template <int Dims>
  using PushPosition = double (*)(const TreeView<Real, Dims>& tree, const Real* y,
                                  const Acceptance<Real>& accept, Real exponent, Real* force);
  std::tuple<PushPosition<1>, PushPosition<2>, PushPosition<3>> push_position;
};

template <typename Real>
struct RealKernels {
  // morton.cpp: cell numbers (y - lower) * scale, clamped to kMortonBits bits an axis, interleaved.
  using MortonCodes = void (*)(const Real* points, Size count, const Real* lower, Real scale,
                               MortonCode* codes);
  MortonCodes morton_codes[kCompiledDims]; // by dimension less one

  // forces/repulsive_tree.cpp: lists what acts on a group, from the node `next` on, until the list
  // is full.
  template <int Dims>
  using ListSources = void (*)(const TreeView<Real, Dims>& tree, PointGroup group,
                               const Acceptance<Real>& accept, NodeId next,
                               InteractionList<Dims>& list);
  std::tuple<ListSources<1>, ListSources<2>, ListSources<3>> list_sources;

  // forces/attractive.cpp: force[i] = sum_j p_ij (y_i - y_j) / (1 + d^2) for the rows [begin, end)
  // of one block.
  using AttractiveRows = void (*)(int dims, const EdgeView<Real>& edges, const Real* points,
                                  Size begin, Size end, Real* force);
  ByDims<AttractiveRows> attractive_rows;

  // forces/attractive.cpp: sum_ij p_ij log(1 + d^2) over the rows [begin, end) of one block, the
  // part of KL that moves with Y.
  using CrossEntropyRows = double (*)(int dims, const EdgeView<Real>& edges, const Real* points,
                                      Size begin, Size end);
  ByDims<CrossEntropyRows> cross_entropy_rows;

  // forces/edges.cpp: values times scale as half-precision numbers; null where the instruction set
  // does not convert them. `count` is a multiple of edge_lanes.
  void (*to_half)(const Real* values, Size count, Real scale, std::uint16_t* halves);
  int edge_lanes; // of the vectors of the three above

  RepulsiveKernels<Real> first_power; // similarity (1 + d^2)^-1, whatever the exponent given
  RepulsiveKernels<Real> any_power;
  const RepulsiveKernels<Real>& repulsive(double exponent) const {
    return exponent == 1 ? first_power : any_power;
  }

  // optimize/update.cpp: one step of gradient descent for points [begin, end).
  using UpdatePoints = void (*)(int dims, const UpdateParameters<Real>& parameters,
                                const UpdateArrays<Real>& arrays, Size begin, Size end,
                                UpdateSums sums);
  ByDims<UpdatePoints> update_points;

  // forces/convolution.cpp: its three passes, each for the rows or columns that fill a vector.
  // `scratch` holds 6 * length * vector lanes elements.
  void (*fft_grid_to_spectrum)(const FftPlan<Real>& plan, const Real* grid, Size grid_stride,
                               Size columns, Real* spectrum, Size slab_size, Real* scratch);
  void (*fft_convolve_slab)(const FftPlan<Real>& plan, const Real* kernel, Size rows, Real* slab,
                            Real* scratch);
  void (*fft_spectrum_to_grid)(const FftPlan<Real>& plan, const Real* spectrum, Size slab_size,
                               Real* grid, Size grid_stride, Size columns, Real* scratch);
  void (*fft_even_lines)(const FftPlan<Real>& plan, Real* lines, Size stride, Real* scratch);
  // forces/repulsive_fft.cpp: between the fine and the coarse grid, and between points and grid.
  void (*coarsen_line)(const Real* fine, Size coarse_nodes, Real* coarse);
  void (*refine_line)(const Real* coarse, Size fours, Real* fine);
  void (*add_lines)(const Real* const* lines, const Real* weights, int count, Size length,
                    Real* to);
  // In 1-D and 2-D only.
  using SpreadPoints = void (*)(const GridGeometry<Real>& geometry, const Real* points,
                                const PointId* ids, Size count, Real* grid);
  SpreadPoints spread_points[2];
  using GatherPoints = double (*)(const GridGeometry<Real>& geometry, const Real* points,
                                  const PointId* ids, Size count, const Real* grid, Real* force);
  GatherPoints gather_points[2];

  int lanes; // of a vector of Real

  // neighbors/approximate.cpp, neighbors/exact.cpp: squared distance of two rows of the data times
  // scale, in Real and in double.
  using SquaredDistance = double (*)(const Real* a, const Real* b, Size features, double scale);
  SquaredDistance near_distance;
  SquaredDistance squared_distance;

  // neighbors/full_distances.cpp, neighbors/approximate.cpp: squared distances of a point from the
  // named ones of the rows, in Real, as near_distance has them; zeros fill rows to whole cache
  // lines.
  void (*squared_distances_to)(const Real* point, const Real* rows, const PointId* named,
                               Size count, Size dims, Real* distances);
  // Likewise of rows of integers, whose sums must fit 32 bits.
  void (*squared_distances_of_integers)(const std::int16_t* point, const std::int16_t* rows,
                                        const PointId* named, Size count, Size dims,
                                        Real* distances);
  // neighbors/byte_rows.cpp: whether all numbers are bytes, which are then written.
  bool (*to_bytes)(const Real* from, Size count, std::uint8_t* to);

  // forces/edges.cpp: the sum of p log p, where p > 0.
  double (*negative_entropy)(const Real* probabilities, Size count);
};

struct KernelTable {
  const char* level;
  int panel_points; // points that one panel of the tile kernels holds
  RealKernels<float> f32;
  RealKernels<double> f64;

  // neighbors/cell_search.cpp: for kTileQueries queries and one panel, where the lower bound of the
  // squared distance is below a limit. False, as soon as a stage shows it, if there is no hit.
  bool (*filter_tile)(const FilterQueries& queries, const FilterPanel& panel,
                      const TileStages& stages, FilterHits& hits);
  // neighbors/cell_search.cpp: what to expect of the squared distances, if nothing is known of the
  // rests' directions; estimates[q] gets a panel's.
  void (*estimate_tile)(const FilterQueries& queries, const FilterPanel& panel, Size dims,
                        float* const* estimates);
  // neighbors/cell_search.cpp: how many numbers are below the limit, and which, a bit each: a
  // panel's in each word, words `stride` apart. `count` is a multiple of panel_points.
  Size (*count_below)(const float* numbers, Size count, float limit);
  void (*bits_below)(const float* numbers, Size count, float limit, std::uint64_t* bits,
                     Size stride);
  // neighbors/full_distances.cpp.
  void (*widen_bytes)(const std::uint8_t* from, Size count, std::int16_t* to);
  // neighbors/cell_search.cpp, neighbors/probe.cpp: distances of a point from rows `stride` apart.
  void (*distances_to_rows)(const float* point, const float* rows, Size count, Size dims,
                            Size stride, float* distances);

  // neighbors/probe.cpp: squared distances on the leading dims, with the difference of the rests,
  // of kTileQueries queries and the points of one panel (dims x panel_points), query by query, and
  // in hits[q] a bit per point where they are below limits[q]. False, with nothing written, if
  // there is none.
  bool (*probe_tile)(const ProbeQueries& queries, const float* panel, const float* panel_rests,
                     const TileStages& stages, std::uint64_t* hits, float* distances);
  // neighbors/probe.cpp: mean and variance of the squared distance of each point of one panel from
  // normally distributed ones with this centre and these variances along the dims.
  void (*spread_of_distances)(const float* panel, Size dims, const float* center,
                              const float* variances, float* means, float* spreads);

  // affinities/perplexity.cpp: with w_j = mask_j exp(-beta d_j), writes w and the sums of w, w d
  // and w d^2. `count` is a multiple of kRowPadding.
  void (*gaussian_row)(const double* distances, const double* mask, Size count, double beta,
                       double* weights, double* sums);

  template <typename Real>
  const RealKernels<Real>& of() const {
    if constexpr (sizeof(Real) == sizeof(float)) {
      return f32;
    } else {
      return f64;
    }
  }
};

// Rows handed to gaussian_row are padded to a multiple of this: the widest vector's lanes of
// double.
inline constexpr Size kRowPadding = 8;

} // namespace acctsne
