// The kernels of the exact repulsion, compiled once per instruction set.
#include "kernels/all_pairs.hpp"

#include "kernels/level-inl.hpp"

namespace acctsne::ACCTSNE_LEVEL {

#include "kernels/falloff-inl.hpp"

#include "kernels/repulsive_exact-inl.hpp"

template <typename Real, template <typename> typename Falloff>
constexpr ByDims<typename AllPairsKernels<Real>::Range> ranges = {
    {repulsive_range<Real, 1, Falloff>, repulsive_range<Real, 2, Falloff>,
     repulsive_range<Real, 3, Falloff>},
    any_repulsive_range<Real, Falloff>};

template <typename Real>
constexpr AllPairsKernels<Real> all_pairs_kernels = {
    .lanes = Simd<Real>::kLanes,
    .first_power = ranges<Real, FirstPower>,
    .any_power = ranges<Real, AnyPower>,
};
extern const Both<AllPairsKernels> kAllPairsKernels;
constinit const Both<AllPairsKernels> kAllPairsKernels = {all_pairs_kernels<float>,
                                                          all_pairs_kernels<double>};

} // namespace acctsne::ACCTSNE_LEVEL
