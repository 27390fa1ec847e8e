// The nearest points of all queries, cell by cell.
#pragma once

#include "acctsne/communicator.hpp"
#include "neighbors/cell_pairs.hpp"
#include "neighbors/filter.hpp"
#include "neighbors/full_distances.hpp"
#include "neighbors/seeds.hpp"

#include <atomic>
#include <optional>
#include <vector>

namespace acctsne {

// Squared distances below this may have lost bits of their terms to underflow in float.
inline constexpr double kSmallestDistance = 0x1p-90;

// Pairs of cells are visited for both from so many dims on: with few, tiles take less time than the
// lists of far places (benchmarks/neighbors.py, docs/tuning.md, as all constants of the search).
inline constexpr Size kPairedDims = 24;

// And from so many cells on for each thread, lest threads wait for each other's cells.
inline constexpr Size kPairedCells = 8;

template <typename Data>
class CellSearch {
public:
  // The queries may be the points themselves, cells and all: then none is its own neighbour.
  // Distances of bytes may be added up as whole numbers, which floats round, or may not.
  CellSearch(const PointSet<Data>& points, const Cells& cells, const PointSet<Data>& queries,
             const Cells& query_cells, Size kept, ThreadTeam& team, bool as_bytes = true);

  // Finds the `kept` nearest points of the queries of some cells. What it keeps depends on the
  // query and the points alone. Calls finished(cell, worker) when the lists of a cell's queries are
  // complete, which live no longer. `done`, if not null, counts queries.
  template <typename Finished>
  void run(ThreadTeam& team, Rows cells, std::atomic<Size>* done, const Finished& finished) {
    const bool in_pairs = cells.end - cells.begin == cells_.count() && pairs_help(team.size());
    if (in_pairs) {
      team.for_chunks(cells_.count(), [&](Size cell, int worker) { begin(cell, scratch(worker)); });
      for (const bool near : {true, false}) {
        team.for_chunks(cells_.count(), [&](Size cell, int worker) {
          count_progress(cell, visit_pairs(cell, near, scratch(worker), team, worker), done);
        });
      }
    }
    team.for_chunks(cells.end - cells.begin, [&](Size chunk, int worker) {
      const Size cell = cells.begin + chunk;
      if (!in_pairs) {
        begin(cell, scratch(worker));
      }
      if (visit_other_cells(cell, !in_pairs, scratch(worker), team, worker)) {
        finished(cell, worker);
        end(cell, done);
      }
    });
  }

  // Of the query at `place`.
  NearestList<Data>& nearest(Size place) { return nearest_[static_cast<std::size_t>(place)]; }

  // Relative, of the distances found.
  double rounding() const { return rounding_; }

private:
  // What one worker needs.
  struct Scratch {
    FullDistances<Data> full;

    std::vector<std::int16_t> filtered;  // coordinates of the cell's queries for the filter
    std::vector<float> coordinates;      // and as they are
    std::vector<float> center_distances; // of all cells from this one
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
  void end(Size cell, std::atomic<Size>* done);
  void count_progress(Size cell, Size settled, std::atomic<Size>* done);

  void prepare_queries(Size cell, Scratch& scratch) const;
  void order_visits(Size cell, Scratch& scratch) const;
  void seed(Size cell, Scratch& scratch);
  void estimate(const FilterQueries& tile, Size points, Scratch& scratch) const;
  void activate_all(Size cell, Scratch& scratch) const;
  void find_active(Size cell, Size visited, Size step, Scratch& scratch) const;
  void find_farthest(Size cell);
  float farthest(Size cell) const { return farthest_[static_cast<std::size_t>(cell)]; }
  double gap(Size cell, Size visited, const Scratch& scratch) const;
  void visit(Size cell, Size visited, bool for_both, Scratch& scratch);
  void ask(const CellVisit& visit, Size place, Scratch& scratch) const;
  void answer(const CellVisit& visit, Size place, Scratch& scratch);
  void make_tiles(Size cell, Scratch& scratch) const;
  void offer(Size place, Candidate<Data> candidate);
  void lower_limit(Size place);
  Scratch& scratch(int worker) { return scratch_[static_cast<std::size_t>(worker)]; }
  const FilterPanels& query_panels() const { return query_panels_ ? *query_panels_ : panels_; }
  const FullRows<Data>& query_rows() const { return query_rows_ ? *query_rows_ : rows_; }
  float& limit(Size place) { return limits_[static_cast<std::size_t>(place)]; }

  const SearchKernels& kernels_;
  const Cells& cells_;
  const PointSet<Data>& queries_;
  const Cells& query_cells_;
  bool among_themselves_;
  Size kept_;
  FilterPanels panels_;
  FullRows<Data> rows_;
  std::optional<FilterPanels> query_panels_; // if the queries are not the points
  std::optional<FullRows<Data>> query_rows_;
  double rounding_;

  // Of the queries.
  std::vector<NearestList<Data>> nearest_;
  std::vector<float> limits_;   // raised by the rounding of the distance and of the conversion
  std::vector<float> farthest_; // limit in each cell
  Seeds seeds_;
  CellPairs pairs_;
  std::vector<Size> counted_; // queries of each cell that have been counted as done

  std::vector<Scratch> scratch_; // for each worker
};

} // namespace acctsne
