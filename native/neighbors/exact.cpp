// Step 1, KNN, by filter and refine.
//
// On the m leading axes a point has coordinates z and a residual of norm r. Then |z_q - z_p|^2 +
// (r_q - r_p)^2 is at most the squared distance of q and p. With |z|^2 + r^2 = |x|^2 it equals
// |q|^2 + |p|^2 - 2 (z_q z_p + r_q r_p), a matrix product, and it is a lower bound for any number
// of leading axes.
//
// 1. Put close points together in cells (neighbors/cells.cpp), packed into panels of 16-bit
//    integers for the tile kernel (neighbors/filter.cpp). What that rounds off lowers the bound.
// 2. For the queries of one cell, visit the cells from the nearest to the farthest, skipping those
//    whose bounding sphere lies beyond each query's k-th distance so far; two cells that concern
//    each other are visited once, for the queries of both (neighbors/cell_search.cpp).
// 3. Tiles of queries x panel points: after each of a few stages of leading axes, give up if every
//    bound in the tile exceeds its query's k-th distance so far (kernels/distance-inl.hpp).
// 4. Survivors get their distance in full dimension, panel by panel, and enter the query's list of
//    the `kept` nearest (neighbors/full_distances.cpp).
// 5. If distances are wanted in double and the data is not, those of the list are computed again;
//    the answer is proven if the k-th, plus what rounding may have done, lies below the last one
//    kept. Where it is not, and where squares may have vanished in float, the query is done again
//    with all pairs in double.
#include "neighbors/exact.hpp"

#include "kernels/dispatch.hpp"
#include "neighbors/cell_search.hpp"

#include <algorithm>
#include <vector>

namespace acctsne {
namespace {

// Neighbours kept in the search. Where distances are wanted in a better precision than the data's,
// some beyond k, so that rounding hardly ever leaves the answer unproven.
template <typename Data, typename Real>
Size kept_neighbors(Size neighbors) {
  return sizeof(Real) <= sizeof(Data) ? neighbors : neighbors + std::max<Size>(8, neighbors / 8);
}

template <typename Data, typename Real>
class Search {
public:
  Search(const NeighborsRequest<Data, Real>& request, const Cells& cells,
         const PointSet<Data>& queries, const Cells& query_cells, ThreadTeam& team)
      : request_(request), points_(request.points), queries_(queries), cells_(query_cells),
        among_themselves_(&cells == &query_cells),
        kept_(kept_neighbors<Data, Real>(request.neighbors)),
        search_(points_, cells, queries, query_cells, kept_, team),
        kernel_(kernels().distances.of<Data>()), scratch_(static_cast<std::size_t>(team.size())) {}

  void run(ThreadTeam& team) {
    const bool filter_helps = kept_ < points_.rows - (among_themselves_ ? 1 : 0);
    if (filter_helps) {
      search_.run(team, request_.done, [&](Size cell, int worker) {
        for (Size place = cells_.begin(cell); place < cells_.end(cell) && !team.should_stop(worker);
             ++place) {
          finish(cells_.row(place), search_.nearest(place), scratch(worker));
        }
      });
      return;
    }
    team.for_chunks(cells_.count(), [&](Size cell, int worker) {
      for (Size place = cells_.begin(cell); place < cells_.end(cell) && !team.should_stop(worker);
           ++place) {
        search_in_double(cells_.row(place), scratch(worker));
      }
      if (request_.done != nullptr) {
        request_.done->fetch_add(cells_.end(cell) - cells_.begin(cell), std::memory_order_relaxed);
      }
    });
  }

private:
  using Candidates = std::vector<Candidate<double>>;
  struct Scratch {
    Candidates candidates;
    std::vector<Data> query; // rows that cannot be used where they are
    std::vector<Data> point;
  };

  Scratch& scratch(int worker) { return scratch_[static_cast<std::size_t>(worker)]; }

