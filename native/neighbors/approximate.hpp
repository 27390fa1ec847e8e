// Step 1, KNN, for so many points that exactness would take too long: nearly all of the k nearest
// neighbours, Euclidean.
#pragma once

#include "neighbors/exact.hpp"

#include <cmath>
#include <span>

namespace acctsne {

// benchmarks/neighbors.py has the recall of the defaults (docs/tuning.md).
struct ApproximateEffort {
  Size cells = 256;        // considered for each point, the nearest to its own
  double z_score = 3.5;    // deviations by which points may be nearer than expected; see probe.cpp
  Size expanded = 4;       // neighbours of each point whose own neighbours are looked at
  Size cells_at_once = 64; // of several processes: whose points' surroundings are fetched together

  // What keeps the recall as the points grow in number: the more there are, the more cells of equal
  // size a point's neighbours are spread over.
  static ApproximateEffort of(Size rows) {
    constexpr Size kDefaultRows = 1'000'000; // up to which the default serves
    constexpr double kGrowth = 0.6;          // docs/tuning.md
    ApproximateEffort effort;
    if (rows > kDefaultRows) {
      effort.cells = static_cast<Size>(static_cast<double>(effort.cells) *
                                       std::pow(static_cast<double>(rows) / kDefaultRows, kGrowth));
    }
    return effort;
  }
};

// Finds neighbours of every point among the others. The same for any number of threads and
// processes. Returns the part of the true neighbours that was found, estimated by an exact search
// for those of `sample`, which ascends.
template <typename Data>
double approximate_neighbors(const NeighborsRequest<Data>& request, ApproximateEffort effort,
                             std::span<const PointId> sample, ThreadTeam& team);

} // namespace acctsne
