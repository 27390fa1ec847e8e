// A node of the tree, and the tree as the force kernels see it. Kept free of the standard library
// for their sake.
#pragma once

#include "acctsne/types.hpp"

namespace acctsne {

using NodeId = std::int32_t;

// Second moments of a node's points about its centre: xx, or xx xy yy, or xx xy xz yy yz zz.
template <int Dims>
inline constexpr int kMoments = Dims * (Dims + 1) / 2;

template <typename Real, int Dims>
struct Node {
  Real centre[Dims];            // centre of mass, filled by summarize()
  Real moments[kMoments<Dims>]; // sums over the points, filled by summarize()
  Real weight;                  // the mass
  Real side;                    // of the smallest Morton cell that holds the node's points
  PointId begin;                // points in Morton order
  PointId end;
  NodeId skip;        // the first node after this one's subtree
  std::int16_t level; // halvings of the root box that lead to the cell
  bool leaf;
  bool coincident; // a leaf whose points are all in one place, filled by summarize()

  Size mass() const { return end - begin; }
};

// Points in Morton order.
struct PointRange {
  PointId begin;
  PointId end;
};

// Points that walk the tree together: a node's, or part of a leaf's that holds too many.
using PointGroup = PointRange;

// A cell stands for its points when side < theta * distance, from its centre of mass to the
// targets' box, and still would after every point had moved by up to `movement` along each axis.
template <typename Real>
struct Acceptance {
  Real theta2; // squared
  Real movement;
};

// What acts on a group from outside: cells as a whole, and points in Morton order.
template <int Dims>
struct InteractionList {
  // Longer than all but a few lists at angle 0.5 (docs/tuning.md); what has no room is listed
  // again in each call.
  static constexpr int kMostCells = Dims == 3 ? 256 : 192;
  static constexpr int kMostRanges = Dims == 3 ? 64 : 48;
  NodeId next; // where the walk stopped: behind the last node, or where the list was full
  int cell_count;
  int range_count;
  NodeId cells[kMostCells];
  PointRange ranges[kMostRanges];
};

template <typename Real, int Dims>
struct TreeView {
  const Node<Real, Dims>* nodes;
  NodeId node_count;
  const Real* axes[Dims]; // the points' coordinates in Morton order, with a vector's lanes to spare
  const PointId* order;   // the row that each point came from
};

} // namespace acctsne
