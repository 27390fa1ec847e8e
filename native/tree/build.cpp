// Step 3, second half: the tree from sorted Morton codes.
//
// 1. Sort the codes, starting from the order of the previous build, and copy the points into that
//    order.
// 2. Divide from the root until every part has at most `subtree_points` points. This depends on the
//    points alone, not on the threads, and touches only a few hundred cells.
// 3. Build each part's subtree, in parallel. A node's cell is found from the common prefix of its
//    first and last code: chains of cells with one child never arise, so a subtree of n points has
//    fewer than 2 n nodes.
// 4. Move the subtrees to their place in depth-first order, in parallel.
#include "tree/tree.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace acctsne {
namespace {

// Points of a subtree that one task builds: enough tasks to balance many threads, few enough to be
// worth a task.
Size points_per_subtree(Size count) {
  return std::max(kSubtreePoints, count / 512);
}

// How many of the sorted codes, of which there is one at least and the first of which counts, are
// no larger than this one. A branch would be taken at random.
PointId codes_up_to(MortonCode largest, const MortonCode* codes, PointId count) {
  const MortonCode* last = codes;
  while (count > 1) {
    const PointId half = count / 2;
    last += half * static_cast<PointId>(last[half] <= largest);
    count -= half;
  }
  return static_cast<PointId>(last - codes) + 1;
}

// Lanes of the widest vector that any kernel has.
template <typename Real>
constexpr std::size_t kMostLanes = 64 / sizeof(Real);

} // namespace

template <typename Real, int Dims>
void Tree<Real, Dims>::build(const Real* points, Size count, const Real* lower, const Real* upper,
                             ThreadTeam& team) {
  make_room(count, team);
  subtrees_.clear();
  top_.clear();
  node_count_ = 0;
  if (count == 0) {
    return;
  }
  box_ = root_box<Real, Dims>(lower, upper);
  for (int level = 0; level <= kMortonBits<Dims>; ++level) {
    sides_[level] = std::ldexp(box_.side, -level);
  }
  sort_points(points, count, team);
  split_top(0, static_cast<PointId>(count), points_per_subtree(count));
  parallel_for(team, static_cast<Size>(subtrees_.size()), 1, [&](Size s, Size) {
    Subtree& subtree = subtrees_[at(s)];
    Node<Real, Dims>* to = built_.get() + 2 * at(subtree.begin);
    subtree.count = emit_subtree(subtree.begin, subtree.end, to, 0);
  });
  place_subtrees(team);
}

template <typename Real, int Dims>
void Tree<Real, Dims>::make_room(Size count, ThreadTeam& team) {
  const auto n = static_cast<std::size_t>(count);
  codes_.resize(n);
  codes_by_row_.resize(n);
  for (std::vector<Real>& axis : axes_) {
    axis.resize(n + kMostLanes<Real>);
  }
  if (count > room_) {
    built_ = make_large_array<Node<Real, Dims>>(2 * n, team.size());
    nodes_ = make_large_array<Node<Real, Dims>>(2 * n, team.size());
    room_ = count;
  }
}

template <typename Real, int Dims>
void Tree<Real, Dims>::sort_points(const Real* points, Size count, ThreadTeam& team) {
  if (static_cast<Size>(order_.size()) != count) {
    order_.resize(at(count));
    std::iota(order_.begin(), order_.end(), PointId{0});
  }
  compute_morton_codes<Real, Dims>(points, count, box_, codes_by_row_.data(), team);
  parallel_for(team, count, 8192, [&](Size begin, Size end) {
    for (auto i = static_cast<std::size_t>(begin); i < at(end); ++i) {
      codes_[i] = codes_by_row_[at(order_[i])];
    }
  });
  sorter_.sort(codes_, order_, Dims * kMortonBits<Dims>, team);
}

