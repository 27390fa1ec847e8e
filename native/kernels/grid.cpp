// The kernels of the repulsion on a grid, compiled once per instruction set.
#include "kernels/grid.hpp"

#include "kernels/level-inl.hpp"

namespace acctsne::ACCTSNE_LEVEL {

#include "kernels/transpose-inl.hpp"

#include "kernels/fft-inl.hpp"
#include "kernels/spline-inl.hpp"
#include "kernels/two_scale-inl.hpp"

template <typename Real>
constexpr GridKernels<Real> grid_kernels = {
    .lanes = Simd<Real>::kLanes,
    .fft_grid_to_spectrum = fft_grid_to_spectrum<Real>,
    .fft_convolve_slab = fft_convolve_slab<Real>,
    .fft_spectrum_to_grid = fft_spectrum_to_grid<Real>,
    .fft_even_lines = fft_even_lines<Real>,
    .coarsen_line = coarsen_line<Real>,
    .refine_line = refine_line<Real>,
    .add_lines = add_lines<Real>,
    .spread_points = {spread_points<Real, 1>, spread_points<Real, 2>},
    .gather_points = {gather_points<Real, 1>, gather_points<Real, 2>},
};
extern const Both<GridKernels> kGridKernels;
constinit const Both<GridKernels> kGridKernels = {grid_kernels<float>, grid_kernels<double>};

} // namespace acctsne::ACCTSNE_LEVEL
