// Step 4, summarisation: the centre of mass of every node and its second moments about it, bottom
// up.
//
// A node's children lie behind it, so one pass from the last node to the first meets children
// before parents. Subtrees run in parallel, as a rule each by the worker that built it
// (ThreadTeam::Share): doing both in one task took the same time. Then come the few hundred nodes
// above them. A part with mass m and moments Q at offset d from its parent's centre adds Q + m d
// d^T to the parent's moments.
#include "tree/tree.hpp"

#include <algorithm>

namespace acctsne {

template <typename Real, int Dims>
void Tree<Real, Dims>::summarize_node(NodeId id) {
  Node<Real, Dims>& node = nodes_[at(id)];
  // Calls visit(position, mass, moments) for the node's children, or for a leaf's points.
  const auto visit_parts = [&](auto&& visit) {
    if (node.leaf) {
      for (Size i = node.begin; i < node.end; ++i) {
        Real position[Dims];
        for (int axis = 0; axis < Dims; ++axis) {
          position[axis] = axes_[axis][at(i)];
        }
        visit(position, 1.0, nullptr);
      }
    } else {
      for (NodeId child = id + 1; child < node.skip; child = nodes_[at(child)].skip) {
        const Node<Real, Dims>& part = nodes_[at(child)];
        visit(part.centre, static_cast<double>(part.mass()), part.moments);
      }
    }
  };

  node.coincident = node.leaf && std::ranges::all_of(axes_, [&](const std::vector<Real>& axis) {
                      return std::equal(axis.begin() + node.begin, axis.begin() + node.end - 1,
                                        axis.begin() + node.begin + 1);
                    });

  double sums[Dims] = {};
  visit_parts([&](const Real* position, double mass, const Real*) {
    for (int axis = 0; axis < Dims; ++axis) {
      sums[axis] += mass * static_cast<double>(position[axis]);
    }
  });
  for (int axis = 0; axis < Dims; ++axis) {
    node.centre[axis] = static_cast<Real>(sums[axis] / static_cast<double>(node.mass()));
  }

  double moments[kMoments<Dims>] = {};
  visit_parts([&](const Real* position, double mass, const Real* inner) {
    double d[Dims];
    for (int axis = 0; axis < Dims; ++axis) {
      d[axis] = static_cast<double>(position[axis]) - static_cast<double>(node.centre[axis]);
    }
    int m = 0;
    for (int a = 0; a < Dims; ++a) {
      for (int b = a; b < Dims; ++b, ++m) {
        moments[m] += mass * d[a] * d[b] + (inner != nullptr ? static_cast<double>(inner[m]) : 0.0);
      }
    }
  });
  for (int m = 0; m < kMoments<Dims>; ++m) {
    node.moments[m] = static_cast<Real>(moments[m]);
  }
}

template <typename Real, int Dims>
void Tree<Real, Dims>::summarize(const Real* points, ThreadTeam& team) {
  parallel_for(team, static_cast<Size>(subtrees_.size()), 1, [&](Size s, Size) {
    const Subtree& subtree = subtrees_[at(s)];
    for (auto i = static_cast<std::size_t>(subtree.begin); i < at(subtree.end); ++i) {
      const Real* from = points + static_cast<Size>(order_[i]) * Dims;
      for (int axis = 0; axis < Dims; ++axis) {
        axes_[axis][i] = from[axis];
      }
    }
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
  template void Tree<Real, Dims>::summarize(const Real*, ThreadTeam&);                             \
  template void Tree<Real, Dims>::summarize_node(NodeId);
ACCTSNE_FOR_REALS_AND_DIMS(ACCTSNE_INSTANTIATE)
#undef ACCTSNE_INSTANTIATE

} // namespace acctsne
