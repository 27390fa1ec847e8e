// For the queries of one cell, visit the cells of the points from the nearest to the farthest.
#pragma once

#include "neighbors/filter.hpp"
#include "neighbors/full_distances.hpp"

#include <optional>
#include <vector>

namespace acctsne {

// Squared distances below this may have lost bits of their terms to underflow in float.
inline constexpr double kSmallestDistance = 0x1p-90;

// Nearest cells whose points the lists begin with. AVX-512, 2 threads, k = 90: MNIST-70k 5.9 s with
// none, 5.6 s with 3 or 8; CIFAR-10 18.6 s with none, 16.8 s with 3, 16.1 s with 8.
inline constexpr Size kSeedCells = 6;

template <typename Data>
class CellSearch {
public:
  // The queries may be the points themselves, cells and all: then none is its own neighbour.
  CellSearch(const PointSet<Data>& points, const Cells& cells, const PointSet<Data>& queries,
             const Cells& query_cells, Size kept, ThreadTeam& team);

  // What one worker needs.
  struct Scratch {
    std::vector<NearestList> nearest; // the result, a list for each query of the cell
    FullDistances<Data> full;

    std::vector<std::int16_t> filtered;  // coordinates of the cell's queries for the filter
    std::vector<float> coordinates;      // and as they are
    std::vector<float> center_distances; // of all cells from this one
    std::vector<float> query_distances;  // of all queries from the visited cell's centre
    std::vector<Size> visits;            // cells, nearest first
    std::vector<int> active;             // queries that a cell may concern

    std::vector<FilterQueries> tiles; // of them
    std::vector<std::size_t> hit;     // those among them with a point of the panel within limits

    std::vector<float> estimates;    // of a tile's queries' distances from the seed cells' points
    std::vector<std::uint64_t> seen; // of each seed panel by each query: points already offered
  };

  // Finds the `kept` nearest points of the queries of one cell. What it keeps depends on the query
  // and the points alone. False if the team's loop is to be abandoned.
  bool search(Size cell, Scratch& scratch, ThreadTeam& team, int worker) const;

  // Relative, of the distances found.
  double rounding() const { return rounding_; }

private:
  void prepare_queries(Size cell, Scratch& scratch) const;
  void order_visits(Size cell, Scratch& scratch) const;
  void seed(Size cell, Scratch& scratch) const;
  void estimate(const FilterQueries& tile, Size points, Scratch& scratch) const;
  void find_active(Size cell, Size visited, Scratch& scratch) const;
  void visit_cell(Size cell, Size visit, Scratch& scratch) const;
  void make_tiles(Size cell, Scratch& scratch) const;
  const FilterPanels& query_panels() const { return query_panels_ ? *query_panels_ : panels_; }
  // The place of the point that is met as number `at`.
  Size visited_place(Size at, const Scratch& scratch) const {
    return cells_.begin(scratch.visits[static_cast<std::size_t>(at / kCellPoints)]) +
           at % kCellPoints;
  }
  static std::uint64_t& seen(Size panel, Size query, Scratch& scratch) {
    return scratch.seen[static_cast<std::size_t>(panel) * scratch.nearest.size() +
                        static_cast<std::size_t>(query)];
  }
  float upper_limit(Size query, const Scratch& scratch) const;

  const PointSet<Data>& points_;
  const Cells& cells_;
  const PointSet<Data>& queries_;
  const Cells& query_cells_;
  bool among_themselves_;
  Size kept_;
  FilterPanels panels_;
  std::optional<FilterPanels> query_panels_; // if the queries are not the points
  double rounding_;
};

} // namespace acctsne
