// The tree over any points, built anew and over again, and the forces that it leads to.
//
// Promised by Python: coordinates are finite, and within 1e12 where forces are asked for; the
// bounds are the points'.
#include "forces/repulsive.hpp"
#include "fuzz/input.hpp"
#include "tree/tree.hpp"

#include <limits>

using namespace acctsne;
using namespace acctsne::fuzz;

namespace {

template <typename Real, int Dims>
void check_tree(const Tree<Real, Dims>& tree, Size count) {
  const auto nodes = tree.nodes();
  EXPECT(!nodes.empty() && nodes.size() < 2 * at(count));
  EXPECT(nodes[0].begin == 0 && nodes[0].end == count && nodes[0].skip == Size(nodes.size()));
  std::vector<bool> seen(at(count), false);
  for (const PointId row : tree.order()) {
    EXPECT(row >= 0 && row < count && !seen[at(row)]);
    seen[at(row)] = true;
  }
  EXPECT(std::ranges::is_sorted(tree.codes()));
  for (std::size_t id = 0; id < nodes.size(); ++id) {
    const auto& node = nodes[id];
    EXPECT(node.skip > Size(id) && at(node.skip) <= nodes.size());
    EXPECT(node.weight == static_cast<Real>(node.mass()));
    if (node.leaf) {
      EXPECT(at(node.skip) == id + 1);
      continue;
    }
    // Children share the points among them, in order.
    PointId next = node.begin;
    for (auto child = static_cast<NodeId>(id + 1); child < node.skip;
         child = nodes[at(child)].skip) {
      EXPECT(nodes[at(child)].begin == next && nodes[at(child)].end > next);
      EXPECT(nodes[at(child)].level > node.level);
      next = nodes[at(child)].end;
    }
    EXPECT(next == node.end);
  }
}

template <typename Real, int Dims>
void build_trees(Input& input, ThreadTeam& team) {
  const Size count = input.ConsumeIntegralInRange<Size>(1, 300);
  Tree<Real, Dims> tree;
  for (int builds = input.ConsumeIntegralInRange<int>(1, 3); builds > 0; --builds) {
    const std::vector<Real> points =
        numbers<Real>(input, count * Dims, std::numeric_limits<Real>::max());
    const Bounds<Real> bounds(points.data(), count, Dims);
    const MapView<Real> map = bounds.map();
    tree.build(map.points, map.count, map.lower, map.upper, team);
    tree.summarize(points.data(), team);
    check_tree(tree, count);
  }
}

template <typename Real, int Dims>
void push_points(Input& input, ThreadTeam& team) {
  const Size count = input.ConsumeIntegralInRange<Size>(2, 200);
  RepulsionOptions options;
  options.method = input.PickValueInArray({Method::automatic, Method::barnes_hut, Method::exact});
  if (Dims <= 2 && input.ConsumeBool()) {
    options.method = Method::fft;
  }
  options.angle = input.ConsumeFloatingPointInRange<double>(0, 2);
  options.force_error = input.ConsumeFloatingPointInRange<double>(0.01, 1);
  if (input.ConsumeBool()) {
    options.output_kernel.exponent = input.ConsumeFloatingPointInRange<double>(0.01, 50);
  }
  ChosenRepulsion<Real> repulsion(Dims, options);
  std::vector<Real> points = numbers<Real>(input, count * Dims, 1e12);
  std::vector<Real> force(points.size());
  // The second and third time from where the points have moved to: the tree may be kept.
  for (int moves = 0; moves < 3; ++moves) {
    const Bounds<Real> bounds(points.data(), count, Dims);
    const double z = repulsion.forces(bounds.map(), force.data(), team);
    EXPECT(std::isfinite(z) && all_finite(force));
    EXPECT(z < 1.1 * static_cast<double>(count * count));
    points[at(input.ConsumeIntegralInRange<Size>(0, count * Dims - 1))] +=
        input.ConsumeFloatingPointInRange<Real>(-1, 1);
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  choose_level(input);
  ThreadTeam team(choose_threads(input));
  const bool forces = input.ConsumeBool();
  const int dims = input.ConsumeIntegralInRange<int>(1, 3);
  with_real(input, [&]<typename Real>() {
    with_dims(dims, [&](auto d) {
      forces ? push_points<Real, d()>(input, team) : build_trees<Real, d()>(input, team);
    });
  });
  return 0;
}
