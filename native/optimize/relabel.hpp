// Numbering the points of a layout anew by several processes.
#pragma once

#include "acctsne/communicator.hpp"
#include "acctsne/parallel.hpp"
#include "optimize/update.hpp"

namespace acctsne {

// Numbers the points in Morton order, and brings each to the process that owns its new number. Of
// the layout, only own points are read, and own ones and the order of all are right afterwards.
template <typename Real>
void relabel_together(Layout<Real>& layout, Communicator& processes, ThreadTeam& team);

} // namespace acctsne
