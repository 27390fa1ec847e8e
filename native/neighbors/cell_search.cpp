// The search for the nearest points of all queries, cell by cell: in which order cells are visited,
// and for whom.
//
// A query's limit, the distance of the last one kept so far, falls as cells are visited, and until
// it is low the filter lets most of the near cells' points pass. So
//
// 1. lists begin with the points of the nearest few cells whose estimated distances are lowest;
// 2. all cells are visited by those that are near before those that are far.
//
// Two points are as far apart from either side. So where the points are their own queries, two
// cells that concern each other as a whole are visited once, for the lists of both. What is left is
// visited for the queries of one cell at a time. All that is only a matter of order: the lists end
// up the same.
#include "neighbors/cell_search.hpp"

#include "kernels/dispatch.hpp"

#include <bit>
#include <limits>
#include <numeric>

namespace acctsne {
namespace {

// The nearest of a cell's pairs, one in so many, come first; how many makes no
// difference (docs/tuning.md).
constexpr Size kNearPart = 8;

// Two cells are visited for both if at least this part of the queries of one may have neighbours in
// the other: half of them in both cells would cost as much one by one. Every eighth query tells.
constexpr double kMostOfCell = 0.75;
constexpr Size kAskedQueries = 8;

// A limit that at least `wanted` numbers are below, if there are so many, and not many more unless
// they are equal. Found by halving: the bits of positive floats are in the order of the numbers.
float limit_of_lowest(const SearchKernels& kernels, const float* numbers, Size count, Size wanted) {
  auto low = std::bit_cast<std::uint32_t>(0.0f);
  auto high = std::bit_cast<std::uint32_t>(std::numeric_limits<float>::infinity());
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    const Size below = kernels.count_below(numbers, count, std::bit_cast<float>(middle));
    (below < wanted ? low : high) = middle;
    if (below >= wanted && below <= wanted + wanted / 8) {
      break;
    }
  }
  return std::bit_cast<float>(high);
}

// The bits without those of which it is known, if there can be any.
template <typename Known>
std::uint64_t bits_without(std::uint64_t bits, bool any, const Known& known) {
  if (any) {
    for (std::uint64_t left = bits; left != 0; left &= left - 1) {
      if (known(std::countr_zero(left))) {
        bits ^= left & -left;
      }
    }
  }
  return bits;
}

} // namespace

template <typename Data>
CellSearch<Data>::CellSearch(const SearchedPoints<Data>& points,
                             const SearchedPoints<Data>& queries, QueryLists<Data>& lists,
                             bool go_on, ThreadTeam& team)
    : kernels_(kernels().search), points_(points), queries_(queries), cells_(points.cells),
      query_cells_(queries.cells), panels_(points.panels), lists_(lists),
      among_themselves_(&points == &queries), go_on_(go_on),
      rounding_(rounding_of_distances(points.rows.points.features)),
      // Lists that go on have begun.
      seeds_(go_on ? 0 : query_cells_.count(), go_on ? 0 : cells_.count(), panels_.width(),
             team.size()),
      pairs_(among_themselves_ ? cells_.count() : 0), counted_(at(query_cells_.count())),
      scratch_(at(team.size())) {}

template <typename Data>
bool CellSearch<Data>::pairs_help(int threads) const {
  return among_themselves_ && cells_.dims() >= kPairedDims &&
         cells_.count() >= kPairedCells * threads;
}

template <typename Data>
void CellSearch<Data>::begin(Size cell, Scratch& scratch) {
  for (Size place = query_cells_.begin(cell); place < query_cells_.end(cell); ++place) {
    nearest(place).start(lists_.kept);
    limit(place) = std::numeric_limits<float>::infinity();
  }
  prepare_queries(cell, scratch);
  order_visits(cell, scratch);
  seed(cell, scratch);
  find_farthest(cell);
  if (among_themselves_) {
    visit(cell, cell, false, scratch);
  }
}

