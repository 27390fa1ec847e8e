// The conditional probabilities C: each point's own distribution over its neighbours.
#pragma once

#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"

namespace acctsne {

template <typename Real>
struct Conditional {
  const PointId* indices; // rows x neighbors, ascending within each row
  const Real* values;     // rows x neighbors
  Size rows;
  Size neighbors;
  bool equal = false; // all entries of P are to be equal, whatever the values

  const PointId* columns_of(Size row) const { return indices + row * neighbors; }
  const Real* values_of(Size row) const { return values + row * neighbors; }
};

// Sorts each row by column, of which there are so many. No row may name a neighbour twice.
template <typename Real>
void sort_by_column(PointId* indices, Real* values, Size rows, Size neighbors, Size points,
                    ThreadTeam& team);

// Whether all columns are those of so many points, and ascend within each row.
template <typename Real>
bool is_sorted_by_column(const Conditional<Real>& conditional, Size points, ThreadTeam& team);

} // namespace acctsne
