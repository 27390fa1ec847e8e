// When the lists of the exact search, whose distances are rounded, hold the answer.
//
// The answer of a query are the k points that are least by distance and number, and of these
// distances it depends on the query and the data alone how they were computed: in the precision of
// the data, unless results are wanted in a higher one, or squares are so small that they may have
// vanished, or nearly all points are asked for; then in double. So whoever searches, in whatever
// order, ends up with the same bits.
#pragma once

#include "neighbors/points.hpp"

#include <algorithm>
#include <vector>

namespace acctsne {

// Squared distances below this may have lost bits of their terms to underflow in float.
inline constexpr double kSmallestDistance = 0x1p-90;

// What rounding may have done to distances over so many features, relative.
inline double rounding_of_distances(Size features) {
  return (static_cast<double>(features) + 16) * 0x1p-23;
}

// Points to keep where distances of the k nearest may be computed again in double: some beyond k,
// so that rounding hardly ever leaves the answer unproven.
inline Size kept_for_proof(Size k) {
  return k + std::max<Size>(8, k / 8);
}

// Of a list, ascending, of which k are wanted.
struct ListEnds {
  double kth;
  double last;

  template <typename Distance>
  ListEnds(const std::vector<Candidate<Distance>>& list, Size k)
      : kth(static_cast<double>(list[at(k - 1)].distance)),
        last(static_cast<double>(list.back().distance)) {}

  bool may_have_vanished() const { return kth < kSmallestDistance; }

  // Whether the k points of the list that are nearest in double are so of all points.
  bool prove(double kth_in_double, double rounding) const {
    // Squares so small that float may have lost them say nothing, but coincident points coincide.
    return may_have_vanished() ? kth_in_double == 0 : kth_in_double * (1 + 2 * rounding) <= last;
  }
};

// Puts the k nearest first, in their order, and returns the distance of the k-th.
inline double sort_nearest(std::vector<Candidate<double>>& candidates, Size k) {
  std::partial_sort(candidates.begin(), candidates.begin() + k, candidates.end());
  return candidates[at(k - 1)].distance;
}

} // namespace acctsne
