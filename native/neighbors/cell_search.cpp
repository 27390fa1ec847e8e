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

// A limit that at least `wanted` numbers are below, if there are so many, and not many more unless
// they are equal. Found by halving: the bits of positive floats are in the order of the numbers.
float limit_of_lowest(const float* numbers, Size count, Size wanted) {
  auto low = std::bit_cast<std::uint32_t>(0.0f);
  auto high = std::bit_cast<std::uint32_t>(std::numeric_limits<float>::infinity());
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    const Size below = kernels().count_below(numbers, count, std::bit_cast<float>(middle));
    (below < wanted ? low : high) = middle;
    if (below >= wanted && below <= wanted + wanted / 8) {
      break;
    }
  }
  return std::bit_cast<float>(high);
}

} // namespace

template <typename Data>
CellSearch<Data>::CellSearch(const PointSet<Data>& points, const Cells& cells,
                             const PointSet<Data>& queries, const Cells& query_cells, Size kept,
                             ThreadTeam& team)
    : points_(points), cells_(cells), queries_(queries), query_cells_(query_cells),
      among_themselves_(&cells == &query_cells), kept_(kept),
      panels_(cells, points.projection, team),
      rounding_((static_cast<double>(points.features) + 16) * 0x1p-23) {
  if (!among_themselves_) {
    query_panels_.emplace(query_cells, queries.projection, team);
  }
}

