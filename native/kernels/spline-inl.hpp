// Cubic B-splines between points and grid: spreading unit charges (forces/charge_spreader.cpp),
// gathering a potential and its gradient (forces/repulsive_fft.cpp). The grid is [x][y], y
// contiguous; a point touches 4 x 4 nodes.

// Four weights and their slopes per grid step, in the arithmetic of T: one point, or a vector of
// them. `f` in [0, 1): the distance from node 1 of the four.
template <typename T, typename Real>
struct SplineWeights {
  T value[4];
  T slope[4];

  explicit SplineWeights(T f) {
    const T g = Real(1) - f;
    const T f2 = f * f;
    const T g2 = g * g;
    constexpr Real kSixth = Real(1) / Real(6);
    value[0] = g2 * g * kSixth;
    value[1] = (Real(4) + f2 * (Real(3) * f - Real(6))) * kSixth;
    value[2] = (Real(4) + g2 * (Real(3) * g - Real(6))) * kSixth;
    value[3] = f2 * f * kSixth;
    slope[0] = Real(-0.5) * g2;
    slope[1] = f * (Real(1.5) * f - Real(2));
    slope[2] = g * (Real(2) - Real(1.5) * g);
    slope[3] = Real(0.5) * f2;
  }
};

// How a point's own charge reaches it through the grid: with the four weights w, correlation[m] =
// sum_a w_a w_{a+m} and its derivative. Both sums are polynomials in t = f (1 - f).
template <typename T, typename Real>
struct SelfWeights {
  T correlation[4];
  T slope[4]; // per grid step

  explicit SelfWeights(T f) {
    constexpr Real k = Real(1) / Real(36);
    constexpr Real kConstant[4] = {18 * k, 8 * k, 1 * k, 0};
    constexpr Real kSquare[4] = {-18 * k, 12 * k, -3 * k, 0};
    constexpr Real kCube[4] = {-20 * k, 15 * k, -6 * k, 1 * k};
    const T t = f * (Real(1) - f);
    const T t2 = t * t;
    const T turned = (Real(1) - Real(2) * f) * t;
    for (int m = 0; m < 4; ++m) {
      correlation[m] = kConstant[m] + t2 * (kSquare[m] + t * kCube[m]);
      slope[m] = turned * (Real(2) * kSquare[m] + (Real(3) * t) * kCube[m]);
    }
  }
};

// Four neighbouring nodes of a column.
template <typename Real>
struct Nodes {
  typedef Real Four __attribute__((vector_size(4 * sizeof(Real))));
  static Four load(const Real* from) {
    Four v;
    __builtin_memcpy(&v, from, sizeof v);
    return v;
  }
  static void store(Real* to, Four v) { __builtin_memcpy(to, &v, sizeof v); }
  static Real sum(Four v) { return (v[0] + v[2]) + (v[1] + v[3]); }
};

// Where a point lies in the grid: the first of its 4 x 4 nodes, and on each axis how far it lies
// beyond the second.
template <typename Real, int Dims>
struct GridPlace {
  Size node; // an offset into the grid
  Real fraction[2] = {};

  GridPlace(const GridGeometry<Real>& geometry, const Real* point) {
    const Size x = first_node(geometry, point, 0) - geometry.first_column;
    node = x * geometry.stride + (Dims == 2 ? first_node(geometry, point, Dims - 1) : 0);
  }

private:
  Size first_node(const GridGeometry<Real>& geometry, const Real* point, int axis) {
    const Real at = (point[axis] - geometry.lower[axis]) * geometry.inverse_step;
    const auto first = static_cast<Size>(static_cast<std::int32_t>(at));
    fraction[axis] = at - static_cast<Real>(first);
    return first;
  }
};

template <typename Real, int Dims>
void spread_points(const GridGeometry<Real>& geometry, const Real* points, const PointId* ids,
                   Size count, Real* grid) {
  using N = Nodes<Real>;
  for (Size i = 0; i < count; ++i) {
    const GridPlace<Real, Dims> place(geometry, points + static_cast<Size>(ids[i]) * Dims);
    const SplineWeights<Real, Real> wx(place.fraction[0]);
    const SplineWeights<Real, Real> wy(place.fraction[1]);
    const auto along_y = N::load(wy.value);
    Real* at = grid + place.node;
    for (int column = 0; column < 4; ++column) {
      N::store(at, N::load(at) + wx.value[column] * along_y);
      at += geometry.stride;
    }
  }
}

