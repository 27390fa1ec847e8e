// The conditional probabilities as Python hands them over.
#pragma once

#include "affinities/conditional.hpp"
#include "bind/native_call.hpp"

namespace acctsne {

template <typename Real>
Conditional<Real> conditional_of(const Input2<PointId>& indices, const Input2<Real>& conditional,
                                 bool equal) {
  require(conditional.shape(0) == indices.shape(0) && conditional.shape(1) == indices.shape(1),
          "indices and conditional differ in shape");
  return {indices.data(), conditional.data(), static_cast<Size>(indices.shape(0)),
          static_cast<Size>(indices.shape(1)), equal};
}

// The columns are those of so many points.
template <typename Real>
void require_sorted(const Conditional<Real>& conditional, Size points, ThreadTeam& team) {
  require(is_sorted_by_column(conditional, points, team),
          "a neighbour's index is out of range, or a row is not sorted by column");
}

} // namespace acctsne
