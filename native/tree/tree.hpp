// Steps 3 and 4: the tree over the embedding that the Barnes-Hut repulsion walks.
//
// A binary tree in 1-D, quadtree in 2-D, octree in 3-D. Nodes lie in depth-first order, so that a
// subtree is a contiguous range of nodes, its points a contiguous range of the points in Morton
// order, and a walk needs no stack: after a node comes its first child, or, if the subtree is to be
// skipped, the node at `skip`.
#pragma once

#include "acctsne/large_array.hpp"
#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "kernels/node.hpp"
#include "tree/morton.hpp"

#include <span>
#include <utility>
#include <vector>

namespace acctsne {

// A cell with at most this many points is not divided further: fewer nodes to build and to visit,
// and the points of a leaf are summed a vector at a time.
inline constexpr Size kLeafPoints = 8;

// Points that a part of the tree has at least before it is divided into tasks.
inline constexpr Size kSubtreePoints = 128;

template <typename Real, int Dims>
class Tree {
public:
  // Step 3. Sorts the points (row-major, points x Dims) and builds the nodes. `lower` and `upper`
  // bound the points. summarize() must follow.
  void build(const Real* points, Size count, const Real* lower, const Real* upper,
             ThreadTeam& team);

  // Step 4. Fills centres of mass and second moments, bottom up, for the present positions of the
  // points: those that the tree was built from, or where they have moved since.
  void summarize(const Real* points, ThreadTeam& team);

  std::span<const Node<Real, Dims>> nodes() const { return {nodes_.get(), node_count_}; }
  TreeView<Real, Dims> view() const;

  // Runs of nodes that together have every node of at most kSubtreePoints points.
  std::size_t subtree_count() const { return subtrees_.size(); }
  std::pair<NodeId, NodeId> nodes_of_subtree(Size subtree) const {
    const Subtree& run = subtrees_[at(subtree)];
    return {run.first, run.first + run.count};
  }
  const Box<Real, Dims>& box() const { return box_; }

  // In Morton order: positions along an axis, and the row in the input that each came from.
  std::span<const Real> axis(int a) const { return {axes_[a].data(), order_.size()}; }
  std::span<const PointId> order() const { return order_; }
  std::span<const MortonCode> codes() const { return codes_; }

private:
  // A run of nodes that one task builds and summarises.
  struct Subtree {
    PointId begin;
    PointId end;
    NodeId first = 0; // in nodes_
    NodeId count = 0;
  };
  // The part of the tree above the subtrees, in depth-first order: a node, or the place of a
  // subtree.
  struct TopEntry {
    Node<Real, Dims> node;
    Size next_entry;  // the first entry after this one's part
    Size subtree;     // its number, or -1 for a node
    NodeId place = 0; // of its first node in nodes_
  };

  void make_room(Size count, ThreadTeam& team);
  void sort_points(const Real* points, Size count, ThreadTeam& team);
  void split_top(PointId begin, PointId end, Size subtree_points);
  void place_subtrees(ThreadTeam& team);
  Node<Real, Dims> make_node(PointId begin, PointId end) const;
  // Calls visit(begin, end) for each occupied child cell of the node.
  template <typename Visit>
  void visit_children(const Node<Real, Dims>& node, Visit&& visit) const;
  NodeId emit_subtree(PointId begin, PointId end, Node<Real, Dims>* to, NodeId next) const;
  void summarize_node(NodeId id);

  Box<Real, Dims> box_{};
  Real sides_[kMortonBits<Dims> + 1] = {}; // of the cells of each level
  std::vector<MortonCode> codes_;
  std::vector<PointId> order_;
  CodeSorter sorter_;
  std::vector<MortonCode> codes_by_row_;
  std::vector<Real> axes_[Dims]; // of the points in Morton order
  std::vector<Subtree> subtrees_;
  std::vector<TopEntry> top_;
  LargeArray<Node<Real, Dims>> built_; // subtree s occupies built_[2 * begin ...]
  LargeArray<Node<Real, Dims>> nodes_;
  Size room_ = 0; // of both: points that they have nodes for
  std::size_t node_count_ = 0;
};

} // namespace acctsne
