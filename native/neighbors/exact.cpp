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
// 5. If distances are wanted in double and the data is not, or rounding would depend on the other
//    queries, those of the list are computed again; the answer is proven if the k-th, plus what
//    rounding may have done, lies below the last one kept. Where it is not, and where squares may
//    have vanished in float, the query is done again with all pairs in double.
//
// Several processes do the same with the points of each other (neighbors/ring.cpp).
#include "neighbors/exact.hpp"

#include "kernels/dispatch.hpp"
#include "neighbors/cell_search.hpp"
#include "neighbors/found_rows.hpp"
#include "neighbors/ring.hpp"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace acctsne {
namespace {

// Whole numbers up to here are added in float without rounding, in whatever order.
constexpr double kExactSum = 0x1p24;

// Whether sums in Data over rows of bytes may be rounded.
template <typename Data>
bool rounds_bytes(Size features) {
  return sizeof(Data) == sizeof(float) && static_cast<double>(features) * 255 * 255 >= kExactSum;
}

// Neighbours kept in the search: more than wanted where distances may be computed again in double.
template <typename Data>
Size kept_neighbors(const NeighborsRequest<Data>& request, bool among_themselves) {
  const bool once = !request.wants_more_than_data() &&
                    (among_themselves || !rounds_bytes<Data>(request.points.features));
  return once ? request.neighbors : kept_for_proof(request.neighbors);
}

template <typename Data>
class Search {
public:
  Search(const NeighborsRequest<Data>& request, const SearchedPoints<Data>& points,
         const SearchedPoints<Data>& queries, ThreadTeam& team)
      : request_(request), points_(points.rows.points), queries_(queries.rows.points),
        cells_(queries.cells), among_themselves_(&points == &queries),
        kept_(kept_neighbors(request, among_themselves_)), lists_(cells_, kept_),
        search_(points, queries, lists_, /*go_on=*/false, team),
        kernel_(kernels().distances.of<Data>()), scratch_(at(team.size())) {}

  void run(ThreadTeam& team) {
    const bool filter_helps = kept_ < points_.rows - (among_themselves_ ? 1 : 0);
    if (filter_helps) {
      search_.run(team, {request_.done, cells_.rows()}, [&](Size cell, int worker) {
        for (Size place = cells_.begin(cell); place < cells_.end(cell) && !team.should_stop(worker);
             ++place) {
          finish(place, lists_.of(place), scratch(worker));
          lists_.of(place) = {};
        }
      });
    } else {
      team.for_chunks(cells_.count(), [&](Size cell, int worker) {
        for (Size place = cells_.begin(cell); place < cells_.end(cell) && !team.should_stop(worker);
             ++place) {
          search_in_double(cells_.row(place), scratch(worker));
        }
        if (request_.done != nullptr) {
          request_.done->fetch_add(cells_.end(cell) - cells_.begin(cell),
                                   std::memory_order_relaxed);
        }
      });
    }
  }

private:
  using Candidates = std::vector<Candidate<double>>;
  struct Scratch {
    Candidates candidates;
    std::vector<Data> query; // rows that cannot be used where they are
    std::vector<Data> point;
    std::vector<std::uint8_t> bytes;
  };

  Scratch& scratch(int worker) { return scratch_[at(worker)]; }

  void finish(Size place, NearestList<Data>& nearest, Scratch& scratch) {
    const std::vector<Candidate<Data>>& found = nearest.sorted();
    if (static_cast<Size>(found.size()) < kept_) {
      throw std::domain_error("a distance is not finite");
    }
    const PointId query = cells_.row(place);
    const ListEnds ends(found, request_.neighbors);
    if (!ends.may_have_vanished() && !request_.wants_more_than_data() &&
        !depends_on_others(query, found.back().distance, scratch)) {
      write_nearest(request_, query, found);
      return;
    }
    Candidates& in_double = scratch.candidates;
    in_double.clear();
    for (const Candidate<Data>& candidate : found) {
      in_double.push_back({0.0, candidate.id});
    }
    if (ends.prove(refine(query, scratch), rounding_of_distances(points_.features))) {
      write_nearest(request_, query, in_double);
    } else {
      search_in_double(query, scratch);
    }
  }

