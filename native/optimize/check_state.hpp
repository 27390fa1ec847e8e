// Whether an optimiser can go on from a state, which may come from a damaged file.
#pragma once

#include "acctsne/communicator.hpp"
#include "acctsne/require.hpp"
#include "optimize/loop.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace acctsne {

// No layout has a larger number in it, and the squares of these are within float.
inline constexpr double kLargestInState = 1e18;

// Refuses, on all processes alike, a state whose parts are not those of a layout of so many rows
// and dimensions; returns the order of all points.
template <typename Real>
std::vector<PointId> sound_order(const OptimizerState<Real>& state, Size rows, int dims,
                                 Communicator& processes) {
  const auto everywhere = [&](bool sound) { return sum(processes, sound ? 0 : 1) == 0; };
  const Rows own = rows_of(processes, rows);
  const std::size_t count = at(own.end - own.begin);
  const std::size_t numbers = count * at(dims);
  const bool none_kept = everywhere(state.kept.empty());
  require(everywhere(state.points.size() == numbers && state.updates.size() == numbers &&
                     state.gains.size() == numbers && state.order.size() == count &&
                     state.mean.size() == at(dims) && (none_kept || state.kept.size() == numbers)),
          "the state does not fit");
  const auto in_range = [](Real value) { return std::abs(value) <= Real(kLargestInState); };
  for (const auto* values :
       {&state.points, &state.updates, &state.gains, &state.mean, &state.kept}) {
    require(everywhere(std::ranges::all_of(*values, in_range)),
            "a number of the state is not finite or out of range");
  }
  std::vector<PointId> order(at(rows));
  std::ranges::copy(state.order, order.begin() + own.begin);
  gather_rows(processes, order.data(), rows, 1);
  std::vector<bool> seen(order.size(), false);
  for (const PointId row : order) {
    require(row >= 0 && row < rows && !seen[at(row)], "the state's order is not a permutation");
    seen[at(row)] = true;
  }
  require(everywhere(state.iterations >= 0 && state.relabelled_at >= -1),
          "the state's iterations are negative");
  require(everywhere(state.friction.friction >= Friction::kLeast &&
                     state.friction.friction <= Friction::kMost &&
                     std::isfinite(state.friction.work)),
          "the state's friction is out of range");
  return order;
}

} // namespace acctsne
