// For the queries of one cell, visit the cells of the points from the nearest to the farthest.
#pragma once

#include "neighbors/panels.hpp"

#include <vector>

namespace acctsne {

// Squared distances below this may have lost bits of their terms to underflow in float.
inline constexpr double kSmallestDistance = 0x1p-90;

template <typename Data>
class CellSearch {
public:
  // The queries may be the points themselves, panels and all: then none is its own neighbour.
  CellSearch(const PointSet<Data>& points, const CellPanels& panels, const PointSet<Data>& queries,
             const CellPanels& query_panels, Size kept);

  // What one worker needs.
  struct Scratch {
    std::vector<NearestList> nearest; // the result, a list for each query of the cell

    std::vector<float> coordinates; // of the cell's queries
    std::vector<float> norms;
    std::vector<float> rests;
    std::vector<float> center_distances; // of all cells from this one
    std::vector<float> query_distances;  // of all queries from the visited cell's centre
    std::vector<Size> visits;            // cells, nearest first
    std::vector<int> active;             // queries that a cell may concern
  };

  // Finds the `kept` nearest points of the queries of one cell. What it keeps depends on the query
  // and the points alone. False if the team's loop is to be abandoned.
  bool search(Size cell, Scratch& scratch, ThreadTeam& team, int worker) const;

  // Relative, of the distances found.
  double rounding() const { return rounding_; }

private:
  void prepare_queries(Size cell, Scratch& scratch) const;
  void order_visits(Size cell, Scratch& scratch) const;
  void find_active(Size cell, Size visited, Scratch& scratch) const;
  void visit_tiles(Size cell, Size visited, const int* active, int count, Scratch& scratch) const;
  float upper_float(double limit) const;

  const PointSet<Data>& points_;
  const CellPanels& panels_;
  const PointSet<Data>& queries_;
  const CellPanels& query_panels_;
  bool among_themselves_;
  Size kept_;
  const RealKernels<Data>& kernel_;
  double rounding_;
};

} // namespace acctsne
