// Step 1, KNN: the exact k nearest neighbours, Euclidean.
#pragma once

#include "acctsne/communicator.hpp"
#include "acctsne/parallel.hpp"
#include "neighbors/points.hpp"

#include <atomic>

namespace acctsne {

template <typename Data, typename Real>
struct NeighborsRequest {
  PointSet<Data> points;
  Size neighbors;                    // k
  PointId* indices;                  // out: a row of k for each query, nearest first
  Real* squared_distances;           // out: likewise, ascending, of the data times scale
  std::atomic<Size>* done = nullptr; // counts finished queries, for a progress bar
  // They share the work: each has the points of its own rows and gets their neighbours among all.
  Communicator* processes = &one_process;
};

// Finds the neighbours of every point among the others; k is at most rows - 1. Ties go to the lower
// index.
template <typename Data, typename Real>
void exact_neighbors(const NeighborsRequest<Data, Real>& request, ThreadTeam& team);

// Finds the neighbours of each query among the points; k is at most the points' rows. What a query
// gets does not depend on the others.
template <typename Data, typename Real>
void exact_neighbors(const NeighborsRequest<Data, Real>& request, const PointSet<Data>& queries,
                     ThreadTeam& team);

} // namespace acctsne
