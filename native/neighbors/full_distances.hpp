// Distances in full dimension between the queries of one cell and the points of one panel after the
// other, for those pairs that the filter could not tell apart.
#pragma once

#include "kernels/dispatch.hpp"
#include "neighbors/cells.hpp"

#include <cstdint>
#include <vector>

namespace acctsne {

// The rows of the queries lie close together, those of the points all over memory. So a point's is
// fetched once for all queries that ask for it.
template <typename Data>
class FullDistances {
public:
  // Makes room for queries; nothing has been asked yet.
  void start(const PointSet<Data>& points, Size queries);
  void set_query(Size query, const Data* row);

  // Notes that a query asks for those points of the panel that begins at `place` whose bits are
  // set.
  void ask(Size query, const Cells& cells, Size place, std::uint64_t bits);

  // Calls offer(query, p, squared distance) for what has been asked of the panel, p counting its
  // points.
  template <typename Offer>
  void answer(const Cells& cells, Size place, const Offer& offer);

private:
  // Numbers that a vector loads at once lie in one line.
  struct alignas(64) CacheLine {
    static constexpr Size kNumbers = 64 / sizeof(Data);
    Data numbers[kNumbers];
  };

  // The distances of the queries that ask for it from one point of the panel.
  void measure(PointId point, int p);
  void copy_row(const Data* from, CacheLine* to) const;

  const PointSet<Data>* points_ = nullptr;
  Size row_lines_ = 0;
  std::vector<CacheLine> queries_; // times the scale, as is the point
  std::vector<CacheLine> point_;
  std::vector<PointId> asking_[64]; // queries, for each point of the panel
  std::vector<Data> distances_;
};

template <typename Data>
template <typename Offer>
void FullDistances<Data>::answer(const Cells& cells, Size place, const Offer& offer) {
  for (int p = 0; p < kernels().panel_points; ++p) {
    if (!asking_[p].empty()) {
      measure(cells.row(place + p), p);
      for (std::size_t i = 0; i < asking_[p].size(); ++i) {
        offer(asking_[p][i], p, distances_[i]);
      }
      asking_[p].clear();
    }
  }
}

} // namespace acctsne
