// Cubic B-splines between points and grid (forces/repulsive_fft.cpp): spreading unit charges,
// gathering a potential and its gradient. The grid is [x][y], y contiguous; a point touches 4 x 4
// nodes.

template <typename Real>
struct SplineWeights {
  typedef Real Four __attribute__((vector_size(4 * sizeof(Real))));
  Four value;
  Four slope; // per grid step

  // `f` in [0, 1): the distance from node 1 of the four.
  explicit SplineWeights(Real f) {
    const Real g = Real(1) - f;
    const Real f2 = f * f;
    const Real g2 = g * g;
    constexpr Real kSixth = Real(1) / Real(6);
    value = Four{g2 * g * kSixth, (Real(4) + f2 * (Real(3) * f - Real(6))) * kSixth,
                 (Real(4) + g2 * (Real(3) * g - Real(6))) * kSixth, f2 * f * kSixth};
    slope = Four{Real(-0.5) * g2, f * (Real(1.5) * f - Real(2)), g * (Real(2) - Real(1.5) * g),
                 Real(0.5) * f2};
  }
};

// How a point's own charge reaches it through the grid: with the four weights w, correlation[m] =
// sum_a w_a w_{a+m} and its derivative. Both sums are polynomials in t = f (1 - f).
template <typename Real>
struct SelfWeights {
  using Four = typename SplineWeights<Real>::Four;
  Four correlation;
  Four slope; // per grid step

  explicit SelfWeights(Real f) {
    constexpr Real k = Real(1) / Real(36);
    const Four constant = {18 * k, 8 * k, 1 * k, 0};
    const Four square = {-18 * k, 12 * k, -3 * k, 0};
    const Four cube = {-20 * k, 15 * k, -6 * k, 1 * k};
    const Real t = f * (Real(1) - f);
    correlation = constant + (t * t) * (square + t * cube);
    slope = ((Real(1) - Real(2) * f) * t) * (Real(2) * square + (Real(3) * t) * cube);
  }
};

template <typename Real>
inline typename SplineWeights<Real>::Four load_four(const Real* from) {
  typename SplineWeights<Real>::Four v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

template <typename Real>
inline Real sum_four(typename SplineWeights<Real>::Four v) {
  return (v[0] + v[2]) + (v[1] + v[3]);
}

// Where a point lies in the grid: the first of its 4 x 4 nodes, and on each axis how far it lies
// beyond the second.
template <typename Real, int Dims>
struct GridPlace {
  Size node; // an offset into the grid
  Real fraction[2] = {};

  GridPlace(const GridGeometry<Real>& geometry, const Real* point) {
    const Size x = first_node(geometry, point, 0);
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
  for (Size i = 0; i < count; ++i) {
    const Real* point = points + static_cast<Size>(ids[i]) * Dims;
    const GridPlace<Real, Dims> place(geometry, point);
    const SplineWeights<Real> wx(place.fraction[0]);
    const SplineWeights<Real> wy(place.fraction[1]);
    Real* at = grid + place.node;
    for (int column = 0; column < 4; ++column) {
      const auto sum = load_four(at) + wx.value[column] * wy.value;
      __builtin_memcpy(at, &sum, sizeof sum);
      at += geometry.stride;
    }
  }
}

// The force is a multiple of the potential's gradient at each point; returns the sum of the
// potential. Both without the point's own part: on a grid a charge acts on itself, and in sparse
// maps that is most of the error.
template <typename Real, int Dims>
double gather_points(const GridGeometry<Real>& geometry, const Real* points, const PointId* ids,
                     Size count, const Real* grid, Real* force) {
  using Four = typename SplineWeights<Real>::Four;
  double potential = 0;
  const Real scale = geometry.force_scale;
  for (Size i = 0; i < count; ++i) {
    const Size id = ids[i];
    const Real* point = points + id * Dims;
    const GridPlace<Real, Dims> place(geometry, point);
    const SplineWeights<Real> wx(place.fraction[0]);
    const SplineWeights<Real> wy(place.fraction[1]);
    const Real* at = grid + place.node;
    Four values = {};
    Four slopes = {};
    for (int column = 0; column < 4; ++column) {
      const Four nodes = load_four(at);
      values += wx.value[column] * nodes;
      slopes += wx.slope[column] * nodes;
      at += geometry.stride;
    }
    const SelfWeights<Real> self_x(place.fraction[0]);
    const SelfWeights<Real> self_y(place.fraction[1]);
    Four own = {};
    Four own_slope = {};
    for (int n = 0; n < 4; ++n) {
      const Four column = load_four(geometry.self[n]);
      own += self_y.correlation[n] * column;
      own_slope += self_y.slope[n] * column;
    }
    potential += static_cast<double>(sum_four<Real>(values * wy.value - own * self_x.correlation));
    // The gradient moves the point but not its charge: half of the derivative.
    force[id * Dims] = scale * sum_four<Real>(slopes * wy.value - Real(0.5) * own * self_x.slope);
    if constexpr (Dims == 2) {
      force[id * Dims + 1] =
          scale * sum_four<Real>(values * wy.slope - Real(0.5) * own_slope * self_x.correlation);
    }
  }
  return potential;
}
