// Repulsive forces of the tree's points on each other and on any position. Targets are the points
// of one group, a cell of the tree, or a single position: one walk collects what they interact
// with, then every target meets the whole list, a vector of it at a time.
//
// A far cell acts through its mass m and second moments Q about the centre of mass (the first ones
// vanish there). With R = y - centre, w = 1 / (1 + R^2), s = w R, u = Q s, k = s u, T = trace Q and
// the exponent e, expanding sum_j (1 + |y - y_j|^2)^-e to second order gives
//   z     = w^e (m + 2 e (e + 1) k - e w T)
//   force = -1/(2 e) grad z = w^(e + 1) ((m + 2 (e + 1) (e + 2) k - (e + 1) w T) R - 2 (e + 1) u)
// where k and w T are at most of the order of m, so that nothing overflows in large maps.

template <typename Real, int Dims>
struct InteractionList {
  static constexpr int kCapacity = 256;
  static constexpr int kSlack = Simd<Real>::kLanes; // room for padding
  Real center[Dims][kCapacity + kSlack];
  Real mass[kCapacity + kSlack];
  Real moment[kMoments<Dims>][kCapacity + kSlack];
  Real point[Dims][kCapacity + kSlack];
  int cells = 0;
  int points = 0;

  // Fills the last vectors up: with cells of no mass, and points so far away that they act on
  // nothing.
  void pad() {
    constexpr Real kFarAway = sizeof(Real) == 4 ? Real(1e18) : Real(1e150);
    for (int i = 0; i < kSlack; ++i) {
      mass[cells + i] = 0;
      for (int axis = 0; axis < Dims; ++axis) {
        center[axis][cells + i] = 0;
        point[axis][points + i] = kFarAway;
      }
      for (int m = 0; m < kMoments<Dims>; ++m) {
        moment[m][cells + i] = 0;
      }
    }
  }
};

template <typename Real, int Dims, template <typename> typename Falloff>
struct TargetSums {
  using S = Simd<Real>;
  using Vec = typename S::Vec;
  Falloff<Real> falloff;
  Vec y[Dims];
  Vec z = {};
  Vec force[Dims] = {};

  TargetSums(Falloff<Real> similarity, const Real* position) : falloff(similarity) {
    for (int axis = 0; axis < Dims; ++axis) {
      y[axis] = S::splat(position[axis]);
    }
  }

  void add_cells(const InteractionList<Real, Dims>& list) {
    const Real e = falloff.exponent;
    for (int i = 0; i < list.cells; i += S::kLanes) {
      Vec r[Dims];
      Vec one_plus_d2 = S::splat(1);
      for (int axis = 0; axis < Dims; ++axis) {
        r[axis] = y[axis] - S::load(list.center[axis] + i);
        one_plus_d2 += r[axis] * r[axis];
      }
      const Vec w = S::reciprocal(one_plus_d2);
      Vec s[Dims];
      for (int axis = 0; axis < Dims; ++axis) {
        s[axis] = w * r[axis];
      }
      Vec u[Dims] = {};
      Vec trace = {};
      int m = 0;
      for (int a = 0; a < Dims; ++a) {
        for (int b = a; b < Dims; ++b, ++m) {
          const Vec moment = S::load(list.moment[m] + i);
          u[a] += moment * s[b];
          if (a == b) {
            trace += moment;
          } else {
            u[b] += moment * s[a];
          }
        }
      }
      Vec k = {};
      for (int axis = 0; axis < Dims; ++axis) {
        k += u[axis] * s[axis];
      }
      const Vec mass = S::load(list.mass + i);
      const Vec w_trace = w * trace;
      const Vec q = falloff(w, one_plus_d2);
      z += q * (mass + (2 * e * (e + 1) * k - e * w_trace));
      const Vec qw = q * w;
      const Vec along_r = mass + (2 * (e + 1) * (e + 2) * k - (e + 1) * w_trace);
      for (int axis = 0; axis < Dims; ++axis) {
        force[axis] += qw * (along_r * r[axis] - 2 * (e + 1) * u[axis]);
      }
    }
  }

