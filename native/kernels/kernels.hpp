// The kernel table: the innermost loops of every step, compiled once per instruction set from one
// body.
//
// Callers hold the table for a whole pass and hand over raw pointers only; vector types never cross
// this border. Each array member is indexed by the embedding's dimension minus one.
#pragma once

#include "acctsne/types.hpp"

namespace acctsne {

// Queries that one call of filter_tile compares with one panel of points.
inline constexpr int kTileQueries = 6;

// What update_points gathers over its range, besides moving the points.
struct UpdateSums {
  double position[kMaxDims] = {};
  double lower[kMaxDims] = {};
  double upper[kMaxDims] = {};
  double squared_gradient =
      0; // of the gradient scaled by its gains, as scikit-learn defines its norm
};

template <typename Real>
struct UpdateParameters {
  Real attraction_scale; // 4 * exaggeration
  Real repulsion_scale;  // -4 / Z
  Real learning_rate;    // in scikit-learn's unit: the gradient carries its factor 4
  Real momentum;
  Real max_step;        // steps longer than this are shortened to it
  Real shift[kMaxDims]; // taken from every position: the mean before this step
};

template <typename Real>
struct RealKernels {
  // morton.cpp: cell numbers (y - lower) * scale, clamped to kMortonBits bits an axis, interleaved.
  using MortonCodes = void (*)(const Real* points, Size count, const Real* lower, Real scale,
                               MortonCode* codes);
  MortonCodes morton_codes[kMaxDims];

  // forces/attractive.cpp: force[i] = sum_j p_ij (y_i - y_j) / (1 + d^2) for rows [begin, end).
  using AttractiveRows = void (*)(const EdgeId* offsets, const PointId* columns, const Real* values,
                                  const Real* points, Size begin, Size end, Real* force);
  AttractiveRows attractive_rows[kMaxDims];

  // forces/attractive.cpp: sum_ij p_ij log(1 + d^2) over rows [begin, end), the part of KL that
  // moves with Y.
  using CrossEntropyRows = double (*)(const EdgeId* offsets, const PointId* columns,
                                      const Real* values, const Real* points, Size begin, Size end);
  CrossEntropyRows cross_entropy_rows[kMaxDims];

  // forces/repulsive_exact.cpp: adds sum_j (y - y_j) / (1 + d^2)^2 over points [begin, end), one
  // array per axis, to force, and returns sum_j 1 / (1 + d^2).
  using RepulsiveRange = double (*)(const Real* const* axes, Size begin, Size end, const Real* y,
                                    double* force);
  RepulsiveRange repulsive_range[kMaxDims];

  // optimize/update.cpp: one step of gradient descent with gains and momentum for points [begin,
  // end).
  using UpdatePoints = void (*)(const UpdateParameters<Real>& parameters, Size begin, Size end,
                                const Real* attractive, const Real* repulsive, Real* points,
                                Real* updates, Real* gains, UpdateSums& sums);
  UpdatePoints update_points[kMaxDims];

  // neighbors/exact.cpp: squared distance of two rows of the data, every operation in double.
  using SquaredDistance = double (*)(const Real* a, const Real* b, Size features, double scale);
  SquaredDistance squared_distance;
};

struct KernelTable {
  const char* level;
  int panel_points; // points that one panel of filter_tile holds
  RealKernels<float> f32;
  RealKernels<double> f64;

  // neighbors/exact.cpp: for kTileQueries queries (row-major, `features` apart) and one panel
  // (features x panel_points): bounds[q][p] = query_norms[q] + panel_norms[p] - 2 dot, and a bit
  // per p in hits[q] where that is below limits[q].
  void (*filter_tile)(const float* queries, const float* query_norms, const float* limits,
                      const float* panel, const float* panel_norms, Size features, float* bounds,
                      std::uint64_t* hits);

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
