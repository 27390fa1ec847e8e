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
namespace {

// Finds at least `wanted` of the lowest numbers, if there are so many, and not many more: all up to
// the end of one of 512 bins. The bits of floats are in the order of the numbers and about
// logarithms of them; a bin is a 64th of an octave wide, and the middle ones lie about the mean.
void find_lowest(const float* numbers, Size count, Size wanted, std::vector<PointId>& lowest) {
  constexpr int kBins = 512;
  const auto bits = [&](Size i) { return std::bit_cast<std::int32_t>(std::max(numbers[i], 0.0f)); };
  std::int64_t sum = 0;
  for (Size i = 0; i < count; ++i) {
    sum += bits(i);
  }
  const int first = static_cast<int>(sum / count >> 17) - kBins / 2;
  const auto bin = [&](Size i) { return std::clamp((bits(i) >> 17) - first, 0, kBins - 1); };
  int sizes[kBins] = {};
  for (Size i = 0; i < count; ++i) {
    ++sizes[bin(i)];
  }
  int last = 0;
  for (Size found = sizes[0]; found < wanted && last < kBins - 1;) {
    found += sizes[++last];
  }
  // Without a branch that nothing could predict.
  lowest.resize(static_cast<std::size_t>(count));
  std::size_t found = 0;
  for (Size i = 0; i < count; ++i) {
    lowest[found] = static_cast<PointId>(i);
    found += bin(i) <= last;
  }
  lowest.resize(found);
}

} // namespace

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
    float* estimates = scratch.estimates.data() + q * points;
    if (among_themselves_) {
      estimates[tile[q]] = std::numeric_limits<float>::infinity(); // its own cell is the first
    }
    find_lowest(estimates, points, kept_, scratch.lowest);
    const PointId query = query_cells_.row(query_cells_.begin(cell) + tile[q]);
    NearestList& nearest = scratch.nearest[static_cast<std::size_t>(tile[q])];
    for (const PointId at : scratch.lowest) {
      if (estimates[at] < std::numeric_limits<float>::infinity()) {
        const Size visited = scratch.visits[static_cast<std::size_t>(at / kCellPoints)];
        const Size place = cells_.begin(visited) + at % kCellPoints;
        nearest.add(candidate(query, cells_.row(place)));
        scratch.seeded[static_cast<std::size_t>(tile[q])].set(static_cast<std::size_t>(at));
      }
    }
    nearest.drop_farthest();
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