  void add_points(const InteractionList<Real, Dims>& list) {
    for (int i = 0; i < list.points; i += S::kLanes) {
      Vec r[Dims];
      Vec one_plus_d2 = S::splat(1);
      for (int axis = 0; axis < Dims; ++axis) {
        r[axis] = y[axis] - S::load(list.point[axis] + i);
        one_plus_d2 += r[axis] * r[axis];
      }
      const Vec w = S::reciprocal(one_plus_d2);
      add_weighted(falloff(w, one_plus_d2), w, r);
    }
  }

  // The group's own points, without number `self`.
  void add_group(const Real (*group)[kGroupPoints + Simd<Real>::kLanes], int count, int self,
                 const Real* numbers) {
    for (int i = 0; i < count; i += S::kLanes) {
      Vec r[Dims];
      Vec one_plus_d2 = S::splat(1);
      for (int axis = 0; axis < Dims; ++axis) {
        r[axis] = y[axis] - S::load(group[axis] + i);
        one_plus_d2 += r[axis] * r[axis];
      }
      const Vec number = S::load(numbers + i);
      const Vec w = S::reciprocal(one_plus_d2);
      const auto other = (number != static_cast<Real>(self)) & (number < static_cast<Real>(count));
      add_weighted(other ? falloff(w, one_plus_d2) : Vec{}, w, r);
    }
  }

private:
  void add_weighted(Vec q, Vec w, const Vec* r) {
    z += q;
    const Vec qw = q * w;
    for (int axis = 0; axis < Dims; ++axis) {
      force[axis] += qw * r[axis];
    }
  }
};

// Collects what acts on targets within the box [lower, upper]. The points of `group`, if it is not
// empty, are left out. Calls list_full() when there is no more room, which must make some.
template <typename Real, int Dims, typename Full>
void walk_tree(const TreeView<Real, Dims>& tree, const Real* lower, const Real* upper,
               PointGroup group, Real theta2, InteractionList<Real, Dims>& list, Full&& list_full) {
  NodeId id = 0;
  while (id < tree.node_count) {
    const Node<Real, Dims>& node = tree.nodes[id];
    // Distance of the cell's centre of mass from the box.
    Real d2 = 0;
    for (int axis = 0; axis < Dims; ++axis) {
      const Real below = lower[axis] - node.center[axis];
      const Real above = node.center[axis] - upper[axis];
      Real outside = below > above ? below : above;
      outside = outside > Real(0) ? outside : Real(0);
      d2 += outside * outside;
    }
    // A cell never stands for the group itself, however far its centre of mass is.
    const bool around = node.begin <= group.begin && node.end >= group.end;
    if (!around && node.side * node.side < theta2 * d2) {
      if (list.cells == list.kCapacity) {
        list_full();
      }
      const int at = list.cells++;
      list.mass[at] = static_cast<Real>(node.end - node.begin);
      for (int axis = 0; axis < Dims; ++axis) {
        list.center[axis][at] = node.center[axis];
      }
      for (int m = 0; m < kMoments<Dims>; ++m) {
        list.moment[m][at] = tree.moments[static_cast<Size>(id) * kMoments<Dims> + m];
      }
      id = node.skip;
    } else if (id == group.node && !node.leaf) {
      id = node.skip;
    } else if (node.leaf) {
      for (PointId j = node.begin; j < node.end; ++j) {
        if (j >= group.begin && j < group.end) {
          continue;
        }
        if (list.points == list.kCapacity) {
          list_full();
        }
        const int at = list.points++;
        for (int axis = 0; axis < Dims; ++axis) {
          list.point[axis][at] = tree.points[static_cast<Size>(j) * Dims + axis];
        }
      }
      id = node.skip;
    } else {
      ++id;
    }
  }
}

