// The kernels of the neighbour search, compiled once per instruction set.
#include "kernels/search.hpp"

#include "kernels/level-inl.hpp"

namespace acctsne::ACCTSNE_LEVEL {

#include "kernels/distance-inl.hpp"
#include "kernels/integer_distance-inl.hpp"
#include "kernels/probe-inl.hpp"

extern const SearchKernels kSearchKernels;
constinit const SearchKernels kSearchKernels = {
    .panel_points = kPanelVectors * Simd<float>::kLanes,
    .filter_tile = filter_tile,
    .estimate_tile = estimate_tile,
    .count_below = count_below,
    .bits_below = bits_below,
    .bytes_to_integers = bytes_to_integers,
    .distances_to_rows = distances_to_rows,
    .probe_tile = probe_tile,
    .spread_of_distances = spread_of_distances,
};

template <typename Real>
constexpr DistanceKernels<Real> distance_kernels = {
    .near_distance = near_distance<Real>,
    .squared_distance = squared_distance<Real>,
    .squared_distances_to = squared_distances_to<Real>,
    .squared_distances_of_integers = squared_distances_of_integers<Real>,
    .squared_distances_of_all = squared_distances_of_all<Real>,
    .to_bytes = to_bytes<Real>,
};
extern const Both<DistanceKernels> kDistanceKernels;
constinit const Both<DistanceKernels> kDistanceKernels = {distance_kernels<float>,
                                                          distance_kernels<double>};

} // namespace acctsne::ACCTSNE_LEVEL
