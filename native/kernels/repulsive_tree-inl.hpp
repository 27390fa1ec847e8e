// Repulsive forces of the tree's points on each other and on any position. One walk lists what acts
// on a target box: cells as a whole, and points. Then the targets meet the list.
//
// A far cell acts through its mass m and second moments Q about the centre of mass (the first ones
// vanish there). With R = y - centre, w = 1 / (1 + R^2), T = trace Q, the exponent e,
// u = 2 (e + 1) w Q R and b = w (R u - T), expanding sum_j (1 + |y - y_j|^2)^-e to second order
// gives
//   z     = w^e (m + e b)
//   force = -1/(2 e) grad z = w^(e + 1) ((m + w T + (e + 2) b) R - u)
// where w T and b are at most of the order of m, so that nothing overflows in large maps.

// What acts on the targets in the lanes of one vector; or, on one target in all lanes, what the
// sources in the lanes do.
template <typename Real, int Dims, template <typename> typename Falloff>
struct RepulsionSums {
  using S = Simd<Real>;
  using Vec = typename S::Vec;
  Vec z = {};
  Vec force[Dims] = {};

  void add_cell(Falloff<Real> falloff, const Vec* y, const Vec* centre, Vec mass,
                const Vec* moments) {
    const Real e = falloff.exponent;
    Vec r[Dims];
    const Vec one_plus_d2 = one_plus_distance2(y, centre, r);
    const Vec w = S::reciprocal(one_plus_d2);
    const Vec steep = 2 * (e + 1) * w;
    Vec u[Dims] = {};
    Vec trace = {};
    int m = 0;
    for (int i = 0; i < Dims; ++i) {
      for (int j = i; j < Dims; ++j, ++m) {
        u[i] += moments[m] * (steep * r[j]);
        if (i == j) {
          trace += moments[m];
        } else {
          u[j] += moments[m] * (steep * r[i]);
        }
      }
    }
    Vec b = -trace;
    for (int axis = 0; axis < Dims; ++axis) {
      b += u[axis] * r[axis];
    }
    b *= w;
    const Vec q = falloff(w, one_plus_d2);
    z += q * (mass + e * b);
    const Vec qw = q * w;
    const Vec along_r = (mass + w * trace) + (e + 2) * b;
    for (int axis = 0; axis < Dims; ++axis) {
      force[axis] += qw * (along_r * r[axis] - u[axis]);
    }
  }

  void add_point(Falloff<Real> falloff, const Vec* y, const Vec* point) {
    Vec r[Dims];
    const Vec one_plus_d2 = one_plus_distance2(y, point, r);
    const Vec w = S::reciprocal(one_plus_d2);
    add_weighted(falloff(w, one_plus_d2), w, r);
  }

  // In the lanes where `acts` is set.
  void add_point(Falloff<Real> falloff, const Vec* y, const Vec* point, typename S::IntVec acts) {
    Vec r[Dims];
    const Vec one_plus_d2 = one_plus_distance2(y, point, r);
    const Vec w = S::reciprocal(one_plus_d2);
    add_weighted(acts ? falloff(w, one_plus_d2) : Vec{}, w, r);
  }

  void add(const RepulsionSums& other) {
    z += other.z;
    for (int axis = 0; axis < Dims; ++axis) {
      force[axis] += other.force[axis];
    }
  }

private:
  static Vec one_plus_distance2(const Vec* y, const Vec* source, Vec* r) {
    Vec one_plus_d2 = S::splat(1);
    for (int axis = 0; axis < Dims; ++axis) {
      r[axis] = y[axis] - source[axis];
      one_plus_d2 += r[axis] * r[axis];
    }
    return one_plus_d2;
  }

  void add_weighted(Vec q, Vec w, const Vec* r) {
    z += q;
    const Vec qw = q * w;
    for (int axis = 0; axis < Dims; ++axis) {
      force[axis] += qw * r[axis];
    }
  }
};

