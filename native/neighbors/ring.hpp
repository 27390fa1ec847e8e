// Step 1, KNN: the exact search by several processes.
#pragma once

#include "neighbors/exact.hpp"

namespace acctsne {

// Finds the neighbours of own points among those of all processes, with the bits that one process
// finds. Each holds its own points and those of one other at a time.
template <typename Data>
void ring_neighbors(const NeighborsRequest<Data>& request, ThreadTeam& team);

} // namespace acctsne
