// Step 1, KNN, of sparse rows: the exact k nearest neighbours, without making anything dense.
#pragma once

#include "acctsne/csr.hpp"
#include "acctsne/parallel.hpp"

#include <atomic>

namespace acctsne {

enum class SparseMetric { euclidean, cosine, correlation };

template <typename Data>
struct SparseRequest {
  CsrView<Data> points; // columns ascend within a row, and are less than features
  Size features;
  SparseMetric metric;
  Size neighbors;                    // k
  PointId* indices;                  // out: a row of k for each query, nearest first
  double* squared_distances;         // out: likewise, ascending
  std::atomic<Size>* done = nullptr; // counts finished queries, or as much work, for a progress bar
};

// Finds the neighbours of every point among the others; k is at most rows - 1. Ties go to the lower
// index. Squared distances are those of the rows, or of the rows scaled to length 1, after their
// mean is taken off for correlation: twice the cosine or correlation distance. A row that has no
// length is a unit away from all others in a direction of its own, so that its cosine distance from
// them is 1.
//
// Products of rows are summed in double, whatever Data is. What is lost where two rows are nearly
// equal is won back by computing their distance again from differences.
template <typename Data>
void sparse_neighbors(const SparseRequest<Data>& request, ThreadTeam& team);

// Finds the neighbours of each query among the points; k is at most the points' rows.
template <typename Data>
void sparse_neighbors(const SparseRequest<Data>& request, const CsrView<Data>& queries,
                      ThreadTeam& team);

} // namespace acctsne