// Visits those of a cell's pairs that it can, for both. Returns how many need no further visit.
template <typename Data>
Size CellSearch<Data>::visit_pairs(Size cell, bool near, Scratch& scratch, ThreadTeam& team,
                                   int worker) {
  prepare_queries(cell, scratch);
  order_visits(cell, scratch);
  std::erase_if(scratch.visits, [&](Size other) { return !pairs_.belongs_to(cell, other); });
  const Size near_ones = chunk_count(static_cast<Size>(scratch.visits.size()), kNearPart);
  const auto first_far = scratch.visits.begin() + near_ones;
  std::vector<Size> others(near ? scratch.visits.begin() : first_far,
                           near ? first_far : scratch.visits.end());
  Size settled = 0;
  while (!others.empty() && !team.should_stop(worker)) {
    CellPairs::Lock pair(pairs_, cell, others);
    if (!pair) {
      break;
    }
    const double apart = gap(cell, pair.other(), scratch);
    const float farthest_of_both = std::max(farthest(cell), farthest(pair.other()));
    if (apart * apart < static_cast<double>(farthest_of_both)) {
      find_active(cell, pair.other(), kAskedQueries, scratch);
      const Size asked = chunk_count(cells_.end(cell) - cells_.begin(cell), kAskedQueries);
      if (static_cast<double>(scratch.active.size()) < kMostOfCell * static_cast<double>(asked)) {
        continue;
      }
      visit(cell, pair.other(), true, scratch);
    }
    pair.settle();
    ++settled;
  }
  return settled;
}

template <typename Data>
bool CellSearch<Data>::visit_other_cells(Size cell, bool prepared, Scratch& scratch,
                                         ThreadTeam& team, int worker) {
  if (!prepared) {
    order_visits(cell, scratch);
  }
  if (among_themselves_) {
    std::erase_if(scratch.visits,
                  [&](Size visited) { return visited == cell || pairs_.settled(cell, visited); });
  }
  if (scratch.visits.empty()) {
    return true;
  }
  if (!prepared) {
    prepare_queries(cell, scratch);
  }
  for (const Size visited : scratch.visits) {
    if (team.should_stop(worker)) {
      return false;
    }
    const double apart = gap(cell, visited, scratch);
    if (apart * apart >= static_cast<double>(farthest(cell))) {
      continue;
    }
    find_active(cell, visited, 1, scratch);
    if (!scratch.active.empty()) {
      visit(cell, visited, false, scratch);
    }
  }
  return true;
}

// What the queries of a cell count for.
template <typename Data>
Size CellSearch<Data>::worth(Size cell) const {
  const Size queries = query_cells_.rows();
  return progress_.worth * query_cells_.end(cell) / queries -
         progress_.worth * query_cells_.begin(cell) / queries;
}

// A pair is two of the visits that every cell makes to all.
template <typename Data>
void CellSearch<Data>::count_progress(Size cell, Size settled) {
  if (progress_.done != nullptr) {
    const Size part = worth(cell) * 2 * settled / cells_.count();
    counted_[at(cell)] += part;
    progress_.done->fetch_add(part, std::memory_order_relaxed);
  }
}

template <typename Data>
void CellSearch<Data>::count_rest(Size cell) {
  if (progress_.done != nullptr) {
    progress_.done->fetch_add(worth(cell) - counted_[at(cell)], std::memory_order_relaxed);
  }
}

// The gap between the bounding spheres, which bounds all distances between their points from below.
template <typename Data>
double CellSearch<Data>::gap(Size cell, Size visited, const Scratch& scratch) const {
  return std::max(0.0, static_cast<double>(scratch.centre_distances[at(visited)]) -
                           query_cells_.radius(cell) - cells_.radius(visited));
}

template <typename Data>
void CellSearch<Data>::find_farthest(Size cell) {
  const auto first = lists_.limits.begin() + static_cast<std::ptrdiff_t>(query_cells_.begin(cell));
  lists_.farthest[at(cell)] = *std::max_element(first, first + kCellPoints);
}

// Copies what a worker reads again and again. All queries are active at first.
template <typename Data>
void CellSearch<Data>::prepare_queries(Size cell, Scratch& scratch) const {
  const Size dims = query_cells_.dims();
  const Size first = query_cells_.begin(cell);
  const Size count = query_cells_.end(cell) - first;
  scratch.coordinates.resize(at(kCellPoints * dims));
  scratch.filtered.resize(at(kCellPoints * queries_.panels.dims()));
  scratch.full.start(points_.rows, queries_.rows, first, count);
  for (Size q = 0; q < count; ++q) {
    std::copy_n(queries_.rows.points.projection.row(query_cells_.row(first + q)), dims,
                scratch.coordinates.data() + q * dims);
    queries_.panels.copy_query(first + q, scratch.filtered.data() + q * queries_.panels.dims());
  }
  activate_all(cell, scratch);
}

template <typename Data>
void CellSearch<Data>::activate_all(Size cell, Scratch& scratch) const {
  scratch.active.resize(at(query_cells_.end(cell) - query_cells_.begin(cell)));
  std::iota(scratch.active.begin(), scratch.active.end(), Size{0});
}

