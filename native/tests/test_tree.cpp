// The tree: what must hold of its nodes for every cloud, and the sort beneath it.
#include "tree/morton.hpp"
#include "tree/tree.hpp"

#include "check.hpp"
#include "data.hpp"

#include <numeric>

using namespace acctsne;

namespace {

template <typename Real, int Dims>
void build(Tree<Real, Dims>& tree, const std::vector<Real>& points, ThreadTeam& team) {
  const Bounds<Real> bounds = map_of<Dims>(points);
  const MapView<Real> map = bounds.map();
  tree.build(map.points, map.count, map.lower, map.upper, team);
  tree.summarize(points.data(), team);
}

// The cell number of a code along one axis.
template <int Dims>
Size cell_of(MortonCode code, int axis) {
  Size cell = 0;
  for (int bit = 0; bit < kMortonBits<Dims>; ++bit) {
    cell |= static_cast<Size>((code >> (bit * Dims + axis)) & 1) << bit;
  }
  return cell;
}

template <typename Real, int Dims>
void check_order(const Tree<Real, Dims>& tree, const std::vector<Real>& points, ThreadTeam& team) {
  const Size n = static_cast<Size>(points.size()) / Dims;
  CHECK_EQUAL(tree.order().size(), at(n));
  CHECK_EQUAL(tree.codes().size(), at(n));
  std::vector<PointId> sorted(tree.order().begin(), tree.order().end());
  std::sort(sorted.begin(), sorted.end());
  for (Size i = 0; i < n; ++i) {
    CHECK_EQUAL(sorted[at(i)], i);
  }
  std::vector<MortonCode> codes(at(n));
  compute_morton_codes<Real, Dims>(points.data(), n, tree.box(), codes.data(), team);
  for (Size i = 0; i < n; ++i) {
    const PointId from = tree.order()[at(i)];
    CHECK_EQUAL(tree.codes()[at(i)], codes[at(from)]);
    for (int axis = 0; axis < Dims; ++axis) {
      CHECK_EQUAL(tree.axis(axis)[at(i)], points[at(Size{from} * Dims + axis)]);
    }
    if (i > 0) {
      const PointId before = tree.order()[at(i - 1)];
      CHECK(codes[at(before)] < codes[at(from)] ||
            (codes[at(before)] == codes[at(from)] && before < from));
    }
  }
}

// Checks one node and, by the skip links, its subtree; returns the number of nodes visited.
template <typename Real, int Dims>
Size check_subtree(const Tree<Real, Dims>& tree, NodeId id, double largest_coordinate) {
  const auto nodes = tree.nodes();
  const Node<Real, Dims>& node = nodes[at(id)];
  constexpr int kBits = kMortonBits<Dims>;
  const Box<Real, Dims>& box = tree.box();
  const double epsilon = static_cast<double>(kEpsilon<Real>);
  CHECK(node.begin < node.end);
  CHECK(node.level >= 0 && node.level <= kBits);
  CHECK_EQUAL(node.side, std::ldexp(box.side, -node.level));
  CHECK_EQUAL(node.leaf, node.mass() <= kLeafPoints || node.level == kBits);

  // The cell is the smallest: the first and the last point share its code, and no further level.
  const MortonCode first = tree.codes()[at(node.begin)];
  const MortonCode last = tree.codes()[at(node.end - 1)];
  const auto prefix = [](MortonCode code, int level) { return code >> ((kBits - level) * Dims); };
  CHECK_EQUAL(prefix(first, node.level), prefix(last, node.level));
  CHECK(node.level == kBits || prefix(first, node.level + 1) != prefix(last, node.level + 1));

  long double sums[Dims] = {};
  for (Size i = node.begin; i < node.end; ++i) {
    for (int axis = 0; axis < Dims; ++axis) {
      const auto value = static_cast<double>(tree.axis(axis)[at(i)]);
      sums[axis] += value;
      // Cell numbers are worked out in Real, so a point may lie beside its cell by the rounding of
      // the box's side.
      const auto side = static_cast<double>(node.side);
      const double slack = 8 * epsilon * static_cast<double>(box.side);
      const double start =
          static_cast<double>(box.lower[axis]) +
          static_cast<double>(cell_of<Dims>(first, axis) >> (kBits - node.level)) * side;
      CHECK(value >= start - slack && value <= start + side + slack);
    }
  }
  for (int axis = 0; axis < Dims; ++axis) {
    // Each level rounds its centres to Real once more; a leaf adds up its points in double.
    const auto mass = static_cast<double>(node.mass());
    const auto mean = static_cast<double>(sums[axis] / static_cast<long double>(node.mass()));
    CHECK_NEAR(node.centre[axis], mean,
               (32 * epsilon + mass * kEpsilon<double>)*largest_coordinate);
  }

  if (node.leaf) {
    CHECK_EQUAL(node.skip, id + 1);
    return 1;
  }
  Size visited = 1;
  Size children = 0;
  PointId next_point = node.begin;
  NodeId child = id + 1;
  while (child < node.skip && children <= (1 << Dims)) {
    CHECK_EQUAL(nodes[at(child)].begin, next_point);
    CHECK(nodes[at(child)].level > node.level);
    visited += check_subtree(tree, child, largest_coordinate);
    next_point = nodes[at(child)].end;
    child = nodes[at(child)].skip;
    ++children;
  }
  CHECK_EQUAL(child, node.skip);
  CHECK_EQUAL(next_point, node.end);
  CHECK(children >= 2 && children <= (1 << Dims));
  return visited;
}

template <typename Real, int Dims>
void check_tree(const Tree<Real, Dims>& tree, const std::vector<Real>& points, ThreadTeam& team) {
  const Size n = static_cast<Size>(points.size()) / Dims;
  double largest = 0;
  for (const Real value : points) {
    largest = std::max(largest, std::abs(static_cast<double>(value)));
  }
  check_order(tree, points, team);
  const auto nodes = tree.nodes();
  CHECK(!nodes.empty() && nodes.size() < at(2 * n));
  CHECK_EQUAL(nodes[0].begin, 0);
  CHECK_EQUAL(nodes[0].end, n);
  CHECK_EQUAL(nodes[0].skip, static_cast<NodeId>(nodes.size()));
  CHECK_EQUAL(check_subtree(tree, 0, largest), static_cast<Size>(nodes.size()));
  Size in_leaves = 0;
  for (const Node<Real, Dims>& node : nodes) {
    in_leaves += node.leaf ? node.mass() : 0;
  }
  CHECK_EQUAL(in_leaves, n);
}

template <typename Real, int Dims>
bool same_trees(const Tree<Real, Dims>& a, const Tree<Real, Dims>& b) {
  // Member by member: the padding of a node may hold anything.
  const auto same_nodes = [](const Node<Real, Dims>& left, const Node<Real, Dims>& right) {
    return std::memcmp(left.centre, right.centre, sizeof left.centre) == 0 &&
           std::memcmp(&left.side, &right.side, sizeof left.side) == 0 &&
           left.begin == right.begin && left.end == right.end && left.skip == right.skip &&
           left.level == right.level && left.leaf == right.leaf;
  };
  return std::equal(a.nodes().begin(), a.nodes().end(), b.nodes().begin(), b.nodes().end(),
                    same_nodes) &&
         same_bytes(a.order(), b.order()) && same_bytes(a.codes(), b.codes()) &&
         same_bytes(a.axis(0), b.axis(0)) && same_bytes(a.axis(Dims - 1), b.axis(Dims - 1));
}

template <typename Real, int Dims>
void check_cloud(Cloud cloud, Size count) {
  const check::Scope scope(std::string(name_of(cloud)) + ", " + std::to_string(count) + " points");
  const std::vector<Real> points = make_cloud<Real>(cloud, count, Dims);
  ThreadTeam team(1);
  Tree<Real, Dims> tree;
  build(tree, points, team);
  check_tree(tree, points, team);
  for (const int threads : kThreadCounts) {
    ThreadTeam other_team(threads);
    Tree<Real, Dims> other;
    build(other, points, other_team);
    CHECK(same_trees(tree, other));
  }
}

} // namespace

