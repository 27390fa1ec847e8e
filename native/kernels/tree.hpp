// What the tree asks of the kernels: Morton codes, lists of what acts on a group of points, and the
// forces of such a list.
#pragma once

#include "acctsne/types.hpp"
#include "kernels/node.hpp"
#include "kernels/variants.hpp"

#include <tuple>

namespace acctsne {

// Most points of a group that walks the tree together: larger groups walk less often and interact
// with more (benchmarks/steps.py, docs/tuning.md).
inline constexpr int kGroupPoints = 64;

// Repulsion with the similarity q = (1 + d^2)^-exponent.
template <typename Real>
struct TreeForceKernels {
  // forces/repulsive_tree.cpp: adds what is listed, and the group's own points if asked for, to the
  // forces on the group's points; returns the sum of their z.
  template <int Dims>
  using PushGroup = double (*)(const TreeView<Real, Dims>& tree, PointGroup group,
                               const InteractionList<Dims>& list, bool with_group, Real exponent,
                               Real* force);
  std::tuple<PushGroup<1>, PushGroup<2>, PushGroup<3>> push_group;

  // forces/repulsive_tree.cpp: force of all points on a position, and its z.
  template <int Dims>
  using PushPosition = double (*)(const TreeView<Real, Dims>& tree, const Real* y,
                                  const Acceptance<Real>& accept, Real exponent, Real* force);
  std::tuple<PushPosition<1>, PushPosition<2>, PushPosition<3>> push_position;
};

template <typename Real>
struct TreeKernels {
  // tree/morton.cpp: cell numbers (y - lower) * scale, clamped to kMortonBits bits an axis,
  // interleaved.
  using MortonCodes = void (*)(const Real* points, Size count, const Real* lower, Real scale,
                               MortonCode* codes);
  MortonCodes morton_codes[kCompiledDims]; // by dimension less one

  // forces/repulsive_tree.cpp: lists what acts on a group, from the node `next` on, until the list
  // is full.
  template <int Dims>
  using ListSources = void (*)(const TreeView<Real, Dims>& tree, PointGroup group,
                               const Acceptance<Real>& accept, NodeId next,
                               InteractionList<Dims>& list);
  std::tuple<ListSources<1>, ListSources<2>, ListSources<3>> list_sources;

  TreeForceKernels<Real> first_power; // with exponent 1, whatever is given
  TreeForceKernels<Real> any_power;

  const TreeForceKernels<Real>& forces(double exponent) const {
    return exponent == 1 ? first_power : any_power;
  }
};

} // namespace acctsne