// Lists what acts on targets within the box [lower, upper], from the node `next` on, until the list
// is full. The points of `group`, if it is not empty, are left out.
template <typename Real, int Dims>
void walk_tree(const TreeView<Real, Dims>& tree, const Real* lower, const Real* upper,
               PointGroup group, const Acceptance<Real>& accept, NodeId next,
               InteractionList<Dims>& list) {
  list.cell_count = 0;
  list.range_count = 0;
  const auto add_range = [&](PointId begin, PointId end) {
    if (begin >= end) {
      return;
    }
    if (list.range_count > 0 && list.ranges[list.range_count - 1].end == begin) {
      list.ranges[list.range_count - 1].end = end;
    } else {
      list.ranges[list.range_count++] = {begin, end};
    }
  };
  // A leaf adds two ranges at most: what lies before the group and what lies behind.
  while (next < tree.node_count && list.cell_count < list.kMostCells &&
         list.range_count + 2 <= list.kMostRanges) {
    const Node<Real, Dims>& node = tree.nodes[next];
    // Distance of the cell's centre of mass from the box, after both have moved.
    Real d2 = 0;
    for (int axis = 0; axis < Dims; ++axis) {
      const Real below = lower[axis] - node.centre[axis];
      const Real above = node.centre[axis] - upper[axis];
      Real outside = (below > above ? below : above) - 2 * accept.movement;
      outside = outside > Real(0) ? outside : Real(0);
      d2 += outside * outside;
    }
    // A cell never stands for the group itself, however far its centre of mass is.
    const bool around = node.begin <= group.begin && node.end >= group.end;
    const bool inside = node.begin >= group.begin && node.end <= group.end;
    const Real side = node.side + 2 * accept.movement;
    if (!around && !inside && side * side < accept.theta2 * d2) {
      list.cells[list.cell_count++] = next;
      next = node.skip;
    } else if (inside) {
      next = node.skip;
    } else if (node.leaf) {
      if (around) {
        add_range(node.begin, group.begin);
        add_range(group.end, node.end);
      } else {
        add_range(node.begin, node.end);
      }
      next = node.skip;
    } else {
      ++next;
    }
  }
  list.next = next;
}

// Lists what acts on the group from outside, from the node `next` on, until the list is full.
template <typename Real, int Dims>
void list_sources(const TreeView<Real, Dims>& tree, PointGroup group,
                  const Acceptance<Real>& accept, NodeId next, InteractionList<Dims>& list) {
  Real lower[Dims];
  Real upper[Dims];
  for (int axis = 0; axis < Dims; ++axis) {
    lower[axis] = upper[axis] = tree.axes[axis][group.begin];
    for (Size i = group.begin; i < group.end; ++i) {
      const Real value = tree.axes[axis][i];
      lower[axis] = value < lower[axis] ? value : lower[axis];
      upper[axis] = value > upper[axis] ? value : upper[axis];
    }
  }
  walk_tree(tree, lower, upper, group, accept, next, list);
}

// So many points are added up before their sum goes to the total, which keeps rounding small. A
// multiple of every number of lanes.
constexpr Size kSummedPoints = 512;

// What acts on the points of a group.
template <int Dims>
struct GroupSources {
  const InteractionList<Dims>& list;
  PointGroup group;
  bool with_group; // the group's own points act on each other
};

// Adds what the sources do to the forces on the points [begin, end) of the group, at most kLanes of
// them. Returns the sum of their z.
template <typename Real, int Dims, template <typename> typename Falloff>
double push_points(const TreeView<Real, Dims>& tree, const GroupSources<Dims>& sources, Size begin,
                   Size end, Falloff<Real> falloff, Real* force) {
  using S = Simd<Real>;
  using Vec = typename S::Vec;
  using IntVec = typename S::IntVec;
  Vec y[Dims];
  for (int axis = 0; axis < Dims; ++axis) {
    y[axis] = S::load(tree.axes[axis] + begin);
  }
  const auto splat_point = [&](Size j, Vec* point) {
    for (int axis = 0; axis < Dims; ++axis) {
      point[axis] = S::splat(tree.axes[axis][j]);
    }
  };
  IntVec lanes;
  for (int lane = 0; lane < S::kLanes; ++lane) {
    lanes[lane] = lane;
  }

  const InteractionList<Dims>& list = sources.list;
  RepulsionSums<Real, Dims, Falloff> totals;
  for (int i = 0; i < list.cell_count; ++i) {
    const Node<Real, Dims>& node = tree.nodes[list.cells[i]];
    Vec centre[Dims];
    Vec moments[kMoments<Dims>];
    for (int axis = 0; axis < Dims; ++axis) {
      centre[axis] = S::splat(node.centre[axis]);
    }
    for (int m = 0; m < kMoments<Dims>; ++m) {
      moments[m] = S::splat(node.moments[m]);
    }
    totals.add_cell(falloff, y, centre, S::splat(node.weight), moments);
  }
  for (int range = 0; range < list.range_count; ++range) {
    const Size range_end = list.ranges[range].end;
    for (Size j = list.ranges[range].begin; j < range_end;) {
      const Size block_end = range_end - j > kSummedPoints ? j + kSummedPoints : range_end;
      RepulsionSums<Real, Dims, Falloff> sums;
      for (; j < block_end; ++j) {
        Vec point[Dims];
        splat_point(j, point);
        sums.add_point(falloff, y, point);
      }
      totals.add(sums);
    }
  }
  if (sources.with_group) {
    for (Size j = sources.group.begin; j < sources.group.end; ++j) {
      Vec point[Dims];
      splat_point(j, point);
      totals.add_point(falloff, y, point, lanes != static_cast<typename S::Int>(j - begin));
    }
  }

  Real flat[Dims][S::kLanes];
  for (int axis = 0; axis < Dims; ++axis) {
    S::store(flat[axis], totals.force[axis]);
  }
  for (Size i = begin; i < end; ++i) {
    Real* to = force + static_cast<Size>(tree.order[i]) * Dims;
    for (int axis = 0; axis < Dims; ++axis) {
      to[axis] += flat[axis][i - begin];
    }
  }
  // The lanes beyond the end hold points of other groups.
  const IntVec targets = lanes < static_cast<typename S::Int>(end - begin);
  return static_cast<double>(S::sum(targets ? totals.z : Vec{}));
}