template <typename Data>
bool CellSearch<Data>::search(Size cell, Scratch& scratch, ThreadTeam& team, int worker) const {
  prepare_queries(cell, scratch);
  order_visits(cell, scratch);
  seed(cell, scratch);
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
    if (scratch.active.empty()) {
      continue;
    }
    visit_cell(cell, visit, scratch);
    farthest_limit = 0;
    for (const NearestList& nearest : scratch.nearest) {
      farthest_limit = std::max(farthest_limit, nearest.limit());
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
  scratch.full.start(points_, count);
  scratch.active.resize(static_cast<std::size_t>(count));
  std::iota(scratch.active.begin(), scratch.active.end(), 0);
  for (Size q = 0; q < count; ++q) {
    std::copy_n(queries_.projection.row(query_cells_.row(first + q)), dims,
                scratch.coordinates.data() + q * dims);
    query_panels().copy_query(first + q, scratch.filtered.data() + q * query_panels().dims());
    scratch.nearest[static_cast<std::size_t>(q)].start(kept_);
    scratch.full.set_query(q, queries_.row(query_cells_.row(first + q)));
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

// Begins the lists with points of the first cells to visit.
template <typename Data>
void CellSearch<Data>::seed(Size cell, Scratch& scratch) const {
  const Size width = panels_.width();
  const auto count = static_cast<Size>(scratch.nearest.size());
  const Size points = std::min(kSeedCells, cells_.count()) * kCellPoints;
  scratch.seen.resize(static_cast<std::size_t>(points / width * count));
  make_tiles(cell, scratch);
  for (Size first = 0; first < count; first += kTileQueries) {
    estimate(scratch.tiles[static_cast<std::size_t>(first / kTileQueries)], points, scratch);
    for (Size query = first; query < std::min(first + kTileQueries, count); ++query) {
      float* estimates = scratch.estimates.data() + (query - first) * points;
      if (among_themselves_) {
        estimates[query] = std::numeric_limits<float>::infinity(); // its own cell comes first
      }
      kernels().bits_below(estimates, points, limit_of_lowest(estimates, points, kept_),
                           &seen(0, query, scratch), count);
    }
  }
  for (Size at = 0; at < points; at += width) {
    for (Size query = 0; query < count; ++query) {
      scratch.full.ask(query, cells_, visited_place(at, scratch), seen(at / width, query, scratch));
    }
    scratch.full.answer(cells_, visited_place(at, scratch), scratch.nearest);
  }
  for (Size query = 0; query < count; ++query) {
    scratch.nearest[static_cast<std::size_t>(query)].drop_farthest();
    if (among_themselves_) {
      seen(query / width, query, scratch) |= std::uint64_t{1} << query % width;
    }
  }
}

// Estimates the distances of a tile's queries from the first `points` to visit.
template <typename Data>
void CellSearch<Data>::estimate(const FilterQueries& tile, Size points, Scratch& scratch) const {
  scratch.estimates.resize(static_cast<std::size_t>(kTileQueries * points));
  for (Size at = 0; at < points; at += panels_.width()) {
    float* estimates[kTileQueries];
    for (int q = 0; q < kTileQueries; ++q) {
      estimates[q] = scratch.estimates.data() + q * points + at;
    }
    kernels().estimate_tile(tile, panels_.panel(visited_place(at, scratch)), panels_.dims(),
                            estimates);
  }
}

// The active queries against the panels of the cell that comes at this point of the visits. All of
// them meet one panel before the next, so that it stays in the nearest cache.
template <typename Data>
void CellSearch<Data>::visit_cell(Size cell, Size visit, Scratch& scratch) const {
  make_tiles(cell, scratch);
  const Size begin = visit * kCellPoints;
  const Size visited = scratch.visits[static_cast<std::size_t>(visit)];
  const Size end = begin + cells_.end(visited) - cells_.begin(visited);
  for (Size at = begin; at < end; at += panels_.width()) {
    const Size place = visited_place(at, scratch);
    const FilterPanel panel = panels_.panel(place);
    scratch.hit.clear();
    for (std::size_t t = 0; t < scratch.tiles.size(); ++t) {
      std::uint64_t hits[kTileQueries];
      if (!kernels().filter_tile(scratch.tiles[t], panel, panels_.stages(), hits)) {
        continue;
      }
      for (std::size_t q = 0; q < kTileQueries; ++q) {
        if (hits[q] != 0) {
          const std::size_t a = t * kTileQueries + q;
          const int query = scratch.active[a];
          const std::uint64_t met =
              visit < kSeedCells ? seen(at / panels_.width(), query, scratch) : 0;
          scratch.full.ask(query, cells_, place, hits[q] & ~met);
          scratch.hit.push_back(a);
        }
      }
    }
    scratch.full.answer(cells_, place, scratch.nearest);
    for (const std::size_t a : scratch.hit) {
      scratch.tiles[a / kTileQueries].limits[a % kTileQueries] =
          upper_limit(scratch.active[a], scratch);
    }
  }
}

// Puts the active queries into tiles. Those that a last tile lacks find nothing.
template <typename Data>
void CellSearch<Data>::make_tiles(Size cell, Scratch& scratch) const {
  const auto count = static_cast<Size>(scratch.active.size());
  scratch.tiles.resize(static_cast<std::size_t>(chunk_count(count, kTileQueries)));
  for (Size a = 0; a < static_cast<Size>(scratch.tiles.size()) * kTileQueries; ++a) {
    FilterQueries& tile = scratch.tiles[static_cast<std::size_t>(a / kTileQueries)];
    const auto q = static_cast<int>(a % kTileQueries);
    const Size query = scratch.active[static_cast<std::size_t>(std::min(a, count - 1))];
    query_panels().set_query(query_cells_.begin(cell) + query,
                             scratch.filtered.data() + query * query_panels().dims(), tile, q);
    tile.limits[q] =
        a < count ? upper_limit(query, scratch) : -std::numeric_limits<float>::infinity();
  }
}

// A query's limit as a float, raised by the rounding of the distance behind it and of the
// conversion.
template <typename Data>
float CellSearch<Data>::upper_limit(Size query, const Scratch& scratch) const {
  const double limit = scratch.nearest[static_cast<std::size_t>(query)].limit();
  return static_cast<float>(limit * (1 + 2 * rounding_) + kSmallestDistance);
}

template class CellSearch<float>;
template class CellSearch<double>;

} // namespace acctsne
