// A query's limit, the distance of the last one kept so far, falls as cells are visited, and until
// it is low the filter lets most of the near cells' points pass. So lists begin with the points of
// the nearest few cells whose estimated distances are lowest. That is only a matter of order: the
// lists end up the same.
#include "neighbors/cell_search.hpp"

#include "kernels/dispatch.hpp"

#include <bit>
#include <limits>
#include <numeric>

namespace acctsne {

template <typename Data>
CellSearch<Data>::CellSearch(const PointSet<Data>& points, const Cells& cells,
                             const PointSet<Data>& queries, const Cells& query_cells, Size kept,
                             ThreadTeam& team)
    : points_(points), cells_(cells), queries_(queries), query_cells_(query_cells),
      among_themselves_(&cells == &query_cells), kept_(kept),
      panels_(cells, points.projection, team), kernel_(kernels().of<Data>()),
      rounding_((static_cast<double>(points.features) + 16) * 0x1p-23) {
  if (!among_themselves_) {
    query_panels_.emplace(query_cells, queries.projection, team);
  }
}

template <typename Data>
bool CellSearch<Data>::search(Size cell, Scratch& scratch, ThreadTeam& team, int worker) const {
  prepare_queries(cell, scratch);
  order_visits(cell, scratch);
  const auto for_tiles = [&](auto&& visit) {
    for (std::size_t a = 0; a < scratch.active.size(); a += kTileQueries) {
      const auto count = std::min<std::size_t>(kTileQueries, scratch.active.size() - a);
      visit(scratch.active.data() + a, static_cast<int>(count));
    }
  };
  for_tiles([&](const int* tile, int count) { seed(cell, tile, count, scratch); });
  double farthest_limit = std::numeric_limits<double>::infinity(); // of all queries
  for (Size visit = 0; visit < cells_.count(); ++visit) {
    if (team.should_stop(worker)) {
      return false;
    }
    // The gap between the two balls bounds all distances between their points from below.
    const Size visited = scratch.visits[static_cast<std::size_t>(visit)];
    const double gap =
        static_cast<double>(scratch.center_distances[static_cast<std::size_t>(visited)]) -
        query_cells_.radius(cell) - cells_.radius(visited);
    if (gap > 0 && gap * gap >= farthest_limit) {
      continue;
    }
    find_active(cell, visited, scratch);
    for_tiles([&](const int* tile, int count) { visit_tiles(cell, visit, tile, count, scratch); });
    if (!scratch.active.empty()) {
      farthest_limit = 0;
      for (const NearestList& nearest : scratch.nearest) {
        farthest_limit = std::max(farthest_limit, nearest.limit());
      }
    }
  }
  return true;
}

// All queries are active at first.
template <typename Data>
void CellSearch<Data>::prepare_queries(Size cell, Scratch& scratch) const {
  const Size dims = query_cells_.dims();
  const Size first = query_cells_.begin(cell);
  const Size count = query_cells_.end(cell) - first;
  scratch.coordinates.resize(static_cast<std::size_t>(kCellPoints * dims));
  scratch.filtered.resize(static_cast<std::size_t>(kCellPoints * query_panels().dims()));
  scratch.query_distances.resize(static_cast<std::size_t>(kCellPoints));
  scratch.nearest.resize(static_cast<std::size_t>(count));
  scratch.seeded.assign(static_cast<std::size_t>(count), {});
  scratch.active.resize(static_cast<std::size_t>(count));
  std::iota(scratch.active.begin(), scratch.active.end(), 0);
  for (Size q = 0; q < count; ++q) {
    std::copy_n(queries_.projection.row(query_cells_.row(first + q)), dims,
                scratch.coordinates.data() + q * dims);
    query_panels().copy_query(first + q, scratch.filtered.data() + q * query_panels().dims());
    scratch.nearest[static_cast<std::size_t>(q)].start(kept_);
  }
}

// Cells from the nearest centre to the farthest; the queries' own comes first.
template <typename Data>
void CellSearch<Data>::order_visits(Size cell, Scratch& scratch) const {
  const Size cells = cells_.count();
  std::vector<float>& from_center = scratch.center_distances;
  from_center.resize(static_cast<std::size_t>(cells));
  kernels().distances_to_rows(query_cells_.center(cell), cells_.center(0), cells, cells_.dims(),
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
  kernels().distances_to_rows(cells_.center(visited), scratch.coordinates.data(), count,
                              cells_.dims(), scratch.query_distances.data());
  scratch.active.clear();
  for (Size q = 0; q < count; ++q) {
    const double apart = static_cast<double>(scratch.query_distances[static_cast<std::size_t>(q)]) -
                         cells_.radius(visited) - query_cells_.rounding(cell);
    if (apart <= 0 || apart * apart < scratch.nearest[static_cast<std::size_t>(q)].limit()) {
      scratch.active.push_back(static_cast<int>(q));
    }
  }
}

// Begins the lists of a tile's queries with points of the first cells to visit.
template <typename Data>
void CellSearch<Data>::seed(Size cell, const int* tile, int count, Scratch& scratch) const {
  const Size near_cells = std::min(kSeedCells, cells_.count());
  const Size points = near_cells * kCellPoints;
  scratch.estimates.resize(static_cast<std::size_t>(kTileQueries * points));
  const FilterQueries queries = tile_queries(cell, tile, count, scratch);
  for (Size at = 0; at < points; at += panels_.width()) {
    float* estimates[kTileQueries];
    for (int q = 0; q < kTileQueries; ++q) {
      estimates[q] = scratch.estimates.data() + q * points + at;
    }
    const Size visited = scratch.visits[static_cast<std::size_t>(at / kCellPoints)];
    kernels().estimate_tile(queries, panels_.panel(cells_.begin(visited) + at % kCellPoints),
                            panels_.dims(), estimates);
  }
  for (int q = 0; q < count; ++q) {
    // Distance and point in one number, whose order is that of the distances.
    scratch.ranked.clear();
    const Size own = among_themselves_ ? tile[q] : -1; // the queries' own cell is the first
    for (Size at = 0; at < points; ++at) {
      const float estimate = scratch.estimates[static_cast<std::size_t>(q * points + at)];
      if (at != own && estimate < std::numeric_limits<float>::infinity()) {
        scratch.ranked.push_back(
            std::uint64_t{std::bit_cast<std::uint32_t>(std::max(estimate, 0.0f))} << 32 |
            static_cast<std::uint64_t>(at));
      }
    }
    const auto most = static_cast<std::ptrdiff_t>(
        std::min(static_cast<std::size_t>(kept_), scratch.ranked.size()));
    std::nth_element(scratch.ranked.begin(), scratch.ranked.begin() + most, scratch.ranked.end());
    const auto query = static_cast<std::size_t>(tile[q]);
    const PointId row = query_cells_.row(query_cells_.begin(cell) + tile[q]);
    for (auto ranked = scratch.ranked.begin(); ranked != scratch.ranked.begin() + most; ++ranked) {
      const auto at = static_cast<Size>(*ranked & 0xffffffffU);
      const Size visited = scratch.visits[static_cast<std::size_t>(at / kCellPoints)];
      scratch.nearest[query].add(
          candidate(row, cells_.row(cells_.begin(visited) + at % kCellPoints)));
      scratch.seeded[query].set(static_cast<std::size_t>(at));
    }
    scratch.nearest[query].drop_farthest();
  }
}

// Tiles of queries against the panels of the cell that comes at this point of the visits.
template <typename Data>
void CellSearch<Data>::visit_tiles(Size cell, Size visit, const int* tile, int count,
                                   Scratch& scratch) const {
  const Size first = query_cells_.begin(cell);
  const Size visited = scratch.visits[static_cast<std::size_t>(visit)];
  const Size begin = cells_.begin(visited);
  FilterQueries queries = tile_queries(cell, tile, count, scratch);
  for (Size place = begin; place < cells_.end(visited); place += panels_.width()) {
    std::uint64_t hits[kTileQueries];
    if (!kernels().filter_tile(queries, panels_.panel(place), panels_.stages(), hits)) {
      continue;
    }
    for (int q = 0; q < count; ++q) {
      const PointId query = query_cells_.row(first + tile[q]);
      const auto& seeded = scratch.seeded[static_cast<std::size_t>(tile[q])];
      NearestList& nearest = scratch.nearest[static_cast<std::size_t>(tile[q])];
      for (std::uint64_t mask = hits[q]; mask != 0; mask &= mask - 1) {
        const Size hit = place + std::countr_zero(mask);
        if (visit < kSeedCells &&
            seeded[static_cast<std::size_t>(visit * kCellPoints + hit - begin)]) {
          continue;
        }
        const PointId point = cells_.row(hit);
        if (!among_themselves_ || point != query) {
          nearest.add(candidate(query, point));
        }
      }
      queries.limits[q] = upper_float(nearest.limit());
    }
  }
}

// Queries that are not there find nothing.
template <typename Data>
FilterQueries CellSearch<Data>::tile_queries(Size cell, const int* tile, int count,
                                             const Scratch& scratch) const {
  FilterQueries queries;
  for (int q = 0; q < kTileQueries; ++q) {
    const Size from = tile[q < count ? q : 0];
    query_panels().set_query(query_cells_.begin(cell) + from,
                             scratch.filtered.data() + from * query_panels().dims(), queries, q);
    queries.limits[q] = q < count
                            ? upper_float(scratch.nearest[static_cast<std::size_t>(from)].limit())
                            : -std::numeric_limits<float>::infinity();
  }
  return queries;
}

template <typename Data>
Candidate CellSearch<Data>::candidate(PointId query, PointId point) const {
  return {kernel_.near_distance(queries_.row(query), points_.row(point), points_.features,
                                points_.projection.scale),
          point};
}

// The limit as a float, raised by the rounding of the distance behind it and of the conversion.
template <typename Data>
float CellSearch<Data>::upper_float(double limit) const {
  return static_cast<float>(limit * (1 + 2 * rounding_) + kSmallestDistance);
}

template class CellSearch<float>;
template class CellSearch<double>;

} // namespace acctsne
