// Fills the kernel table of one instruction set. A unit defines ACCTSNE_LEVEL (its namespace and
// name) and ACCTSNE_VECTOR_BYTES, then includes this file.
#include "kernels/kernels.hpp"

#include <cstdint>
#include <type_traits>
#include <utility>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define ACCTSNE_TEXT_(x) #x
#define ACCTSNE_TEXT(x) ACCTSNE_TEXT_(x)

namespace acctsne::ACCTSNE_LEVEL {

inline constexpr int kVectorBytes = ACCTSNE_VECTOR_BYTES;

#include "kernels/simd-inl.hpp"

#include "kernels/falloff-inl.hpp"
#include "kernels/transpose-inl.hpp"

#include "kernels/attractive-inl.hpp"
#include "kernels/distance-inl.hpp"
#include "kernels/entropy-inl.hpp"
#include "kernels/fft-inl.hpp"
#include "kernels/gaussian-inl.hpp"
#include "kernels/integer_distance-inl.hpp"
#include "kernels/morton-inl.hpp"
#include "kernels/probe-inl.hpp"
#include "kernels/repulsive_exact-inl.hpp"
#include "kernels/repulsive_tree-inl.hpp"
#include "kernels/spline-inl.hpp"
#include "kernels/step_rule-inl.hpp"
#include "kernels/two_scale-inl.hpp"
#include "kernels/update-inl.hpp"

template <typename Real, template <typename> typename Falloff>
constexpr RepulsiveKernels<Real> repulsive_kernels() {
  return {
      .range = {{repulsive_range<Real, 1, Falloff>, repulsive_range<Real, 2, Falloff>,
                 repulsive_range<Real, 3, Falloff>},
                any_repulsive_range<Real, Falloff>},
      .push_group = {push_group<Real, 1, Falloff>, push_group<Real, 2, Falloff>,
                     push_group<Real, 3, Falloff>},
      .push_position = {push_position<Real, 1, Falloff>, push_position<Real, 2, Falloff>,
                        push_position<Real, 3, Falloff>},
  };
}

template <typename Real>
constexpr RealKernels<Real> real_kernels() {
  return {
      .morton_codes = {morton_codes<Real, 1>, morton_codes<Real, 2>, morton_codes<Real, 3>},
      .list_sources = {list_sources<Real, 1>, list_sources<Real, 2>, list_sources<Real, 3>},
      .attractive_rows = {{attractive_rows<Real, 1>, attractive_rows<Real, 2>,
                           attractive_rows<Real, 3>},
                          attractive_rows<Real, kAnyDims>},
      .cross_entropy_rows = {{cross_entropy_rows<Real, 1>, cross_entropy_rows<Real, 2>,
                              cross_entropy_rows<Real, 3>},
                             cross_entropy_rows<Real, kAnyDims>},
      .to_half = half_converter<Real>(),
      .edge_lanes = EdgeSimd<Real>::kLanes,
      .first_power = repulsive_kernels<Real, FirstPower>(),
      .any_power = repulsive_kernels<Real, AnyPower>(),
      .update_points = {{update_points<Real, 1>, update_points<Real, 2>, update_points<Real, 3>},
                        update_points<Real, kAnyDims>},
      .fft_grid_to_spectrum = fft_grid_to_spectrum<Real>,
      .fft_convolve_slab = fft_convolve_slab<Real>,
      .fft_spectrum_to_grid = fft_spectrum_to_grid<Real>,
      .fft_even_lines = fft_even_lines<Real>,
      .coarsen_line = coarsen_line<Real>,
      .refine_line = refine_line<Real>,
      .add_lines = add_lines<Real>,
      .spread_points = {spread_points<Real, 1>, spread_points<Real, 2>},
      .gather_points = {gather_points<Real, 1>, gather_points<Real, 2>},
      .lanes = Simd<Real>::kLanes,
      .near_distance = near_distance<Real>,
      .squared_distance = squared_distance<Real>,
      .squared_distances_to = squared_distances_to<Real>,
      .squared_distances_of_integers = squared_distances_of_integers<Real>,
      .to_bytes = to_bytes<Real>,
      .negative_entropy = negative_entropy<Real>,
  };
}

extern const KernelTable kTable;
const KernelTable kTable = {
    .level = ACCTSNE_TEXT(ACCTSNE_LEVEL),
    .panel_points = kPanelVectors * Simd<float>::kLanes,
    .f32 = real_kernels<float>(),
    .f64 = real_kernels<double>(),
    .filter_tile = filter_tile,
    .estimate_tile = estimate_tile,
    .count_below = count_below,
    .bits_below = bits_below,
    .widen_bytes = widen_bytes,
    .distances_to_rows = distances_to_rows,
    .probe_tile = probe_tile,
    .spread_of_distances = spread_of_distances,
    .gaussian_row = gaussian_row,
};

} // namespace acctsne::ACCTSNE_LEVEL
