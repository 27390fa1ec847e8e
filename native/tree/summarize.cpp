// Step 4, summarisation: the centre of mass of every node, bottom up.
//
// A node's children lie behind it, so one pass from the last node to the first meets children
// before parents. Subtrees run in parallel, then the few hundred nodes above them.
#include "tree/tree.hpp"

namespace acctsne {

template <typename Real, int Dims>
void Tree<Real, Dims>::summarize_node(NodeId id) {
  Node<Real, Dims>& node = nodes_[static_cast<std::size_t>(id)];
  double sums[Dims] = {};
  if (node.leaf) {
    for (PointId i = node.begin; i < node.end; ++i) {
      for (int axis = 0; axis < Dims; ++axis) {
        sums[axis] += static_cast<double>(
            sorted_points_[static_cast<std::size_t>(i) * Dims + static_cast<std::size_t>(axis)]);
      }
    }
  } else {
    for (NodeId child = id + 1; child < node.skip;
         child = nodes_[static_cast<std::size_t>(child)].skip) {
      const Node<Real, Dims>& part = nodes_[static_cast<std::size_t>(child)];
      for (int axis = 0; axis < Dims; ++axis) {
        sums[axis] += static_cast<double>(part.mass()) * static_cast<double>(part.center[axis]);
      }
    }
  }
  for (int axis = 0; axis < Dims; ++axis) {
    node.center[axis] = static_cast<Real>(sums[axis] / static_cast<double>(node.mass()));
  }
}

template <typename Real, int Dims>
void Tree<Real, Dims>::summarize(ThreadTeam& team) {
  parallel_for(team, static_cast<Size>(subtrees_.size()), 1, [&](Size s, Size) {
    const Subtree& subtree = subtrees_[static_cast<std::size_t>(s)];
    for (NodeId id = subtree.first + subtree.count; id-- > subtree.first;) {
      summarize_node(id);
    }
  });
  for (auto entry = top_.rbegin(); entry != top_.rend(); ++entry) {
    if (entry->subtree < 0) {
      summarize_node(entry->place);
    }
  }
}

#define ACCTSNE_INSTANTIATE(Real, Dims)                                                            \
  template void Tree<Real, Dims>::summarize(ThreadTeam&);                                          \
  template void Tree<Real, Dims>::summarize_node(NodeId);
ACCTSNE_INSTANTIATE(float, 1)
ACCTSNE_INSTANTIATE(float, 2)
ACCTSNE_INSTANTIATE(float, 3)
ACCTSNE_INSTANTIATE(double, 1)
ACCTSNE_INSTANTIATE(double, 2)
ACCTSNE_INSTANTIATE(double, 3)

} // namespace acctsne
