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
#include "neighbors/exact.hpp"

#include "kernels/dispatch.hpp"
#include "neighbors/cell_search.hpp"
#include "neighbors/found_rows.hpp"

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

// Neighbours kept in the search. Where distances may be computed again in double, some beyond k, so
// that rounding hardly ever leaves the answer unproven.
template <typename Data, typename Real>
Size kept_neighbors(const NeighborsRequest<Data, Real>& request, bool among_themselves) {
  const bool once = sizeof(Real) <= sizeof(Data) &&
                    (among_themselves || !rounds_bytes<Data>(request.points.features));
  return request.neighbors + (once ? 0 : std::max<Size>(8, request.neighbors / 8));
}

template <typename Data, typename Real>
class Search {
public:
  Search(const NeighborsRequest<Data, Real>& request, const Cells& cells,
         const PointSet<Data>& queries, const Cells& query_cells, ThreadTeam& team)
      : request_(request), points_(request.points), queries_(queries), cells_(query_cells),
        found_rows_(request, query_cells), among_themselves_(&cells == &query_cells),
        kept_(kept_neighbors(request, among_themselves_)),
        search_(points_, cells, queries, query_cells, kept_, team),
        kernel_(kernels().distances.of<Data>()), scratch_(static_cast<std::size_t>(team.size())) {}

  void run(ThreadTeam& team) {
    found_rows_.hold(found_rows_.cells());
    const bool filter_helps = kept_ < points_.rows - (among_themselves_ ? 1 : 0);
    if (filter_helps) {
      search_.run(team, found_rows_.cells(), request_.done, [&](Size cell, int worker) {
        for (Size place = cells_.begin(cell); place < cells_.end(cell) && !team.should_stop(worker);
             ++place) {
          finish(place, search_.nearest(place), scratch(worker));
        }
      });
    } else {
      const Rows own = found_rows_.cells();
      team.for_chunks(own.end - own.begin, [&](Size chunk, int worker) {
        const Size cell = own.begin + chunk;
        for (Size place = cells_.begin(cell); place < cells_.end(cell) && !team.should_stop(worker);
             ++place) {
          search_in_double(place, scratch(worker));
        }
        if (request_.done != nullptr) {
          request_.done->fetch_add(cells_.end(cell) - cells_.begin(cell),
                                   std::memory_order_relaxed);
        }
      });
    }
    constexpr Size kParts = 16;
    found_rows_.send_home(kParts);
  }

private:
  using Candidates = std::vector<Candidate<double>>;
  struct Scratch {
    Candidates candidates;
    std::vector<Data> query; // rows that cannot be used where they are
    std::vector<Data> point;
    std::vector<std::uint8_t> bytes;
  };

  Scratch& scratch(int worker) { return scratch_[static_cast<std::size_t>(worker)]; }

  void finish(Size place, NearestList<Data>& nearest, Scratch& scratch) {
    const std::vector<Candidate<Data>>& found = nearest.sorted();
    if (static_cast<Size>(found.size()) < kept_) {
      throw std::domain_error("a distance is not finite");
    }
    const auto kth =
        static_cast<double>(found[static_cast<std::size_t>(request_.neighbors - 1)].distance);
    if (kth >= kSmallestDistance && sizeof(Real) <= sizeof(Data) &&
        !depends_on_others(cells_.row(place), found.back().distance, scratch)) {
      found_rows_.write(place, found);
      return;
    }
    Candidates& in_double = scratch.candidates;
    in_double.clear();
    for (const Candidate<Data>& candidate : found) {
      in_double.push_back({0.0, candidate.id});
    }
    const double kth_in_double = refine(cells_.row(place), scratch);
    const auto limit = static_cast<double>(found.back().distance);
    // Squares so small that float may have lost them say nothing, but coincident points coincide.
    const bool proven = kth >= kSmallestDistance
                            ? kth_in_double * (1 + 2 * search_.rounding()) <= limit
                            : kth_in_double == 0;
    if (proven) {
      found_rows_.write(place, in_double);
    } else {
      search_in_double(place, scratch);
    }
  }

  // Rows of bytes are compared as whole numbers if there are many queries, all of bytes, and as
  // floats otherwise. Where that shows in the last bits, distances are computed again in double.
  bool depends_on_others(PointId query, Data farthest, Scratch& scratch) const {
    if (among_themselves_ || !rounds_bytes<Data>(points_.features) ||
        static_cast<double>(farthest) < kExactSum) {
      return false;
    }
    scratch.bytes.resize(static_cast<std::size_t>(points_.features));
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
    const auto k = static_cast<std::ptrdiff_t>(request_.neighbors);
    std::partial_sort(found.begin(), found.begin() + k, found.end());
    return found[static_cast<std::size_t>(k - 1)].distance;
  }

  void search_in_double(Size place, Scratch& scratch) {
    const PointId query = cells_.row(place);
    Candidates& all = scratch.candidates;
    all.clear();
    for (Size id = 0; id < points_.rows; ++id) {
      if (!among_themselves_ || id != query) {
        all.push_back({0.0, static_cast<PointId>(id)});
      }
    }
    refine(query, scratch);
    found_rows_.write(place, all);
  }

  const NeighborsRequest<Data, Real>& request_;
  const PointSet<Data>& points_;
  const PointSet<Data>& queries_;
  const Cells& cells_; // of the queries
  FoundRows<Data, Real> found_rows_;
  bool among_themselves_;
  Size kept_;
  CellSearch<Data> search_;
  const DistanceKernels<Data>& kernel_;
  std::vector<Scratch> scratch_; // for each worker
};

} // namespace

template <typename Data, typename Real>
void exact_neighbors(const NeighborsRequest<Data, Real>& request, ThreadTeam& team) {
  const Step step("neighbours");
  const PointSet<Data>& points = request.points;
  const Cells cells(points.projection, points.rows, points.features, team);
  Search<Data, Real>(request, cells, points, cells, team).run(team);
}

template <typename Data, typename Real>
void exact_neighbors(const NeighborsRequest<Data, Real>& request, const PointSet<Data>& queries,
                     ThreadTeam& team) {
  const Step step("neighbours");
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
