#include "neighbors/cell_search.hpp"

#include "kernels/dispatch.hpp"

#include <bit>
#include <limits>
#include <numeric>

namespace acctsne {

template <typename Data>
CellSearch<Data>::CellSearch(const PointSet<Data>& points, const CellPanels& panels,
                             const PointSet<Data>& queries, const CellPanels& query_panels,
                             Size kept)
    : points_(points), panels_(panels), queries_(queries), query_panels_(query_panels),
      among_themselves_(&panels == &query_panels), kept_(kept), kernel_(kernels().of<Data>()),
      rounding_((static_cast<double>(points.features) + 16) * 0x1p-23) {}

template <typename Data>
bool CellSearch<Data>::search(Size cell, Scratch& scratch, ThreadTeam& team, int worker) const {
  prepare_queries(cell, scratch);
  order_visits(cell, scratch);
  double farthest_limit = std::numeric_limits<double>::infinity(); // of all queries
  for (const Size visited : scratch.visits) {
    if (team.should_stop(worker)) {
      return false;
    }
    // The gap between the two balls bounds all distances between their points from below.
    const double gap =
        static_cast<double>(scratch.center_distances[static_cast<std::size_t>(visited)]) -
        query_panels_.radius(cell) - panels_.radius(visited);
    if (gap > 0 && gap * gap >= farthest_limit) {
      continue;
    }
    find_active(cell, visited, scratch);
    for (std::size_t a = 0; a < scratch.active.size(); a += kTileQueries) {
      const auto in_tile = std::min<std::size_t>(kTileQueries, scratch.active.size() - a);
      visit_tiles(cell, visited, scratch.active.data() + a, static_cast<int>(in_tile), scratch);
    }
    if (!scratch.active.empty()) {
      farthest_limit = 0;
      for (const NearestList& nearest : scratch.nearest) {
        farthest_limit = std::max(farthest_limit, nearest.limit());
      }
    }
  }
  return true;
}

template <typename Data>
void CellSearch<Data>::prepare_queries(Size cell, Scratch& scratch) const {
  const Size dims = panels_.dims();
  const Size first = query_panels_.begin(cell);
  const Size count = query_panels_.end(cell) - first;
  scratch.coordinates.resize(static_cast<std::size_t>(kCellPoints * dims));
  scratch.norms.resize(static_cast<std::size_t>(kCellPoints));
  scratch.rests.resize(static_cast<std::size_t>(kCellPoints * kFilterStages));
  scratch.query_distances.resize(static_cast<std::size_t>(kCellPoints));
  scratch.nearest.resize(static_cast<std::size_t>(count));
  for (Size q = 0; q < count; ++q) {
    query_panels_.copy_query(first + q, scratch.coordinates.data() + q * dims,
                             scratch.norms[static_cast<std::size_t>(q)],
                             scratch.rests.data() + q * kFilterStages);
    scratch.nearest[static_cast<std::size_t>(q)].start(kept_);
  }
}

// Cells from the nearest centre to the farthest; the queries' own comes first.
template <typename Data>
void CellSearch<Data>::order_visits(Size cell, Scratch& scratch) const {
  const Size cells = panels_.cells();
  std::vector<float>& from_center = scratch.center_distances;
  from_center.resize(static_cast<std::size_t>(cells));
  kernels().distances_to_rows(query_panels_.center(cell), panels_.center(0), cells, panels_.dims(),
                              from_center.data());
  const Size own = among_themselves_ ? cell : -1;
  scratch.visits.resize(static_cast<std::size_t>(cells));
  std::iota(scratch.visits.begin(), scratch.visits.end(), Size{0});
  std::sort(scratch.visits.begin(), scratch.visits.end(), [&](Size a, Size b) {
    const float left = a == own ? -1 : from_center[static_cast<std::size_t>(a)];
    const float right = b == own ? -1 : from_center[static_cast<std::size_t>(b)];
    return left < right || (left == right && a < b);
  });
}

// The queries that may have a neighbour in the visited cell's ball.
template <typename Data>
void CellSearch<Data>::find_active(Size cell, Size visited, Scratch& scratch) const {
  const auto count = static_cast<Size>(scratch.nearest.size());
  kernels().distances_to_rows(panels_.center(visited), scratch.coordinates.data(), count,
                              panels_.dims(), scratch.query_distances.data());
  scratch.active.clear();
  for (Size q = 0; q < count; ++q) {
    const double apart = static_cast<double>(scratch.query_distances[static_cast<std::size_t>(q)]) -
                         panels_.radius(visited) - query_panels_.rounding(cell);
    if (apart <= 0 || apart * apart < scratch.nearest[static_cast<std::size_t>(q)].limit()) {
      scratch.active.push_back(static_cast<int>(q));
    }
  }
}

template <typename Data>
void CellSearch<Data>::visit_tiles(Size cell, Size visited, const int* active, int count,
                                   Scratch& scratch) const {
  const auto dims = static_cast<std::size_t>(panels_.dims());
  const Size first = query_panels_.begin(cell);
  FilterQueries queries;
  for (int q = 0; q < kTileQueries; ++q) {
    const auto from = static_cast<std::size_t>(active[q < count ? q : 0]);
    queries.coordinates[q] = scratch.coordinates.data() + from * dims;
    queries.norms[q] = scratch.norms[from];
    queries.limits[q] = q < count ? upper_float(scratch.nearest[from].limit())
                                  : -std::numeric_limits<float>::infinity();
    for (int stage = 0; stage < kFilterStages; ++stage) {
      queries.rests[q][stage] =
          scratch.rests[from * kFilterStages + static_cast<std::size_t>(stage)];
    }
  }
  for (Size place = panels_.begin(visited); place < panels_.end(visited);
       place += panels_.width()) {
    std::uint64_t hits[kTileQueries];
    if (!kernels().filter_tile(queries, panels_.panel(place), panels_.norms(place),
                               panels_.rests(place), panels_.stages(), hits)) {
      continue;
    }
    for (int q = 0; q < count; ++q) {
      const PointId query = query_panels_.row(first + active[q]);
      NearestList& nearest = scratch.nearest[static_cast<std::size_t>(active[q])];
      for (std::uint64_t mask = hits[q]; mask != 0; mask &= mask - 1) {
        const PointId id = panels_.row(place + std::countr_zero(mask));
        if (!among_themselves_ || id != query) {
          nearest.add({kernel_.near_distance(queries_.row(query), points_.row(id), points_.features,
                                             points_.projection.scale),
                       id});
        }
      }
      queries.limits[q] = upper_float(nearest.limit());
    }
  }
}

// The limit as a float, raised by the rounding of the distance behind it and of the conversion.
template <typename Data>
float CellSearch<Data>::upper_float(double limit) const {
  return static_cast<float>(limit * (1 + 2 * rounding_) + kSmallestDistance);
}

template class CellSearch<float>;
template class CellSearch<double>;

} // namespace acctsne
