// Repulsive forces of a range of points on one position, every pair.

template <typename Real, int Dims, template <typename> typename Falloff>
double repulsive_range(const Real* const* axes, Size begin, Size end, const Real* y, Real exponent,
                       double* force) {
  using S = Simd<Real>;
  using Vec = typename S::Vec;
  const Falloff<Real> falloff(exponent);
  // Vectors of Real add up at most this many points before they go into the double sums: keeps the
  // rounding of a sum over millions of points at that of a sum over a few hundred.
  constexpr Size kBlock = 256 * S::kLanes;

  double z = 0;
  Size j = begin;
  while (end - j >= S::kLanes) {
    const Size block_end = end - j > kBlock ? j + kBlock : end;
    Vec z_lanes = {};
    Vec force_lanes[Dims] = {};
    for (; block_end - j >= S::kLanes; j += S::kLanes) {
      Vec difference[Dims];
      Vec one_plus_d2 = S::splat(1);
      for (int axis = 0; axis < Dims; ++axis) {
        difference[axis] = y[axis] - S::load(axes[axis] + j);
        one_plus_d2 += difference[axis] * difference[axis];
      }
      const Vec w = Real(1) / one_plus_d2;
      const Vec q = falloff(w, one_plus_d2);
      z_lanes += q;
      for (int axis = 0; axis < Dims; ++axis) {
        force_lanes[axis] += q * w * difference[axis];
      }
    }
    z += static_cast<double>(S::sum(z_lanes));
    for (int axis = 0; axis < Dims; ++axis) {
      force[axis] += static_cast<double>(S::sum(force_lanes[axis]));
    }
  }
  for (; j < end; ++j) {
    Real difference[Dims];
    Real one_plus_d2 = 1;
    for (int axis = 0; axis < Dims; ++axis) {
      difference[axis] = y[axis] - axes[axis][j];
      one_plus_d2 += difference[axis] * difference[axis];
    }
    const Real w = Real(1) / one_plus_d2;
    const Real q = falloff(w, one_plus_d2);
    z += static_cast<double>(q);
    for (int axis = 0; axis < Dims; ++axis) {
      force[axis] += static_cast<double>(q * w * difference[axis]);
    }
  }
  return z;
}
