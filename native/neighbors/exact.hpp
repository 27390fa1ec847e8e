// Step 1, KNN: the exact k nearest neighbours, Euclidean.
#pragma once

#include "acctsne/communicator.hpp"
#include "acctsne/parallel.hpp"
#include "neighbors/points.hpp"

#include <atomic>
#include <variant>

namespace acctsne {

// In the precision that is wanted, whatever that of the data.
using WantedDistances = std::variant<float*, double*>;

template <typename Data>
struct NeighborsRequest {
  PointSet<Data> points;
  Size neighbors;                    // k
  PointId* indices;                  // out: a row of k for each query, nearest first
  WantedDistances squared_distances; // out: likewise, ascending, of the data times scale
  std::atomic<Size>* done = nullptr; // counts finished queries, for a progress bar
  // They share the work: each has the points of its own rows and gets their neighbours among all.
  Communicator* processes = &one_process;

  // Whether distances are wanted in double, which the data is not.
  bool wants_more_than_data() const {
    return sizeof(Data) < sizeof(double) && std::holds_alternative<double*>(squared_distances);
  }
};

// Finds the neighbours of every point among the others; k is at most rows - 1. Ties go to the lower
// index.
template <typename Data>
void exact_neighbors(const NeighborsRequest<Data>& request, ThreadTeam& team);

// Finds the neighbours of each query among the points; k is at most the points' rows. What a query
// gets does not depend on the others.
template <typename Data>
void exact_neighbors(const NeighborsRequest<Data>& request, const PointSet<Data>& queries,
                     ThreadTeam& team);

} // namespace acctsne
