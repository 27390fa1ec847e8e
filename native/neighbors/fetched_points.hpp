// Points that other processes own: each has its own rows of the data, and is sent the few others
// that it looks at.
#pragma once

#include "acctsne/communicator.hpp"
#include "neighbors/points.hpp"

#include <cstddef>
#include <vector>

namespace acctsne {

template <typename Data>
class FetchedPoints {
public:
  // `own` are the rows that this process owns, of so many.
  FetchedPoints(const PointSet<Data>& own, Size rows, Communicator& processes);

  // Asks for a point, unless it has been asked for; returns its slot. Slots count the points that
  // have been asked for.
  PointId ask(PointId id) {
    PointId& slot = slots_[at(id)];
    if (slot < 0) {
      slot = static_cast<PointId>(ids_.size());
      ids_.push_back(id);
    }
    return slot;
  }
  // Fetches all that have been asked for. Every process must call it.
  void fetch();
  // Forgets them.
  void clear();

  // By slot: the points' numbers, and what lay_out_coordinates writes.
  const PointId* ids() const { return ids_.data(); }
  const float* coordinates() const { return coordinates_.data(); }
  // The row of a point that is here, or read into the scratch memory.
  const Data* row(PointId id, std::vector<Data>& scratch) const {
    return points_.row(slots_[at(id)], scratch);
  }

private:
  const PointSet<Data>& own_;
  Size rows_;
  Communicator& processes_;
  std::vector<PointId> slots_; // of points by their numbers, -1 for those that were not asked for
  std::vector<PointId> ids_;
  std::vector<std::byte> data_; // rows as they are stored, by slot
  std::vector<float> coordinates_;
  PointSet<Data> points_; // of the slots; its projection is not there
};

} // namespace acctsne
