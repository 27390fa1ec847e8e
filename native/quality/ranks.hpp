// How far off a point's neighbours elsewhere are in its own order of nearness: what trustworthiness
// and continuity are made of.
#pragma once

#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "neighbors/points.hpp"

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

namespace acctsne {

// Points, and for each the others in some other space that are asked for.
template <typename Data>
struct RankRequest {
  PointSet<Data> points;  // without a projection
  const PointId* nearest; // rows x known: the nearest points, nearest first, ties by index
  Size known;
  const PointId* asked; // rows x asked_each: distinct, none of them the point itself
  Size asked_each;
  std::span<const Size> sizes;         // of neighbourhoods, at most `known` and `asked_each`
  std::span<const PointId> references; // distinct; all rows, or more than known + 1
  std::atomic<Size>* done = nullptr;   // counts finished points, for a progress bar
};

// All are rows x sizes but the last.
struct Ranks {
  std::vector<std::int32_t> kept;         // of the first k asked, how many are among the nearest k
  std::vector<double> penalties;          // sum of max(0, rank - k) over the first k asked
  std::vector<double> variances;          // of the penalties, by the choice of references
  std::vector<std::int64_t> by_reference; // references x sizes, see below
};

// The rank of j is 1 plus the number of points nearer than j, or as near and of a lower index. It
// is known exactly within the nearest `known`. Beyond, the points in between are counted among the
// references, and their number among all rows is estimated from that: without bias, and exactly if
// all rows are references. A reference counts once for each asked point of the first k that it is
// nearer than; `by_reference` sums that over all rows, from which the error of a mean can be told,
// as all rows share their references.
template <typename Data>
Ranks rank_penalties(const RankRequest<Data>& request, ThreadTeam& team);

} // namespace acctsne
