// Distances in full dimension between the queries of one cell and the points of one panel after the
// other, for those pairs that the filter could not tell apart.
#pragma once

#include "kernels/dispatch.hpp"
#include "neighbors/byte_rows.hpp"

#include <cstdint>
#include <vector>

namespace acctsne {

// Numbers that a vector loads at once lie in one line.
struct alignas(64) CacheLine {
  std::byte bytes[64];
};

// Points in full dimension.
template <typename Data>
struct FullRows {
  FullRows(const PointSet<Data>& points_, const Cells& cells_, bool as_bytes, ThreadTeam& team);

  // Writes a row as numbers to compute with, times the scale, filled with zeros.
  void fill(Size place, CacheLine* to) const;

  const PointSet<Data>& points;
  const Cells& cells;
  Size lines;                    // of a row that zeros fill
  std::optional<ByteRows> bytes; // if they may be compared as such, and all numbers are
  LargeArray<CacheLine> filled;  // all rows, in the order of places, if they are narrow
};

// The rows of the queries lie close together, those of the points all over memory unless they are
// narrow. So a point's is fetched once for all queries that ask for it.
template <typename Data>
class FullDistances {
public:
  // Copies the rows of queries, from this place on. Nothing has been asked yet.
  void start(const FullRows<Data>& points, const FullRows<Data>& queries, Size first, Size count);

  // Notes that a query asks for those points of the panel that begins at `place` whose bits are
  // set.
  void ask(Size query, Size place, std::uint64_t bits);

  // Calls offer(query, p, squared distance) for what has been asked of the panel, p counting its
  // points.
  template <typename Offer>
  void answer(Size place, const Offer& offer);

private:
  // The distances of the queries that ask for it from point p of the panel.
  void measure(Size place, int p);
  void copy_row(const FullRows<Data>& from, Size place, CacheLine* to) const;
  void prefetch(Size place) const;

  const SearchKernels& search_kernels_ = kernels().search;
  const DistanceKernels<Data>& distance_kernels_ = kernels().distances.template of<Data>();
  const FullRows<Data>* points_ = nullptr;
  bool as_bytes_ = false; // of points and queries; then copies are of RowInteger
  Size row_lines_ = 0;
  const CacheLine* queries_ = nullptr; // rows, one after the other
  std::vector<CacheLine> copies_;      // of them, unless they are filled
  std::vector<CacheLine> point_;       // a copy of the point's row, likewise
  std::vector<PointId> asking_[64];    // queries, for each point of the panel
  std::vector<Data> distances_;
};

template <typename Data>
template <typename Offer>
void FullDistances<Data>::answer(Size place, const Offer& offer) {
  for (int p = 0; p < search_kernels_.panel_points; ++p) {
    if (!asking_[p].empty()) {
      measure(place, p);
      for (std::size_t i = 0; i < asking_[p].size(); ++i) {
        offer(asking_[p][i], p, distances_[i]);
      }
      asking_[p].clear();
    }
  }
}

} // namespace acctsne
