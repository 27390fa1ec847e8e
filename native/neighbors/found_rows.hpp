// Where a search writes what it finds. Every process searches for the points of its own cells, and
// what it finds goes home to the processes that own their rows.
#pragma once

#include "acctsne/communicator.hpp"
#include "neighbors/cells.hpp"
#include "neighbors/exact.hpp"

#include <stdexcept>
#include <utility>
#include <vector>

namespace acctsne {

// The cells that a process searches for.
inline Rows cells_of(int rank, int processes, Size cells) {
  return {cells * rank / processes, cells * (rank + 1) / processes};
}

// And the places of their points.
inline Rows places_of(Rows cells, const Cells& all) {
  return {std::min(all.begin(cells.begin), all.rows()), std::min(all.begin(cells.end), all.rows())};
}

// The k nearest of what was found for a query; there may be more.
template <typename Distance, typename Real>
void write_nearest(const std::vector<Candidate<Distance>>& found, Size k, PointId* indices,
                   Real* distances) {
  // Infinite distances, and those that are no numbers, enter no list.
  if (static_cast<Size>(found.size()) < k) {
    throw std::domain_error("a distance is not finite");
  }
  for (Size j = 0; j < k; ++j) {
    indices[j] = found[at(j)].id;
    distances[j] = static_cast<Real>(found[at(j)].distance);
  }
}

template <typename Data, typename Real>
class FoundRows {
public:
  // Of the queries that the cells hold.
  FoundRows(const NeighborsRequest<Data, Real>& request, const Cells& cells)
      : request_(request), cells_(cells), processes_(*request.processes),
        own_cells_(cells_of(processes_.rank(), processes_.size(), cells.count())),
        held_(places_of(own_cells_, cells)) {}

  Rows cells() const { return own_cells_; }
  Rows places() const { return places_of(own_cells_, cells_); }

  // Makes room for what is found for the queries of some cells, which takes that of the last ones.
  void hold(Rows cells) {
    held_ = places_of(cells, cells_);
    if (!alone()) {
      const std::size_t stored = at((held_.end - held_.begin) * request_.neighbors);
      indices_.resize(stored);
      distances_.resize(stored);
    }
  }

  // The neighbours of the query at a place that it has room for; there may be more than wanted.
  template <typename Distance>
  void write(Size place, const std::vector<Candidate<Distance>>& found) {
    write_nearest(found, request_.neighbors, indices(place), squared_distances(place));
  }

  // Takes what was found to the owners of the rows, in so many parts, lest all be on its way at
  // once. Every process must call it.
  void send_home(Size parts) {
    if (alone()) {
      return;
    }
    const Size count = held_.end - held_.begin;
    for (Size part = 0; part < parts; ++part) {
      send_home({held_.begin + count * part / parts, held_.begin + count * (part + 1) / parts});
    }
  }

private:
  bool alone() const { return processes_.size() == 1; }

  Size start(Size place) const {
    const Size row = alone() ? Size{cells_.row(place)} : place - held_.begin;
    return row * request_.neighbors;
  }
  PointId* indices(Size place) {
    return (alone() ? request_.indices : indices_.data()) + start(place);
  }
  Real* squared_distances(Size place) {
    return (alone() ? request_.squared_distances : distances_.data()) + start(place);
  }

  void send_home(Rows places) {
    const Size k = request_.neighbors;
    const Owners owners(processes_.size(), cells_.rows());
    std::vector<std::vector<Size>> to(at(processes_.size()));
    for (Size place = places.begin; place < places.end; ++place) {
      to[owners.of(cells_.row(place))].push_back(place);
    }
    std::vector<PointId> rows;
    std::vector<PointId> indices;
    std::vector<Real> distances;
    std::vector<Size> row_ends;
    std::vector<Size> entry_ends;
    for (const std::vector<Size>& theirs : to) {
      for (const Size place : theirs) {
        rows.push_back(cells_.row(place));
        indices.insert(indices.end(), this->indices(place), this->indices(place) + k);
        distances.insert(distances.end(), squared_distances(place), squared_distances(place) + k);
      }
      row_ends.push_back(static_cast<Size>(rows.size()));
      entry_ends.push_back(static_cast<Size>(indices.size()));
    }
    rows = deliver(processes_, rows, row_ends);
    indices = deliver(processes_, indices, entry_ends);
    distances = deliver(processes_, distances, entry_ends);
    const Rows own = rows_of(processes_.rank(), processes_.size(), cells_.rows());
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const Size from = static_cast<Size>(r) * k;
      const Size row = (rows[r] - own.begin) * k;
      std::copy_n(indices.begin() + from, k, request_.indices + row);
      std::copy_n(distances.begin() + from, k, request_.squared_distances + row);
    }
  }

  const NeighborsRequest<Data, Real>& request_;
  const Cells& cells_;
  Communicator& processes_;
  Rows own_cells_;
  Rows held_;                    // places
  std::vector<PointId> indices_; // of them, if there are several processes
  std::vector<Real> distances_;
};

} // namespace acctsne
