// The nearest points of all queries, cell by cell.
#pragma once

#include "neighbors/cell_pairs.hpp"
#include "neighbors/filter.hpp"
#include "neighbors/full_distances.hpp"
#include "neighbors/proof.hpp"
#include "neighbors/seeds.hpp"

#include <atomic>
#include <limits>
#include <vector>

namespace acctsne {

// Pairs of cells are visited for both from so many dims on: with few, tiles take less time than the
// lists of far places (benchmarks/neighbors.py, docs/tuning.md, as all constants of the search).
inline constexpr Size kPairedDims = 24;

// And from so many cells on for each thread, lest threads wait for each other's cells.
inline constexpr Size kPairedCells = 8;

// Points, those searched or the queries, in the order of their cells and as the search compares
// them.
template <typename Data>
struct SearchedPoints {
  SearchedPoints(const PointSet<Data>& points, const Cells& cells_, bool as_bytes, Size first_,
                 ThreadTeam& team)
      : cells(cells_), panels(cells_, points.projection, team),
        rows(points, cells_, as_bytes, team), first(first_) {}

  PointId id(Size place) const { return static_cast<PointId>(first + cells.row(place)); }

  const Cells& cells;
  FilterPanels panels;
  FullRows<Data> rows;
  Size first; // the number that the first row has in what is found
};

// What the queries have found so far, by their places.
template <typename Data>
struct QueryLists {
  QueryLists(const Cells& queries, Size kept_)
      : kept(kept_), nearest(at(queries.rows())),
        // No point, no limit.
        limits(at(queries.count() * kCellPoints), -std::numeric_limits<float>::infinity()),
        farthest(at(queries.count())) {}

  NearestList<Data>& of(Size place) { return nearest[at(place)]; }

  Size kept; // points of each list
  std::vector<NearestList<Data>> nearest;
  std::vector<float> limits;   // raised by the rounding of the distance and of the conversion
  std::vector<float> farthest; // limit in each cell
};

// Counts queries that are done, for a progress bar.
struct SearchProgress {
  std::atomic<Size>* done = nullptr;
  Size worth = 0; // what all queries of the search count for
};

template <typename Data>
class CellSearch {
public:
  // The queries may be the points themselves, the same object: then none is its own neighbour.
  // Lists may go on from what was found among other points.
  CellSearch(const SearchedPoints<Data>& points, const SearchedPoints<Data>& queries,
             QueryLists<Data>& lists, bool go_on, ThreadTeam& team);

  // Finds the nearest points of the queries. What it keeps depends on the query and the points
  // alone. Calls finished(cell, worker) when the lists of a cell's queries are complete.
  template <typename Finished>
  void run(ThreadTeam& team, SearchProgress progress, const Finished& finished) {
    progress_ = progress;
    const bool in_pairs = pairs_help(team.size());
    if (in_pairs) {
      team.for_chunks(cells_.count(), [&](Size cell, int worker) { begin(cell, scratch(worker)); });
      for (const bool near : {true, false}) {
        team.for_chunks(cells_.count(), [&](Size cell, int worker) {
          count_progress(cell, visit_pairs(cell, near, scratch(worker), team, worker));
        });
      }
    }
    team.for_chunks(query_cells_.count(), [&](Size cell, int worker) {
      const bool begins = !in_pairs && !go_on_;
      if (begins) {
        begin(cell, scratch(worker));
      }
      if (visit_other_cells(cell, begins, scratch(worker), team, worker)) {
        finished(cell, worker);
        count_rest(cell);
      }
    });
  }

private:
  // What one worker needs.
  struct Scratch {
    FullDistances<Data> full;

    std::vector<std::int16_t> filtered;  // coordinates of the cell's queries for the filter
    std::vector<float> coordinates;      // and as they are
    std::vector<float> centre_distances; // of all cells from this one
    std::vector<Size> visits;            // cells, nearest first
    std::vector<Size> active;            // queries that a cell may concern

    std::vector<FilterQueries> tiles; // of them
    std::vector<std::size_t> hit;     // those among them with a point of the panel within limits
    std::vector<float> estimates;     // of a tile's queries' distances from the seed cells' points
  };

  // The queries of one cell and the points of another.
  struct CellVisit {
    Size first_query; // place
    Size first_point;
    bool for_both; // the points are queries too
    Seeds::Known queries_know;
    Seeds::Known points_know;
  };

  bool pairs_help(int threads) const;
  void begin(Size cell, Scratch& scratch);
  Size visit_pairs(Size cell, bool near, Scratch& scratch, ThreadTeam& team, int worker);
  bool visit_other_cells(Size cell, bool prepared, Scratch& scratch, ThreadTeam& team, int worker);
  Size worth(Size cell) const;
  void count_progress(Size cell, Size settled);
  void count_rest(Size cell);

  void prepare_queries(Size cell, Scratch& scratch) const;
  void order_visits(Size cell, Scratch& scratch) const;
  void seed(Size cell, Scratch& scratch);
  void estimate(const FilterQueries& tile, Size points, Scratch& scratch) const;
  void activate_all(Size cell, Scratch& scratch) const;
  void find_active(Size cell, Size visited, Size step, Scratch& scratch) const;
  void find_farthest(Size cell);
  float farthest(Size cell) const { return lists_.farthest[at(cell)]; }
  double gap(Size cell, Size visited, const Scratch& scratch) const;
  void visit(Size cell, Size visited, bool for_both, Scratch& scratch);
  void ask(const CellVisit& visit, Size place, Scratch& scratch) const;
  void answer(const CellVisit& visit, Size place, Scratch& scratch);
  void make_tiles(Size cell, Scratch& scratch) const;
  void offer(Size place, Candidate<Data> candidate);
  void lower_limit(Size place);
  Scratch& scratch(int worker) { return scratch_[at(worker)]; }
  NearestList<Data>& nearest(Size place) { return lists_.of(place); }
  float& limit(Size place) { return lists_.limits[at(place)]; }

  const SearchKernels& kernels_;
  const SearchedPoints<Data>& points_;
  const SearchedPoints<Data>& queries_;
  const Cells& cells_; // of the points
  const Cells& query_cells_;
  const FilterPanels& panels_; // of the points
  QueryLists<Data>& lists_;
  bool among_themselves_;
  bool go_on_;
  double rounding_;
  SearchProgress progress_;
  Seeds seeds_;
  CellPairs pairs_;
  std::vector<Size> counted_; // of each cell, as done

  std::vector<Scratch> scratch_; // for each worker
};

} // namespace acctsne
