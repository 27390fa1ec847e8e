// A node of the tree, and the tree as the force kernels see it. Kept free of the standard library
// for their sake.
#pragma once

#include "acctsne/types.hpp"

namespace acctsne {

using NodeId = std::int32_t;

template <typename Real, int Dims>
struct Node {
  Real center[Dims]; // centre of mass, filled by summarize()
  Real side;         // of the smallest Morton cell that holds the node's points
  PointId begin;     // points in Morton order
  PointId end;
  NodeId skip;        // the first node after this one's subtree
  std::int16_t level; // halvings of the root box that lead to the cell
  bool leaf;
  bool coincident; // a leaf whose points are all in one place, filled by summarize()

  Size mass() const { return end - begin; }
};

// Second moments of a node's points about its centre: xx, or xx xy yy, or xx xy xz yy yz zz.
template <int Dims>
inline constexpr int kMoments = Dims * (Dims + 1) / 2;

// Points that walk the tree together: a node's, or part of a leaf's that holds too many.
struct PointGroup {
  NodeId node;
  PointId begin;
  PointId end;
};

template <typename Real, int Dims>
struct TreeView {
  const Node<Real, Dims>* nodes;
  NodeId node_count;
  const Real* moments;  // node_count x kMoments<Dims>, sums over the points
  const Real* points;   // in Morton order
  const PointId* order; // the row that each of them came from
};

} // namespace acctsne