// The force is a multiple of the potential's gradient at each point; returns the sum of the
// potential. Both without the point's own part: on a grid a charge acts on itself, and in sparse
// maps that is most of the error.
//
// Done for a vector of points at a time; only the sums along x go point by point, as the nodes lie
// in memory (docs/tuning.md).
template <typename Real, int Dims>
double gather_points(const GridGeometry<Real>& geometry, const Real* points, Size count,
                     const Real* grid, Real* force) {
  using S = Simd<Real>;
  using N = Nodes<Real>;
  using Vec = typename S::Vec;
  constexpr int kLanes = S::kLanes;
  double potential = 0;
  for (Size first = 0; first < count; first += kLanes) {
    const Size valid = count - first < kLanes ? count - first : kLanes;
    Size nodes[kLanes];
    alignas(kVectorBytes) Real fractions[2][kLanes];
    for (int i = 0; i < kLanes; ++i) {
      const Size point = first + (i < valid ? i : 0);
      const GridPlace<Real, Dims> place(geometry, points + point * Dims);
      nodes[i] = place.node;
      fractions[0][i] = place.fraction[0];
      fractions[1][i] = place.fraction[1];
    }
    const Vec fx = S::load(fractions[0]);
    const Vec fy = S::load(fractions[1]);

    const SplineWeights<Vec, Real> wx(fx);
    alignas(kVectorBytes) Real value_x[4][kLanes];
    alignas(kVectorBytes) Real slope_x[4][kLanes];
    for (int column = 0; column < 4; ++column) {
      S::store(value_x[column], wx.value[column]);
      S::store(slope_x[column], wx.slope[column]);
    }
    // Of each point, the values and the slopes of its four rows.
    constexpr int kSums = kLanes > 8 ? kLanes : 8;
    alignas(kVectorBytes) Real sums[kLanes][kSums] = {};
    for (int i = 0; i < kLanes; ++i) {
      const Real* at = grid + nodes[i];
      typename N::Four values = {};
      typename N::Four slopes = {};
      for (int column = 0; column < 4; ++column) {
        const auto four = N::load(at);
        values += value_x[column][i] * four;
        slopes += slope_x[column][i] * four;
        at += geometry.stride;
      }
      N::store(sums[i], values);
      N::store(sums[i] + 4, slopes);
    }
    Vec rows[kSums]; // the same, a lane a point
    for (int from = 0; from < kSums; from += kLanes) {
      for (int i = 0; i < kLanes; ++i) {
        rows[from + i] = S::load(sums[i] + from);
      }
      transpose<Real>(rows + from);
    }

    const SplineWeights<Vec, Real> wy(fy);
    const SelfWeights<Vec, Real> self_x(fx);
    const SelfWeights<Vec, Real> self_y(fy);
    Vec value = {};
    Vec gradient[2] = {};
    for (int row = 0; row < 4; ++row) {
      value += rows[row] * wy.value[row];
      gradient[0] += rows[4 + row] * wy.value[row];
      gradient[1] += rows[row] * wy.slope[row];
      Vec own = {};
      Vec own_slope = {};
      for (int m = 0; m < 4; ++m) {
        own += self_x.correlation[m] * geometry.self[row][m];
        own_slope += self_x.slope[m] * geometry.self[row][m];
      }
      value -= own * self_y.correlation[row];
      // The gradient moves the point but not its charge: half of the derivative.
      gradient[0] -= Real(0.5) * own_slope * self_y.correlation[row];
      gradient[1] -= Real(0.5) * own * self_y.slope[row];
    }

    alignas(kVectorBytes) Real values[kLanes];
    alignas(kVectorBytes) Real forces[2][kLanes];
    S::store(values, value);
    S::store(forces[0], gradient[0] * geometry.force_scale);
    S::store(forces[1], gradient[1] * geometry.force_scale);
    for (Size i = 0; i < valid; ++i) {
      potential += static_cast<double>(values[i]);
      for (int axis = 0; axis < Dims; ++axis) {
        force[(first + i) * Dims + axis] = forces[axis][i];
      }
    }
  }
  return potential;
}