// Adds what is listed, and the group's own points if asked for, to the forces on the group's
// points, in the order of the tree's rows. Returns the sum of their z.
template <typename Real, int Dims, template <typename> typename Falloff>
double push_group(const TreeView<Real, Dims>& tree, PointGroup group,
                  const InteractionList<Dims>& list, bool with_group, Real exponent, Real* force) {
  constexpr Size kLanes = Simd<Real>::kLanes;
  const Falloff<Real> falloff(exponent);
  const Size mass = group.end - group.begin;
  double z = 0;
  if (mass <= kGroupPoints) {
    const GroupSources<Dims> sources{list, group, with_group};
    for (Size begin = group.begin; begin < group.end; begin += kLanes) {
      const Size end = begin + kLanes < group.end ? begin + kLanes : group.end;
      z += push_points(tree, sources, begin, end, falloff, force);
    }
    return z;
  }
  // All in one place: one speaks for all. They act on each other with weight 1 and no force.
  const GroupSources<Dims> others{list, group, false};
  z = push_points(tree, others, group.begin, group.begin + 1, falloff, force);
  const Real* from = force + static_cast<Size>(tree.order[group.begin]) * Dims;
  for (Size i = group.begin + 1; i < group.end; ++i) {
    for (int axis = 0; axis < Dims; ++axis) {
      force[static_cast<Size>(tree.order[i]) * Dims + axis] = from[axis];
    }
  }
  return static_cast<double>(mass) * (z + (with_group ? static_cast<double>(mass - 1) : 0.0));
}

// Fills `force` with the force of all the tree's points on the position, and returns its z.
template <typename Real, int Dims, template <typename> typename Falloff>
double push_position(const TreeView<Real, Dims>& tree, const Real* position,
                     const Acceptance<Real>& accept, Real exponent, Real* force) {
  using S = Simd<Real>;
  using Vec = typename S::Vec;
  using Sums = RepulsionSums<Real, Dims, Falloff>;
  constexpr int kLanes = S::kLanes;
  constexpr PointGroup kNobody{-1, -1};
  const Falloff<Real> falloff(exponent);
  Vec y[Dims];
  for (int axis = 0; axis < Dims; ++axis) {
    y[axis] = S::splat(position[axis]);
    force[axis] = 0;
  }
  typename S::IntVec lanes;
  for (int lane = 0; lane < kLanes; ++lane) {
    lanes[lane] = lane;
  }
  double z = 0;
  InteractionList<Dims> list;
  for (NodeId next = 0; next < tree.node_count; next = list.next) {
    walk_tree(tree, position, position, kNobody, accept, next, list);
    Sums sums;
    for (int i = 0; i < list.cell_count; i += kLanes) {
      // Lanes beyond the last cell have no mass.
      Vec centre[Dims] = {};
      Vec moments[kMoments<Dims>] = {};
      Vec mass = {};
      for (int lane = 0; lane < kLanes && i + lane < list.cell_count; ++lane) {
        const Node<Real, Dims>& node = tree.nodes[list.cells[i + lane]];
        mass[lane] = node.weight;
        for (int axis = 0; axis < Dims; ++axis) {
          centre[axis][lane] = node.centre[axis];
        }
        for (int m = 0; m < kMoments<Dims>; ++m) {
          moments[m][lane] = node.moments[m];
        }
      }
      sums.add_cell(falloff, y, centre, mass, moments);
    }
    for (int range = 0; range < list.range_count; ++range) {
      const PointRange points = list.ranges[range];
      for (Size j = points.begin; j < points.end;) {
        const Size block_end = points.end - j > kSummedPoints ? j + kSummedPoints : points.end;
        Sums block;
        for (; j < block_end; j += kLanes) {
          Vec point[Dims];
          for (int axis = 0; axis < Dims; ++axis) {
            point[axis] = S::load(tree.axes[axis] + j);
          }
          block.add_point(falloff, y, point, lanes < static_cast<typename S::Int>(points.end - j));
        }
        sums.add(block);
      }
    }
    z += static_cast<double>(S::sum(sums.z));
    for (int axis = 0; axis < Dims; ++axis) {
      force[axis] += S::sum(sums.force[axis]);
    }
  }
  return z;
}