TEST(trees_of_every_cloud) {
  for_levels([] {
    for_reals_and_dims([]<typename Real, int Dims>() {
      for (const Cloud cloud : kClouds) {
        for (const Size count : {1, 2, 3, 9, 1000}) {
          check_cloud<Real, Dims>(cloud, count);
        }
      }
    });
  });
}

TEST(large_trees) {
  for_reals_and_dims([]<typename Real, int Dims>() {
    for (const Cloud cloud : {Cloud::uniform, Cloud::clustered, Cloud::half_duplicated}) {
      check_cloud<Real, Dims>(cloud, 20'000);
    }
  });
}

TEST(many_coincident_points) {
  for_reals_and_dims([]<typename Real, int Dims>() {
    check_cloud<Real, Dims>(Cloud::all_equal, 3000);
    check_cloud<Real, Dims>(Cloud::two_point, 3000);

    const std::vector<Real> points = make_cloud<Real>(Cloud::all_equal, 3000, Dims);
    ThreadTeam team(2);
    Tree<Real, Dims> tree;
    build(tree, points, team);
    CHECK_EQUAL(tree.nodes().size(), 1u);
    CHECK(tree.nodes()[0].leaf);
  });
}

TEST(a_cloud_far_from_the_origin) {
  for_reals_and_dims([]<typename Real, int Dims>() {
    std::vector<Real> points = make_cloud<Real>(Cloud::uniform, 1000, Dims);
    for (Real& value : points) {
      value += Real(1e6);
    }
    ThreadTeam team(2);
    Tree<Real, Dims> tree;
    build(tree, points, team);
    check_tree(tree, points, team);
  });
}

TEST(a_tree_can_be_built_again) {
  for_reals_and_dims([]<typename Real, int Dims>() {
    ThreadTeam team(2);
    Tree<Real, Dims> tree;
    for (const Size count : {3000, 10, 2500, 1}) {
      const std::vector<Real> points = make_cloud<Real>(Cloud::clustered, count, Dims);
      build(tree, points, team);
      check_tree(tree, points, team);
    }
    tree.build(nullptr, 0, nullptr, nullptr, team);
    CHECK(tree.nodes().empty());
  });
}

TEST(the_box_holds_every_point) {
  for_reals_and_dims([]<typename Real, int Dims>() {
    for (const double scale : {1e-38, 1e-30, 1.0, 1e9, 1e30, 2e38}) {
      for (const double offset : {0.0, 0.5, -1.0}) {
        Real lower[Dims];
        Real upper[Dims];
        for (int axis = 0; axis < Dims; ++axis) {
          lower[axis] = static_cast<Real>(scale * (offset - 0.5));
          upper[axis] = static_cast<Real>(scale * (offset + 0.5) / (1 + axis));
        }
        const Box<Real, Dims> box = root_box<Real, Dims>(lower, upper);
        CHECK(box.side > 0 && std::isfinite(box.side) && std::isfinite(1 / box.side));
        for (int axis = 0; axis < Dims; ++axis) {
          CHECK_EQUAL(box.lower[axis], lower[axis]);
          // Beyond a quarter of the largest number the side is cut off, and the last cell takes
          // what lies above.
          CHECK(box.side > upper[axis] - lower[axis] ||
                box.side >= std::numeric_limits<Real>::max() / 4);
        }
      }
    }
  });
}

TEST(codes_are_sorted_stably) {
  enum Kind { kRandom, kFewValues, kLongRuns, kOneRun, kAllEqual, kDescending };
  std::mt19937_64 random(31);
  for (const int bits : {31, 62, 63}) {
    const MortonCode mask = (MortonCode{1} << bits) - 1;
    for (const Kind kind : {kRandom, kFewValues, kLongRuns, kOneRun, kAllEqual, kDescending}) {
      for (const Size count : {0, 1, 2, 2047, 2048, 5000, 40'000}) {
        const check::Scope scope("bits " + std::to_string(bits) + ", kind " + std::to_string(kind) +
                                 ", count " + std::to_string(count));
        std::vector<MortonCode> codes(at(count));
        for (Size i = 0; i < count; ++i) {
          const MortonCode any = random() & mask;
          const MortonCode low = any & 0xFFFFF; // below the bits that choose the bucket
          const MortonCode values[] = {
              any,  (any % 7) << (bits - 5),           low | (any >> (bits - 2)) << (bits - 2), low,
              mask, static_cast<MortonCode>(count - i)};
          codes[at(i)] = values[kind];
        }
        std::vector<PointId> expected(codes.size());
        std::iota(expected.begin(), expected.end(), PointId{0});
        std::sort(expected.begin(), expected.end(), [&](PointId a, PointId b) {
          return std::pair(codes[at(a)], a) < std::pair(codes[at(b)], b);
        });
        for (const int threads : kThreadCounts) {
          ThreadTeam team(threads);
          CodeSorter sorter;
          // From the points' own order, backwards, and from nearly sorted: it must not matter.
          for (const int start : {0, 1, 2}) {
            std::vector<PointId> order = expected;
            if (start == 2) {
              for (std::size_t i = 3; i < order.size(); i += 5) {
                std::swap(order[i - 3], order[i]);
              }
            } else {
              std::iota(order.begin(), order.end(), PointId{0});
            }
            if (start == 1) {
              std::reverse(order.begin(), order.end());
            }
            std::vector<MortonCode> sorted(codes.size());
            for (std::size_t i = 0; i < sorted.size(); ++i) {
              sorted[i] = codes[at(order[i])];
            }
            sorter.sort(sorted, order, bits, team);
            CHECK(order == expected);
            for (std::size_t i = 0; i < sorted.size(); ++i) {
              CHECK_EQUAL(sorted[i], codes[at(expected[i])]);
            }
          }
        }
      }
    }
  }
}

int main() {
  return check::run_tests();
}
