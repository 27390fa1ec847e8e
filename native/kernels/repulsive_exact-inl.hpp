// Repulsive forces of a range of points on one position, every pair.

template <typename Real, int Dims, template <typename> typename Falloff>
double repulsive_range(int, const Real* const* axes, Size begin, Size end, const Real* y,
                       Real exponent, double* force) {
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

// The same for any number of axes. A block of points at a time: first its weights, with the
// squared distances of a few vectors in registers, then the force axis by axis. What the last
// vector reads beyond the end gets no weight.
template <typename Real, template <typename> typename Falloff>
double any_repulsive_range(int dims, const Real* const* axes, Size begin, Size end, const Real* y,
                           Real exponent, double* force) {
  using S = Simd<Real>;
  using Vec = typename S::Vec;
  const Falloff<Real> falloff(exponent);
  // Vectors in flight: their additions do not wait for each other.
  constexpr int kVectors = 4;
  constexpr Size kStep = kVectors * S::kLanes;
  // The weights and ten axes of a block fit the first cache in float.
  constexpr Size kBlock = 1024;
  Real weights[kBlock];
  typename S::IntVec lanes;
  for (int lane = 0; lane < S::kLanes; ++lane) {
    lanes[lane] = lane;
  }

  double z = 0;
  for (Size first = begin; first < end; first += kBlock) {
    const Size count = end - first < kBlock ? end - first : kBlock;
    Vec z_lanes = {};
    const auto weigh = [&]<int Vectors>(std::integral_constant<int, Vectors>, Size at) {
      Vec one_plus_d2[Vectors];
      for (int v = 0; v < Vectors; ++v) {
        one_plus_d2[v] = S::splat(1);
      }
      for (int axis = 0; axis < dims; ++axis) {
        for (int v = 0; v < Vectors; ++v) {
          const Vec difference = y[axis] - S::load(axes[axis] + first + at + v * S::kLanes);
          one_plus_d2[v] += difference * difference;
        }
      }
      for (int v = 0; v < Vectors; ++v) {
        const Size j = at + v * S::kLanes;
        const Vec w = Real(1) / one_plus_d2[v];
        const Vec q =
            lanes < static_cast<typename S::Int>(count - j) ? falloff(w, one_plus_d2[v]) : Vec{};
        z_lanes += q;
        S::store(weights + j, q * w);
      }
    };
    Size j = 0;
    for (; j + kStep <= count; j += kStep) {
      weigh(std::integral_constant<int, kVectors>{}, j);
    }
    for (; j < count; j += S::kLanes) {
      weigh(std::integral_constant<int, 1>{}, j);
    }
    z += static_cast<double>(S::sum(z_lanes));

    for (int axis = 0; axis < dims; ++axis) {
      Vec sums[kVectors] = {};
      const auto add = [&](int v, Size at) {
        sums[v] += S::load(weights + at) * (y[axis] - S::load(axes[axis] + first + at));
      };
      for (j = 0; j + kStep <= count; j += kStep) {
        for (int v = 0; v < kVectors; ++v) {
          add(v, j + v * S::kLanes);
        }
      }
      for (; j < count; j += S::kLanes) {
        add(0, j);
      }
      force[axis] += static_cast<double>(S::sum((sums[0] + sums[1]) + (sums[2] + sums[3])));
    }
  }
  return z;
}
