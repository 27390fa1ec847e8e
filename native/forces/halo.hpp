// The points of other processes that a process's own edges lead to: all that the attraction has to
// know beyond own points.
#pragma once

#include "acctsne/communicator.hpp"
#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "kernels/attractive.hpp"

#include <vector>

namespace acctsne {

template <typename Real>
class Halo {
public:
  // Finds the points, and tells the processes that own them.
  void build(const EdgeView<Real>& edges, Communicator& processes, ThreadTeam& team);

  // Fills in their positions, in an array of all points of which each process has its own.
  void fill(Real* points, int dims, Communicator& processes, ThreadTeam& team);

private:
  std::vector<PointId> foreign_;   // by ascending number, and so by owner
  std::vector<Size> foreign_ends_; // of each owner
  std::vector<PointId> lent_;      // own points that others need, by the process that needs them
  std::vector<Size> lent_ends_;    // of each process
  std::vector<Real> out_;
  std::vector<Real> in_;
};

} // namespace acctsne
