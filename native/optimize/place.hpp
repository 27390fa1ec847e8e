// New points into a map that stays as it is.
#pragma once

#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "forces/repulsive.hpp"
#include "optimize/phase.hpp"

#include <atomic>

namespace acctsne {

template <typename Real>
struct PlacementRequest {
  const Real* map; // map_points x dims
  Size map_points;
  int dims;
  const PointId* neighbors; // count x k: points of the map that each new point is drawn to
  const Real* weights;      // count x k, each row sums to 1
  Size count;
  Size k;
  Real* positions; // in and out: count x dims
  RepulsionOptions options;
  // With a momentum. Its rule, its reports and where its ramps end play no part.
  Phase phase;
  std::atomic<Size>* done = nullptr; // counts finished points, for a progress bar
};

// Moves each new point down the gradient of its own KL divergence from the map,
// sum_j p_j log(p_j / q_j) with q_j normalised over the map's points. New points do not see each
// other, so that each goes where it would go alone.
template <typename Real>
void place_points(const PlacementRequest<Real>& request, ThreadTeam& team);

} // namespace acctsne