// Cells from the nearest centre to the farthest; the queries' own comes first.
template <typename Data>
void CellSearch<Data>::order_visits(Size cell, Scratch& scratch) const {
  const Size cells = cells_.count();
  std::vector<float>& from_centre = scratch.centre_distances;
  from_centre.resize(at(cells));
  kernels_.distances_to_rows(query_cells_.centre(cell), cells_.centre(0), cells, cells_.dims(),
                             cells_.dims(), from_centre.data());
  const Size own = among_themselves_ ? cell : -1;
  scratch.visits.resize(at(cells));
  std::iota(scratch.visits.begin(), scratch.visits.end(), Size{0});
  std::sort(scratch.visits.begin(), scratch.visits.end(), [&](Size a, Size b) {
    const float left = a == own ? -1 : from_centre[at(a)];
    const float right = b == own ? -1 : from_centre[at(b)];
    return left < right || (left == right && a < b);
  });
}

// The queries that may have a neighbour in the visited cell's bounding sphere, of one in `step`.
template <typename Data>
void CellSearch<Data>::find_active(Size cell, Size visited, Size step, Scratch& scratch) const {
  const Size first = query_cells_.begin(cell);
  const Size count = query_cells_.end(cell) - first;
  const Size dims = cells_.dims();
  float distances[kCellPoints];
  kernels_.distances_to_rows(cells_.centre(visited), scratch.coordinates.data(),
                             chunk_count(count, step), dims, step * dims, distances);
  scratch.active.clear();
  const double reach = cells_.radius(visited) + query_cells_.rounding(cell);
  const float* distance = distances;
  for (Size q = 0; q < count; q += step) {
    const double apart = static_cast<double>(*distance++) - reach;
    const auto limit = static_cast<double>(lists_.limits[at(first + q)]);
    if (apart <= 0 || apart * apart < limit) {
      scratch.active.push_back(q);
    }
  }
}

// Begins the lists with points of the first cells to visit.
template <typename Data>
void CellSearch<Data>::seed(Size cell, Scratch& scratch) {
  const Size width = panels_.width();
  const auto count = static_cast<Size>(scratch.active.size());
  const Size points = seeds_.cells() * kCellPoints;
  std::uint64_t* bits = seeds_.bits(cell);
  seeds_.choose(cell, scratch.visits.data());
  make_tiles(cell, scratch);
  for (Size first = 0; first < count; first += kTileQueries) {
    estimate(scratch.tiles[at(first / kTileQueries)], points, scratch);
    for (Size query = first; query < std::min(first + kTileQueries, count); ++query) {
      float* estimates = scratch.estimates.data() + (query - first) * points;
      if (among_themselves_) {
        estimates[query] = std::numeric_limits<float>::infinity(); // its own cell comes first
      }
      kernels_.bits_below(estimates, points,
                          limit_of_lowest(kernels_, estimates, points, lists_.kept), bits + query,
                          kCellPoints);
    }
  }
  for (Size point = 0; point < points; point += width) {
    const Size place = cells_.begin(scratch.visits[at(point / kCellPoints)]) + point % kCellPoints;
    for (Size query = 0; query < count; ++query) {
      scratch.full.ask(query, place, bits[point / width * kCellPoints + query]);
    }
    scratch.full.answer(place, [&](Size query, int p, Data distance) {
      nearest(query_cells_.begin(cell) + query).add({distance, points_.id(place + p)});
    });
  }
  for (Size query = 0; query < count; ++query) {
    nearest(query_cells_.begin(cell) + query).drop_farthest();
    lower_limit(query_cells_.begin(cell) + query);
    if (among_themselves_) {
      bits[query / width * kCellPoints + query] |= std::uint64_t{1} << query % width;
    }
  }
}

// Estimates the distances of a tile's queries from the first `points` to visit.
template <typename Data>
void CellSearch<Data>::estimate(const FilterQueries& tile, Size points, Scratch& scratch) const {
  // The axes of the fourth stage are left out: they are the most, and change an estimate least
  // (docs/tuning.md).
  const Size dims = panels_.stages().dims[std::min(panels_.stages().count, kMostStages - 1) - 1];
  scratch.estimates.resize(at(kTileQueries * points));
  for (Size point = 0; point < points; point += panels_.width()) {
    float* estimates[kTileQueries];
    for (int q = 0; q < kTileQueries; ++q) {
      estimates[q] = scratch.estimates.data() + q * points + point;
    }
    const Size visited = scratch.visits[at(point / kCellPoints)];
    kernels_.estimate_tile(tile, panels_.panel(cells_.begin(visited) + point % kCellPoints), dims,
                           estimates);
  }
}