template <typename Real, int Dims>
Node<Real, Dims> Tree<Real, Dims>::make_node(PointId begin, PointId end) const {
  const MortonCode differing = codes_[at(begin)] ^ codes_[at(end - 1)];
  const int differing_bits = 64 - std::countl_zero(differing);
  Node<Real, Dims> node{};
  node.level = static_cast<std::int16_t>(kMortonBits<Dims> - (differing_bits + Dims - 1) / Dims);
  node.weight = static_cast<Real>(end - begin);
  node.side = sides_[node.level];
  node.begin = begin;
  node.end = end;
  node.leaf = node.mass() <= kLeafPoints || node.level == kMortonBits<Dims>;
  return node;
}

template <typename Real, int Dims>
template <typename Visit>
void Tree<Real, Dims>::visit_children(const Node<Real, Dims>& node, Visit&& visit) const {
  const int shift = (kMortonBits<Dims> - node.level - 1) * Dims;
  PointId begin = node.begin;
  while (begin < node.end) {
    const MortonCode last_of_child = codes_[at(begin)] | ((MortonCode{1} << shift) - 1);
    const PointId end = begin + codes_up_to(last_of_child, codes_.data() + begin, node.end - begin);
    visit(begin, end);
    begin = end;
  }
}

template <typename Real, int Dims>
void Tree<Real, Dims>::split_top(PointId begin, PointId end, Size subtree_points) {
  const Node<Real, Dims> node = make_node(begin, end);
  const std::size_t entry = top_.size();
  if (node.leaf || node.mass() <= subtree_points) {
    top_.push_back({node, static_cast<Size>(entry + 1), static_cast<Size>(subtrees_.size())});
    subtrees_.push_back({begin, end});
    return;
  }
  top_.push_back({node, 0, -1});
  visit_children(node, [&](PointId child_begin, PointId child_end) {
    split_top(child_begin, child_end, subtree_points);
  });
  top_[entry].next_entry = static_cast<Size>(top_.size());
}

template <typename Real, int Dims>
TreeView<Real, Dims> Tree<Real, Dims>::view() const {
  TreeView<Real, Dims> view{nodes_.get(), static_cast<NodeId>(node_count_), {}, order_.data()};
  for (int a = 0; a < Dims; ++a) {
    view.axes[a] = axes_[a].data();
  }
  return view;
}

// Writes the subtree over [begin, end) from to[next] on and returns the place after it.
template <typename Real, int Dims>
NodeId Tree<Real, Dims>::emit_subtree(PointId begin, PointId end, Node<Real, Dims>* to,
                                      NodeId next) const {
  Node<Real, Dims>& node = to[next];
  node = make_node(begin, end);
  ++next;
  if (!node.leaf) {
    visit_children(node, [&](PointId child_begin, PointId child_end) {
      next = emit_subtree(child_begin, child_end, to, next);
    });
  }
  node.skip = next;
  return next;
}

template <typename Real, int Dims>
void Tree<Real, Dims>::place_subtrees(ThreadTeam& team) {
  NodeId place = 0;
  for (TopEntry& entry : top_) {
    entry.place = place;
    if (entry.subtree >= 0) {
      Subtree& subtree = subtrees_[at(entry.subtree)];
      subtree.first = place;
      place += subtree.count;
    } else {
      ++place;
    }
  }
  node_count_ = at(place);
  for (const TopEntry& entry : top_) {
    if (entry.subtree < 0) {
      Node<Real, Dims>& node = nodes_[at(entry.place)];
      node = entry.node;
      const auto after = static_cast<std::size_t>(entry.next_entry);
      node.skip = after < top_.size() ? top_[after].place : place;
    }
  }
  parallel_for(team, static_cast<Size>(subtrees_.size()), 1, [&](Size s, Size) {
    const Subtree& subtree = subtrees_[at(s)];
    const Node<Real, Dims>* from = built_.get() + 2 * at(subtree.begin);
    for (NodeId i = 0; i < subtree.count; ++i) {
      Node<Real, Dims>& node = nodes_[at(subtree.first) + at(i)];
      node = from[i];
      node.skip += subtree.first;
    }
  });
}

#define ACCTSNE_INSTANTIATE(Real, Dims) template class Tree<Real, Dims>;
ACCTSNE_FOR_REALS_AND_DIMS(ACCTSNE_INSTANTIATE)
#undef ACCTSNE_INSTANTIATE

} // namespace acctsne
