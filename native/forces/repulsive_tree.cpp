// Step 6, repulsive forces, Barnes-Hut: each point walks the tree depth first, skipping the
// subtrees that their cell stands for.
#include "forces/repulsive_tree.hpp"

namespace acctsne {
namespace {

// Points of one task: neighbours in Morton order take nearly the same way through the tree, so its
// nodes stay in cache.
constexpr Size kPointsPerChunk = 256;

template <typename Real, int Dims>
struct PointForce {
  Real y[Dims];
  Real force[Dims] = {};
  double z = 0;

  // `mass` points at `at`.
  void add(const Real* at, Real mass) {
    Real difference[Dims];
    Real one_plus_d2 = 1;
    for (int axis = 0; axis < Dims; ++axis) {
      difference[axis] = y[axis] - at[axis];
      one_plus_d2 += difference[axis] * difference[axis];
    }
    const Real w = Real(1) / one_plus_d2;
    z += static_cast<double>(mass * w);
    for (int axis = 0; axis < Dims; ++axis) {
      force[axis] += mass * w * w * difference[axis];
    }
  }
};

template <typename Real, int Dims>
PointForce<Real, Dims> walk(const Tree<Real, Dims>& tree, PointId self, Real theta2) {
  const auto nodes = tree.nodes();
  const Real* points = tree.points().data();
  PointForce<Real, Dims> sum;
  for (int axis = 0; axis < Dims; ++axis) {
    sum.y[axis] = points[static_cast<Size>(self) * Dims + axis];
  }
  NodeId id = 0;
  const auto count = static_cast<NodeId>(nodes.size());
  while (id < count) {
    const Node<Real, Dims>& node = nodes[static_cast<std::size_t>(id)];
    Real d2 = 0;
    for (int axis = 0; axis < Dims; ++axis) {
      const Real difference = sum.y[axis] - node.center[axis];
      d2 += difference * difference;
    }
    const bool inside = self >= node.begin && self < node.end;
    if (!inside && node.side * node.side < theta2 * d2) {
      sum.add(node.center, static_cast<Real>(node.mass()));
      id = node.skip;
    } else if (!node.leaf) {
      ++id;
    } else if (inside && node.level == kMortonBits<Dims>) {
      // Points in one smallest cell coincide for all that the coordinates can tell: each pair
      // counts 1 and pulls nowhere.
      sum.z += static_cast<double>(node.mass() - 1);
      id = node.skip;
    } else {
      for (PointId j = node.begin; j < node.end; ++j) {
        if (j != self) {
          sum.add(points + static_cast<Size>(j) * Dims, Real(1));
        }
      }
      id = node.skip;
    }
  }
  return sum;
}

} // namespace

template <typename Real, int Dims>
double tree_repulsion(const Tree<Real, Dims>& tree, double theta, Real* force,
                      std::vector<double>& partials, ThreadTeam& team) {
  const auto theta2 = static_cast<Real>(theta * theta);
  const auto order = tree.order();
  return parallel_sum(team, static_cast<Size>(order.size()), kPointsPerChunk, partials,
                      [&](Size begin, Size end) {
                        double z = 0;
                        for (Size i = begin; i < end; ++i) {
                          const auto sum = walk(tree, static_cast<PointId>(i), theta2);
                          const Size row = order[static_cast<std::size_t>(i)];
                          for (int axis = 0; axis < Dims; ++axis) {
                            force[row * Dims + axis] = sum.force[axis];
                          }
                          z += sum.z;
                        }
                        return z;
                      });
}

#define ACCTSNE_INSTANTIATE(Real, Dims)                                                            \
  template double tree_repulsion(const Tree<Real, Dims>&, double, Real*, std::vector<double>&,     \
                                 ThreadTeam&);
ACCTSNE_INSTANTIATE(float, 1)
ACCTSNE_INSTANTIATE(float, 2)
ACCTSNE_INSTANTIATE(float, 3)
ACCTSNE_INSTANTIATE(double, 1)
ACCTSNE_INSTANTIATE(double, 2)
ACCTSNE_INSTANTIATE(double, 3)

} // namespace acctsne
