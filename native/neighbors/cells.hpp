// Cells: the points in an order that keeps close ones together, cut into runs of equal length.
#pragma once

#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"

#include <vector>

namespace acctsne {

// Points of a cell; the last one may have fewer. A multiple of every panel width.
inline constexpr Size kCellPoints = 256;

// The order: position i holds row order[i]. `coordinates` is rows x dims, the leading columns those
// with the largest variance.
std::vector<PointId> cell_order(const float* coordinates, Size rows, Size dims, ThreadTeam& team);

} // namespace acctsne
