// Step 1, KNN: the exact k nearest neighbours of every row, Euclidean.
#pragma once

#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"

#include <atomic>

namespace acctsne {

// The data, centred, on its leading axes.
struct Projection {
  const float* coordinates; // rows x dims: V^T (scale * x - centre), V orthonormal
  Size dims;
  const double* squared_norms; // rows: |scale * x - centre|^2
  double scale;                // a power of two
};

template <typename Data, typename Real>
struct NeighborsRequest {
  const Data* data; // rows x features, row-major
  Size rows;
  Size features;
  Projection projection;
  Size neighbors;                    // k, at most rows - 1
  PointId* indices;                  // out: rows x k, without the point itself, nearest first
  Real* squared_distances;           // out: rows x k, ascending, of the data times scale
  Size most_cells = 0;               // visit only so many, the nearest; 0 for all, which is exact
  std::atomic<Size>* done = nullptr; // counts finished rows, for a progress bar
};

// Fills the request's outputs. Ties go to the lower index.
template <typename Data, typename Real>
void exact_neighbors(const NeighborsRequest<Data, Real>& request, ThreadTeam& team);

} // namespace acctsne
