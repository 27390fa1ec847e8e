// What the neighbour search asks of the kernels: which points of a panel can be nearer than a
// limit, and distances of rows.
#pragma once

#include "acctsne/types.hpp"
#include "kernels/variants.hpp"

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
  float factors[kTileQueries]; // -2 units
  float norms[kTileQueries];   // squared
  float residual_factors[kMostStages]
                        [kTileQueries]; // -2 norms of what lies beyond each stage's dims
  float limits[kTileQueries];
};
struct FilterPanel {
  const std::int16_t* coordinates; // pairs of dims, one after the other: panel_points x 2
  const float* units;
  const float* norms;
  const float* residuals; // stage after stage
  const float* limits;    // of the points themselves, or null
};
// A bit for each point of the panel whose distance from query q may be below the query's limit, and
// below the point's own.
struct FilterHits {
  std::uint64_t of_query[kTileQueries];
  std::uint64_t of_point[kTileQueries];
};

struct ProbeQueries {
  const float* coordinates[kTileQueries];
  float residuals[kTileQueries]; // norm of what lies beyond the dims
  float limits[kTileQueries];
};

// What rows of bytes are compared as: x86 adds products of 16-bit integers, NEON products of bytes.
#if defined(__aarch64__)
using RowInteger = std::uint8_t;
#else
using RowInteger = std::int16_t;
#endif

// Tiles of queries and panels of points, in float whatever the data are.
struct SearchKernels {
  int panel_points; // points that one panel of the tile kernels holds

  // neighbors/cell_search.cpp: for kTileQueries queries and one panel, where the lower bound of the
  // squared distance is below a limit. False, as soon as a stage shows it, if there is no hit.
  bool (*filter_tile)(const FilterQueries& queries, const FilterPanel& panel,
                      const TileStages& stages, FilterHits& hits);
  // neighbors/cell_search.cpp: what to expect of the squared distances, if nothing is known of the
  // residuals' directions; estimates[q] gets a panel's.
  void (*estimate_tile)(const FilterQueries& queries, const FilterPanel& panel, Size dims,
                        float* const* estimates);
  // neighbors/cell_search.cpp: how many numbers are below the limit, and which, a bit each: a
  // panel's in each word, words `stride` apart. `count` is a multiple of panel_points.
  Size (*count_below)(const float* numbers, Size count, float limit);
  void (*bits_below)(const float* numbers, Size count, float limit, std::uint64_t* bits,
                     Size stride);
  // neighbors/full_distances.cpp.
  void (*bytes_to_integers)(const std::uint8_t* from, Size count, RowInteger* to);
  // neighbors/cell_search.cpp, neighbors/probe.cpp: distances of a point from rows `stride` apart.
  void (*distances_to_rows)(const float* point, const float* rows, Size count, Size dims,
                            Size stride, float* distances);

  // neighbors/probe.cpp: squared distances on the leading dims, with the difference of the
  // residuals, of kTileQueries queries and the points of one panel (dims x panel_points), query by
  // query, and in hits[q] a bit per point where they are below limits[q]. False, with nothing
  // written, if there is none.
  bool (*probe_tile)(const ProbeQueries& queries, const float* panel, const float* panel_residuals,
                     const TileStages& stages, std::uint64_t* hits, float* distances);
  // neighbors/probe.cpp: mean and variance of the squared distance of each point of one panel from
  // normally distributed ones with this centre and these variances along the dims.
  void (*spread_of_distances)(const float* panel, Size dims, const float* centre,
                              const float* variances, float* means, float* spreads);
};

// Rows one after the other, which zeros fill to whole cache lines.
template <typename Real>
struct FilledRange {
  const Real* rows;
  Size count;
};

// Rows of the data.
template <typename Real>
struct DistanceKernels {
  // neighbors/approximate.cpp: squared distance of two rows of the data times scale, in Real.
  using SquaredDistance = double (*)(const Real* a, const Real* b, Size features, double scale);
  SquaredDistance near_distance;
  // neighbors/approximate.cpp, neighbors/exact.cpp, neighbors/ring.cpp: the same in double.
  SquaredDistance squared_distance;

  // neighbors/full_distances.cpp, neighbors/approximate.cpp: squared distances of a point from the
  // named ones of the rows, in Real, as near_distance has them; zeros fill rows to whole cache
  // lines.
  void (*squared_distances_to)(const Real* point, const Real* rows, const PointId* named,
                               Size count, Size dims, Real* distances);
  // neighbors/full_distances.cpp: likewise of rows of integers, whose sums must fit 32 bits.
  void (*squared_distances_of_integers)(const RowInteger* point, const RowInteger* rows,
                                        const PointId* named, Size count, Size dims,
                                        Real* distances);
  // quality/ranks.cpp: squared distances, in Real, of every one of some points from every one of
  // some rows, those of a point `stride` after those of the one before. The distance of a pair does
  // not depend on what else is asked for.
  void (*squared_distances_of_all)(FilledRange<Real> points, FilledRange<Real> rows, Size dims,
                                   Real* distances, Size stride);
  // neighbors/byte_rows.cpp, neighbors/exact.cpp: whether all numbers are bytes, which are then
  // written.
  bool (*to_bytes)(const Real* from, Size count, std::uint8_t* to);
};

} // namespace acctsne
