// The kernels of the update, compiled once per instruction set.
#include "kernels/update.hpp"

#include "kernels/level-inl.hpp"

namespace acctsne::ACCTSNE_LEVEL {

#include "kernels/step_rule-inl.hpp"

#include "kernels/update-inl.hpp"

template <typename Real>
constexpr UpdateKernels<Real> update_kernels = {
    .update_points = {{update_points<Real, 1>, update_points<Real, 2>, update_points<Real, 3>},
                      update_points<Real, kAnyDims>},
};
extern const Both<UpdateKernels> kUpdateKernels;
constinit const Both<UpdateKernels> kUpdateKernels = {update_kernels<float>,
                                                      update_kernels<double>};

} // namespace acctsne::ACCTSNE_LEVEL
