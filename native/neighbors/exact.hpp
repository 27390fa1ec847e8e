// Step 1, KNN: the exact k nearest neighbours of every row, Euclidean.
#pragma once

#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"

#include <functional>

namespace acctsne {

template <typename Data, typename Real>
struct NeighborsRequest {
  const Data* data; // rows x features, row-major
  Size rows;
  Size features;
  Size neighbors;                    // k, at most rows - 1
  PointId* indices;                  // out: rows x k, without the point itself, nearest first
  Real* squared_distances;           // out: rows x k, ascending, in units of `scale`
  std::atomic<Size>* done = nullptr; // counts finished rows, for a progress bar
};

// Fills the request's outputs and returns the scale: distances are those of the data times this
// power of two. It is 1 unless squares of the data's range would overflow or vanish. Ties go to the
// lower index.
template <typename Data, typename Real>
double exact_neighbors(const NeighborsRequest<Data, Real>& request, ThreadTeam& team);

} // namespace acctsne
