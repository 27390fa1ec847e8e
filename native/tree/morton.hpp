// Step 3, first half: Morton codes and their order.
#pragma once

#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "tree/tree.hpp"

#include <vector>

namespace acctsne {

// The cube that the tree divides: the smallest one over [lower, upper], made a little larger so
// that no point lies on its upper faces, and never empty.
template <typename Real, int Dims>
Box<Real, Dims> root_box(const Real* lower, const Real* upper);

// codes[i] = the Morton code of point i in the box.
template <typename Real, int Dims>
void compute_morton_codes(const Real* points, Size count, const Box<Real, Dims>& box,
                          MortonCode* codes, ThreadTeam& team);

// Sorts codes ascending and gives in `order` the index that each came from; equal codes keep the
// order of their indices. The scratch vectors hold as many elements; `code_bits` is how many low
// bits of a code may be set.
void sort_codes(std::vector<MortonCode>& codes, std::vector<PointId>& order,
                std::vector<MortonCode>& codes_scratch, std::vector<PointId>& order_scratch,
                std::vector<std::uint32_t>& histograms, int code_bits, ThreadTeam& team);

// The points' Morton order, as sort_codes() gives it.
template <typename Real, int Dims>
std::vector<PointId> morton_order(const Real* points, Size count, const Real* lower,
                                  const Real* upper, ThreadTeam& team);

} // namespace acctsne
