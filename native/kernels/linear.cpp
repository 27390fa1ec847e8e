// The kernels of matrix products and decompositions, compiled once per instruction set.
#include "kernels/linear.hpp"

#include "kernels/level-inl.hpp"

namespace acctsne::ACCTSNE_LEVEL {

#include "kernels/transpose-inl.hpp"

#include "kernels/linear-inl.hpp"

template <typename Real>
constexpr LinearKernels<Real> linear_kernels = {
    .tile_rows = kProductRows,
    .tile_columns = kProductVectors * Simd<Real>::kLanes,
    .multiply_tile = multiply_tile<Real>,
    .pack_transposed = pack_transposed<Real>,
    .dot = dot<Real>,
    .add_multiple = add_multiple<Real>,
    .rotate = rotate<Real>,
    .largest_size = largest_size<Real>,
    .centre_in_float = centre_row<Real, float>,
    .centre = centre_row<Real, Real>,
};
extern const Both<LinearKernels> kLinearKernels;
constinit const Both<LinearKernels> kLinearKernels = {linear_kernels<float>,
                                                      linear_kernels<double>};

} // namespace acctsne::ACCTSNE_LEVEL
