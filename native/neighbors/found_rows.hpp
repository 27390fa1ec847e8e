// Where a search writes what it finds. Every process searches for the points of its own cells, and
// what it finds goes home to the processes that own their rows.
#pragma once

#include "acctsne/communicator.hpp"
#include "neighbors/cells.hpp"
#include "neighbors/exact.hpp"

#include <stdexcept>
#include <tuple>
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

// Writes the k nearest of what was found for a query; there may be more.
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

// The same, to the row of the query in the arrays that are wanted.
template <typename Data, typename Distance>
void write_nearest(const NeighborsRequest<Data>& request, Size row,
                   const std::vector<Candidate<Distance>>& found) {
  const Size k = request.neighbors;
  std::visit(
      [&](auto* distances) {
        write_nearest(found, k, request.indices + row * k, distances + row * k);
      },
      request.squared_distances);
}

class FoundRows {
public:
  // Of the queries that the cells hold.
  template <typename Data>
  FoundRows(const NeighborsRequest<Data>& request, const Cells& cells)
      : neighbors_(request.neighbors), wanted_{request.indices, request.squared_distances},
        cells_(cells), processes_(*request.processes),
        own_cells_(cells_of(processes_.rank(), processes_.size(), cells.count())),
        held_(places_of(own_cells_, cells)) {}

  Rows cells() const { return own_cells_; }
  Rows places() const { return places_of(own_cells_, cells_); }

  // Makes room for what is found for the queries of some cells, which takes that of the last ones.
  void hold(Rows cells);

  // The neighbours of the query at a place that it has room for; there may be more than wanted.
  // Distance is float or double.
  template <typename Distance>
  void write(Size place, const std::vector<Candidate<Distance>>& found);

  // Takes what was found to the owners of the rows, in so many parts, lest all be on its way at
  // once. Every process must call it.
  void send_home(Size parts);

private:
  struct Arrays {
    PointId* indices;
    WantedDistances squared_distances;
  };

  bool alone() const { return processes_.size() == 1; }
  // Where the neighbours of the query at a place begin, in the arrays that are wanted of a process
  // alone, in those that are held of one of several.
  Size start(Size place) const {
    const Size row = alone() ? Size{cells_.row(place)} : place - held_.begin;
    return row * neighbors_;
  }
  template <typename Real>
  void send_home(Rows places, Real* wanted);

  Size neighbors_;
  Arrays wanted_;
  const Cells& cells_;
  Communicator& processes_;
  Rows own_cells_;
  Rows held_;                    // places
  std::vector<PointId> indices_; // of them, if there are several processes
  std::tuple<std::vector<float>, std::vector<double>> distances_; // likewise, as wanted
};

} // namespace acctsne