// The active queries against the panels of one cell. All of them meet one panel before the next, so
// that it stays in the nearest cache.
template <typename Data>
void CellSearch<Data>::visit(Size cell, Size visited, bool for_both, Scratch& scratch) {
  if (for_both) {
    activate_all(cell, scratch); // a query may concern points that do not concern it
  }
  make_tiles(cell, scratch);
  const CellVisit pair{query_cells_.begin(cell), cells_.begin(visited), for_both,
                       seeds_.known(cell, visited),
                       for_both ? seeds_.known(visited, cell) : Seeds::Known{}};
  for (Size place = cells_.begin(visited); place < cells_.end(visited); place += panels_.width()) {
    ask(pair, place, scratch);
    answer(pair, place, scratch);
  }
  find_farthest(cell);
  if (for_both) {
    find_farthest(visited);
  }
}

// Asks for the distances of the points of the panel at `place` that the filter lets pass.
template <typename Data>
void CellSearch<Data>::ask(const CellVisit& visit, Size place, Scratch& scratch) const {
  const Size at = place - visit.first_point;
  FilterPanel panel = panels_.panel(place);
  panel.limits = visit.for_both ? lists_.limits.data() + place : nullptr;
  scratch.hit.clear();
  for (std::size_t t = 0; t < scratch.tiles.size(); ++t) {
    FilterHits hits;
    if (!kernels_.filter_tile(scratch.tiles[t], panel, panels_.stages(), hits)) {
      continue;
    }
    for (std::size_t q = 0; q < kTileQueries; ++q) {
      if ((hits.of_query[q] | hits.of_point[q]) == 0) {
        continue;
      }
      const std::size_t a = t * kTileQueries + q;
      const Size query = scratch.active[a];
      const std::uint64_t new_to_query =
          bits_without(hits.of_query[q], visit.queries_know.any(),
                       [&](int p) { return visit.queries_know.holds(query, at + p); });
      const std::uint64_t new_to_points =
          bits_without(hits.of_point[q], visit.points_know.any(),
                       [&](int p) { return visit.points_know.holds(at + p, query); });
      scratch.full.ask(query, place, new_to_query | new_to_points);
      scratch.hit.push_back(a);
    }
  }
}

// Offers the points of the panel to the queries, and those to the points if the visit is for both.
template <typename Data>
void CellSearch<Data>::answer(const CellVisit& visit, Size place, Scratch& scratch) {
  const Size at = place - visit.first_point;
  scratch.full.answer(place, [&](Size query, int p, Data distance) {
    if (!visit.queries_know.holds(query, at + p)) {
      offer(visit.first_query + query, {distance, points_.id(place + p)});
    }
    if (visit.for_both && !visit.points_know.holds(at + p, query)) {
      offer(place + p, {distance, points_.id(visit.first_query + query)});
    }
  });
  for (const std::size_t a : scratch.hit) {
    scratch.tiles[a / kTileQueries].limits[a % kTileQueries] =
        limit(visit.first_query + scratch.active[a]);
  }
}

// Puts the active queries into tiles. Those that a last tile lacks find nothing.
template <typename Data>
void CellSearch<Data>::make_tiles(Size cell, Scratch& scratch) const {
  const auto count = static_cast<Size>(scratch.active.size());
  scratch.tiles.resize(at(chunk_count(count, kTileQueries)));
  for (Size a = 0; a < static_cast<Size>(scratch.tiles.size()) * kTileQueries; ++a) {
    FilterQueries& tile = scratch.tiles[at(a / kTileQueries)];
    const auto q = static_cast<int>(a % kTileQueries);
    const Size query = scratch.active[at(std::min(a, count - 1))];
    queries_.panels.set_query(query_cells_.begin(cell) + query,
                              scratch.filtered.data() + query * queries_.panels.dims(), tile, q);
    tile.limits[q] = lists_.limits[at(query_cells_.begin(cell) + query)];
    if (a >= count) {
      tile.norms[q] = std::numeric_limits<float>::infinity();
    }
  }
}

template <typename Data>
void CellSearch<Data>::offer(Size place, Candidate<Data> candidate) {
  if (candidate.distance <= static_cast<Data>(limit(place))) {
    nearest(place).add(candidate);
    lower_limit(place);
  }
}

template <typename Data>
void CellSearch<Data>::lower_limit(Size place) {
  const auto limit_of_list = static_cast<double>(nearest(place).limit());
  limit(place) = static_cast<float>(limit_of_list * (1 + 2 * rounding_) + kSmallestDistance);
}

template class CellSearch<float>;
template class CellSearch<double>;

} // namespace acctsne
