// The kernels of the attraction, compiled once per instruction set.
#include "kernels/attractive.hpp"

#include "kernels/level-inl.hpp"

namespace acctsne::ACCTSNE_LEVEL {

#include "kernels/attractive-inl.hpp"
#include "kernels/entropy-inl.hpp"

template <typename Real>
constexpr AttractiveKernels<Real> attractive_kernels = {
    .attractive_rows = {{attractive_rows<Real, 1>, attractive_rows<Real, 2>,
                         attractive_rows<Real, 3>},
                        attractive_rows<Real, kAnyDims>},
    .cross_entropy_rows = {{cross_entropy_rows<Real, 1>, cross_entropy_rows<Real, 2>,
                            cross_entropy_rows<Real, 3>},
                           cross_entropy_rows<Real, kAnyDims>},
    .to_half = half_converter<Real>(),
    .edge_lanes = EdgeSimd<Real>::kLanes,
    .negative_entropy = negative_entropy<Real>,
};
extern const Both<AttractiveKernels> kAttractiveKernels;
constinit const Both<AttractiveKernels> kAttractiveKernels = {attractive_kernels<float>,
                                                              attractive_kernels<double>};

} // namespace acctsne::ACCTSNE_LEVEL