  void finish(PointId query, NearestList<Data>& nearest, Scratch& scratch) const {
    const std::vector<Candidate<Data>>& found = nearest.sorted();
    const auto kth =
        static_cast<double>(found[static_cast<std::size_t>(request_.neighbors - 1)].distance);
    if (kth >= kSmallestDistance && sizeof(Real) <= sizeof(Data)) {
      write(query, found);
      return;
    }
    Candidates& in_double = scratch.candidates;
    in_double.clear();
    for (const Candidate<Data>& candidate : found) {
      in_double.push_back({0.0, candidate.id});
    }
    const double kth_in_double = refine(query, scratch);
    const auto limit = static_cast<double>(found.back().distance);
    // Squares so small that float may have lost them say nothing, but coincident points coincide.
    const bool proven = kth >= kSmallestDistance
                            ? kth_in_double * (1 + 2 * search_.rounding()) <= limit
                            : kth_in_double == 0;
    if (proven) {
      write(query, in_double);
    } else {
      search_in_double(query, scratch);
    }
  }

  // Puts double distances into the candidates, sorts them, and returns the k-th.
  double refine(PointId query, Scratch& scratch) const {
    Candidates& found = scratch.candidates;
    const Data* from = queries_.row(query, scratch.query);
    for (Candidate<double>& candidate : found) {
      candidate.distance = kernel_.squared_distance(from, points_.row(candidate.id, scratch.point),
                                                    points_.features, points_.projection.scale);
    }
    const auto k = static_cast<std::ptrdiff_t>(request_.neighbors);
    std::partial_sort(found.begin(), found.begin() + k, found.end());
    return found[static_cast<std::size_t>(k - 1)].distance;
  }

  void search_in_double(PointId query, Scratch& scratch) const {
    Candidates& all = scratch.candidates;
    all.clear();
    for (Size id = 0; id < points_.rows; ++id) {
      if (!among_themselves_ || id != query) {
        all.push_back({0.0, static_cast<PointId>(id)});
      }
    }
    refine(query, scratch);
    write(query, all);
  }

  template <typename Distance>
  void write(PointId query, const std::vector<Candidate<Distance>>& found) const {
    const Size k = request_.neighbors;
    for (Size j = 0; j < k; ++j) {
      const Candidate<Distance>& candidate = found[static_cast<std::size_t>(j)];
      request_.indices[query * k + j] = candidate.id;
      request_.squared_distances[query * k + j] = static_cast<Real>(candidate.distance);
    }
  }

  const NeighborsRequest<Data, Real>& request_;
  const PointSet<Data>& points_;
  const PointSet<Data>& queries_;
  const Cells& cells_; // of the queries
  bool among_themselves_;
  Size kept_;
  CellSearch<Data> search_;
  const DistanceKernels<Data>& kernel_;
  std::vector<Scratch> scratch_; // for each worker
};

} // namespace

template <typename Data, typename Real>
void exact_neighbors(const NeighborsRequest<Data, Real>& request, ThreadTeam& team) {
  const PointSet<Data>& points = request.points;
  const Cells cells(points.projection, points.rows, points.features, team);
  Search<Data, Real>(request, cells, points, cells, team).run(team);
}

template <typename Data, typename Real>
void exact_neighbors(const NeighborsRequest<Data, Real>& request, const PointSet<Data>& queries,
                     ThreadTeam& team) {
  const PointSet<Data>& points = request.points;
  const Cells cells(points.projection, points.rows, points.features, team);
  const Cells query_cells(queries.projection, queries.rows, queries.features, team);
  Search<Data, Real>(request, cells, queries, query_cells, team).run(team);
}

#define ACCTSNE_INSTANTIATE(Data, Real)                                                            \
  template void exact_neighbors(const NeighborsRequest<Data, Real>&, ThreadTeam&);                 \
  template void exact_neighbors(const NeighborsRequest<Data, Real>&, const PointSet<Data>&,        \
                                ThreadTeam&);
ACCTSNE_INSTANTIATE(float, float)
ACCTSNE_INSTANTIATE(float, double)
ACCTSNE_INSTANTIATE(double, float)
ACCTSNE_INSTANTIATE(double, double)
#undef ACCTSNE_INSTANTIATE

} // namespace acctsne
