// Whether an optimiser can go on from a state, which may come from a damaged file.
#pragma once

#include "acctsne/require.hpp"
#include "optimize/loop.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace acctsne {

// No layout has a larger number in it, and the squares of these are within float.
inline constexpr double kLargestInState = 1e18;

// Refuses a state that is not one of a layout of so many rows and dimensions.
template <typename Real>
void require_sound(const OptimizerState<Real>& state, Size rows, int dims) {
  const auto count = static_cast<std::size_t>(rows);
  const auto numbers = count * static_cast<std::size_t>(dims);
  require(state.points.size() == numbers && state.updates.size() == numbers &&
              state.gains.size() == numbers && state.order.size() == count &&
              state.mean.size() == static_cast<std::size_t>(dims) &&
              (state.kept.empty() || state.kept.size() == numbers),
          "the state does not fit");
  for (const auto* values :
       {&state.points, &state.updates, &state.gains, &state.mean, &state.kept}) {
    require(std::ranges::all_of(
                *values, [](Real value) { return std::abs(value) <= Real(kLargestInState); }),
            "a number of the state is not finite or out of range");
  }
  std::vector<bool> seen(count, false);
  for (const PointId row : state.order) {
    require(row >= 0 && row < rows && !seen[static_cast<std::size_t>(row)],
            "the state's order is not a permutation");
    seen[static_cast<std::size_t>(row)] = true;
  }
  require(state.iterations >= 0 && state.relabelled_at >= -1,
          "the state's iterations are negative");
  require(state.friction.friction >= Friction::kLeast &&
              state.friction.friction <= Friction::kMost && std::isfinite(state.friction.work),
          "the state's friction is out of range");
}

} // namespace acctsne
