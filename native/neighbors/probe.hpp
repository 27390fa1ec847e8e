// The first round of the approximate search: the nearest points within the cells that are likely to
// hold any, by their distances on the leading axes.
#pragma once

#include "neighbors/panels.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

namespace acctsne {

// The nearest places of one query so far. New ones are only collected; when their room is full, the
// farthest are dropped. Distance and place are one number, whose order is that of the distances.
class NearestPlaces {
public:
  void start(Size kept) {
    kept_ = at(kept);
    items_.clear();
    items_.reserve(2 * kept_);
    limit_ = std::numeric_limits<float>::infinity();
  }
  // What a point must be nearer than to enter.
  float limit() const { return limit_; }
  void add(float distance, Size place) {
    items_.push_back(std::uint64_t{std::bit_cast<std::uint32_t>(distance)} << 32 |
                     static_cast<std::uint64_t>(place));
    if (items_.size() == 2 * kept_) {
      drop_farthest();
    }
  }
  // Writes the kept ones, nearest first.
  void write(PointId* places) {
    if (items_.size() > kept_) {
      drop_farthest();
    }
    if (items_.size() < kept_) {
      throw std::domain_error("a coordinate is not finite");
    }
    std::sort(items_.begin(), items_.end());
    for (const std::uint64_t item : items_) {
      *places++ = static_cast<PointId>(item & 0xffffffffU);
    }
  }

private:
  void drop_farthest() {
    const auto last = items_.begin() + static_cast<std::ptrdiff_t>(kept_ - 1);
    std::nth_element(items_.begin(), last, items_.end());
    limit_ = std::bit_cast<float>(static_cast<std::uint32_t>(*last >> 32));
    items_.resize(kept_);
  }

  std::size_t kept_ = 0;
  std::vector<std::uint64_t> items_;
  float limit_ = 0;
};

class CellProbe {
public:
  // `residuals` says whether the points have something beyond the leading axes. A query considers
  // the `nearby` cells nearest to its own; `z_score` is in deviations, see probe.cpp.
  CellProbe(const Cells& cells, const CellPanels& panels, bool residuals, Size kept, Size nearby,
            double z_score, ThreadTeam& team);

  // What one worker needs.
  struct Scratch {
    std::vector<NearestPlaces> nearest;
    std::vector<float> coordinates;      // of the cell's queries
    std::vector<float> centre_distances; // of all cells from this one
    std::vector<float> means;            // of the squared distances from the visited cell's points
    std::vector<float> spreads;          // their variances
    std::vector<Size> visits;            // cells, nearest first
    std::vector<int> active;             // queries that a cell is likely to concern
    std::vector<float> tile;             // squared distances
  };

  // Writes the places of the `kept` nearest points of each point of the cell, nearest first.
  // False if the team's loop is to be abandoned.
  bool search(Size cell, PointId* places, Scratch& scratch, ThreadTeam& team, int worker) const;

private:
  void prepare(Size cell, Scratch& scratch) const;
  void order_visits(Size cell, Scratch& scratch) const;
  void find_active(Size cell, Size visited, Scratch& scratch) const;
  void visit_tiles(Size cell, Size visited, const int* active, int count, Scratch& scratch) const;
  void measure_cell(Size cell);

  const SearchKernels& kernels_;
  const Cells& cells_;
  const CellPanels& panels_;
  bool residuals_;
  Size kept_;
  Size nearby_;
  float squared_z_score_;
  std::vector<float> variances_;    // of each cell along each axis
  std::vector<float> no_residuals_; // zeros
};

} // namespace acctsne