  // Rows of bytes are compared as whole numbers if there are many queries, all of bytes, and as
  // floats otherwise. Where that shows in the last bits, distances are computed again in double.
  bool depends_on_others(PointId query, Data farthest, Scratch& scratch) const {
    if (among_themselves_ || !rounds_bytes<Data>(points_.features) ||
        static_cast<double>(farthest) < kExactSum) {
      return false;
    }
    scratch.bytes.resize(at(points_.features));
    return kernel_.to_bytes(queries_.row(query, scratch.query), points_.features,
                            scratch.bytes.data());
  }

  // Puts double distances into the candidates, sorts them, and returns the k-th.
  double refine(PointId query, Scratch& scratch) const {
    Candidates& found = scratch.candidates;
    const Data* from = queries_.row(query, scratch.query);
    for (Candidate<double>& candidate : found) {
      candidate.distance = kernel_.squared_distance(from, points_.row(candidate.id, scratch.point),
                                                    points_.features, points_.projection.scale);
    }
    return sort_nearest(found, request_.neighbors);
  }

  void search_in_double(PointId query, Scratch& scratch) {
    Candidates& all = scratch.candidates;
    all.clear();
    for (Size id = 0; id < points_.rows; ++id) {
      if (!among_themselves_ || id != query) {
        all.push_back({0.0, static_cast<PointId>(id)});
      }
    }
    refine(query, scratch);
    write_nearest(request_, query, all);
  }

  const NeighborsRequest<Data>& request_;
  const PointSet<Data>& points_;
  const PointSet<Data>& queries_;
  const Cells& cells_; // of the queries
  bool among_themselves_;
  Size kept_;
  QueryLists<Data> lists_;
  CellSearch<Data> search_;
  const DistanceKernels<Data>& kernel_;
  std::vector<Scratch> scratch_; // for each worker
};

} // namespace

template <typename Data>
void exact_neighbors(const NeighborsRequest<Data>& request, ThreadTeam& team) {
  const Step step("neighbours");
  if (request.processes->size() > 1) {
    ring_neighbors(request, team);
    return;
  }
  const PointSet<Data>& points = request.points;
  const Cells cells(points.projection, points.rows, points.features, team);
  const SearchedPoints<Data> searched(points, cells, /*as_bytes=*/true, 0, team);
  Search<Data>(request, searched, searched, team).run(team);
}

template <typename Data>
void exact_neighbors(const NeighborsRequest<Data>& request, const PointSet<Data>& queries,
                     ThreadTeam& team) {
  const Step step("neighbours");
  const PointSet<Data>& points = request.points;
  // For few queries among many points copies do not pay.
  constexpr Size kPointsPerQuery = 32;
  const bool as_bytes = points.rows <= kPointsPerQuery * queries.rows;
  const Cells cells(points.projection, points.rows, points.features, team);
  const Cells query_cells(queries.projection, queries.rows, queries.features, team);
  const SearchedPoints<Data> searched(points, cells, as_bytes, 0, team);
  const SearchedPoints<Data> asked(queries, query_cells, as_bytes, 0, team);
  Search<Data>(request, searched, asked, team).run(team);
}

#define ACCTSNE_INSTANTIATE(Data)                                                                  \
  template void exact_neighbors(const NeighborsRequest<Data>&, ThreadTeam&);                       \
  template void exact_neighbors(const NeighborsRequest<Data>&, const PointSet<Data>&, ThreadTeam&);
ACCTSNE_INSTANTIATE(float)
ACCTSNE_INSTANTIATE(double)
#undef ACCTSNE_INSTANTIATE

} // namespace acctsne