// Adds the forces on the group's points to `force`, in the order of the tree's rows, and returns
// the sum of their z.
template <typename Real, int Dims, template <typename> typename Falloff>
double repulsive_group(const TreeView<Real, Dims>& tree, PointGroup group, Real theta2,
                       Real exponent, Real* force) {
  using S = Simd<Real>;
  const Falloff<Real> falloff(exponent);
  constexpr int kLanes = S::kLanes;
  const Size mass = group.end - group.begin;
  // Of more points than a group holds, all in one place, one speaks for all.
  const bool coincident = mass > kGroupPoints;
  const int targets = coincident ? 1 : static_cast<int>(mass);

  Real own[Dims][kGroupPoints + kLanes];
  Real numbers[kGroupPoints + kLanes];
  Real lower[Dims];
  Real upper[Dims];
  for (int axis = 0; axis < Dims; ++axis) {
    lower[axis] = upper[axis] = tree.points[static_cast<Size>(group.begin) * Dims + axis];
  }
  for (int t = 0; t < targets + kLanes; ++t) {
    const Size from = group.begin + (t < targets ? t : 0);
    numbers[t] = static_cast<Real>(t);
    for (int axis = 0; axis < Dims; ++axis) {
      const Real value = tree.points[from * Dims + axis];
      own[axis][t] = value;
      lower[axis] = value < lower[axis] ? value : lower[axis];
      upper[axis] = value > upper[axis] ? value : upper[axis];
    }
  }

  double z[kGroupPoints] = {};
  Real forces[kGroupPoints][Dims] = {};
  InteractionList<Real, Dims> list;
  const auto act = [&](bool with_group) {
    list.pad();
    for (int t = 0; t < targets; ++t) {
      Real y[Dims];
      for (int axis = 0; axis < Dims; ++axis) {
        y[axis] = own[axis][t];
      }
      TargetSums<Real, Dims, Falloff> sums(falloff, y);
      sums.add_cells(list);
      sums.add_points(list);
      if (with_group) {
        sums.add_group(own, targets, t, numbers);
      }
      z[t] += static_cast<double>(S::sum(sums.z));
      for (int axis = 0; axis < Dims; ++axis) {
        forces[t][axis] += S::sum(sums.force[axis]);
      }
    }
    list.cells = 0;
    list.points = 0;
  };

  walk_tree(tree, lower, upper, group, theta2, list, [&] { act(false); });
  act(true);

  double z_sum = 0;
  for (Size i = group.begin; i < group.end; ++i) {
    const int t = coincident ? 0 : static_cast<int>(i - group.begin);
    // Coincident points act on each other with weight 1 and no force.
    z_sum += z[t] + (coincident ? static_cast<double>(mass - 1) : 0.0);
    const Size row = tree.order[i];
    for (int axis = 0; axis < Dims; ++axis) {
      force[row * Dims + axis] = forces[t][axis];
    }
  }
  return z_sum;
}

// Fills `force` with the force of all the tree's points on the position y, and returns its z.
template <typename Real, int Dims, template <typename> typename Falloff>
double repulsive_at(const TreeView<Real, Dims>& tree, const Real* y, Real theta2, Real exponent,
                    Real* force) {
  using S = Simd<Real>;
  const Falloff<Real> falloff(exponent);
  double z = 0;
  InteractionList<Real, Dims> list;
  for (int axis = 0; axis < Dims; ++axis) {
    force[axis] = 0;
  }
  const auto act = [&] {
    list.pad();
    TargetSums<Real, Dims, Falloff> sums(falloff, y);
    sums.add_cells(list);
    sums.add_points(list);
    z += static_cast<double>(S::sum(sums.z));
    for (int axis = 0; axis < Dims; ++axis) {
      force[axis] += S::sum(sums.force[axis]);
    }
    list.cells = 0;
    list.points = 0;
  };
  constexpr PointGroup kNobody{-1, -1, -1};
  walk_tree(tree, y, y, kNobody, theta2, list, act);
  act();
  return z;
}
