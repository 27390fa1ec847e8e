// The kernels of the tree, compiled once per instruction set.
#include "kernels/tree.hpp"

#include "kernels/level-inl.hpp"

namespace acctsne::ACCTSNE_LEVEL {

#include "kernels/falloff-inl.hpp"

#include "kernels/morton-inl.hpp"
#include "kernels/repulsive_tree-inl.hpp"

template <typename Real, template <typename> typename Falloff>
constexpr TreeForceKernels<Real> tree_force_kernels = {
    .push_group = {push_group<Real, 1, Falloff>, push_group<Real, 2, Falloff>,
                   push_group<Real, 3, Falloff>},
    .push_position = {push_position<Real, 1, Falloff>, push_position<Real, 2, Falloff>,
                      push_position<Real, 3, Falloff>},
};

template <typename Real>
constexpr TreeKernels<Real> tree_kernels = {
    .morton_codes = {morton_codes<Real, 1>, morton_codes<Real, 2>, morton_codes<Real, 3>},
    .list_sources = {list_sources<Real, 1>, list_sources<Real, 2>, list_sources<Real, 3>},
    .first_power = tree_force_kernels<Real, FirstPower>,
    .any_power = tree_force_kernels<Real, AnyPower>,
};
extern const Both<TreeKernels> kTreeKernels;
constinit const Both<TreeKernels> kTreeKernels = {tree_kernels<float>, tree_kernels<double>};

} // namespace acctsne::ACCTSNE_LEVEL
