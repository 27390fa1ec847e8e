// Attractive forces (the paper's Algorithm 2) and the part of the KL divergence that shares their
// pass over P.

// Vectors are put together point by point, by instructions that have three ports as long as nothing
// wider than 32 bytes is under way, and two otherwise. Digits, one thread of an Emerald Rapids: 75
// us a pass, 84 with 64 bytes.
inline constexpr int kEdgeVectorBytes = kVectorBytes < 32 ? kVectorBytes : 32;
template <typename Real>
using EdgeSimd = Simd<Real, kEdgeVectorBytes>;

// The positions of kLanes points, one vector per axis. `columns` are counted from `points`.
template <typename Real, int Dims, typename Column>
inline void load_points(const Real* points, const Column* columns,
                        typename EdgeSimd<Real>::Vec* to) {
  using S = EdgeSimd<Real>;
#if defined(__AVX2__)
  if constexpr (sizeof(Real) == 4 && Dims == 2) {
    // A point is one 64-bit element, which a broadcast puts into every place without a shuffle. No
    // gathers: vgatherdpd would win 8 % on Emerald Rapids, but is slow on AMD's CPUs and on Intel's
    // that are guarded against Downfall.
    const auto* pairs = reinterpret_cast<const double*>(points);
    const auto four = [&](Size a, Size b, Size c, Size d) {
      __m256d v = _mm256_castpd128_pd256(_mm_load_sd(pairs + a));
      v = _mm256_blend_pd(v, _mm256_broadcast_sd(pairs + b), 1 << 1);
      v = _mm256_blend_pd(v, _mm256_broadcast_sd(pairs + c), 1 << 2);
      v = _mm256_blend_pd(v, _mm256_broadcast_sd(pairs + d), 1 << 3);
      return _mm256_castpd_ps(v);
    };
    const __m256 low = four(columns[0], columns[1], columns[4], columns[5]);
    const __m256 high = four(columns[2], columns[3], columns[6], columns[7]);
    to[0] = reinterpret_cast<typename S::Vec>(_mm256_shuffle_ps(low, high, 0x88));
    to[1] = reinterpret_cast<typename S::Vec>(_mm256_shuffle_ps(low, high, 0xDD));
    return;
  } else if constexpr (sizeof(Real) == 8 && Dims == 2) {
    const auto two = [&](Size a, Size b) {
      return _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(points + a * 2)),
                                  _mm_loadu_pd(points + b * 2), 1);
    };
    const __m256d low = two(columns[0], columns[2]);
    const __m256d high = two(columns[1], columns[3]);
    to[0] = reinterpret_cast<typename S::Vec>(_mm256_unpacklo_pd(low, high));
    to[1] = reinterpret_cast<typename S::Vec>(_mm256_unpackhi_pd(low, high));
    return;
  }
#endif
  Real values[Dims][S::kLanes];
  for (int lane = 0; lane < S::kLanes; ++lane) {
    const Real* point = points + static_cast<Size>(columns[lane]) * Dims;
    for (int axis = 0; axis < Dims; ++axis) {
      values[axis][lane] = point[axis];
    }
  }
  for (int axis = 0; axis < Dims; ++axis) {
    to[axis] = S::load(values[axis]);
  }
}

// How many edges ahead the positions behind far edges are fetched. Near ones are in cache already.
inline constexpr EdgeId kPrefetchDistance = 32;

// How many edges ahead the edges themselves are fetched: MNIST-70k, 2 threads, 2.8 ms instead of
// 3.2 for a pass, and flat up to 4096.
inline constexpr EdgeId kStreamAhead = 768;

template <typename Real, bool Halves>
inline typename EdgeSimd<Real>::Vec load_values(const void* values, EdgeId edge) {
  if constexpr (Halves) {
    return EdgeSimd<Real>::load_halves(static_cast<const std::uint16_t*>(values) + edge);
  } else {
    return EdgeSimd<Real>::load(static_cast<const Real*>(values) + edge);
  }
}

// A point y seen from the other ends of kLanes of its edges.
template <typename Real, int Dims>
struct Ends {
  using S = EdgeSimd<Real>;
  typename S::Vec difference[Dims];
  typename S::Vec one_plus_d2 = S::splat(1);

  template <typename Column>
  Ends(int, const Real* y, const Real* points, const Column* columns) {
    load_points<Real, Dims>(points, columns, difference);
    for (int axis = 0; axis < Dims; ++axis) {
      difference[axis] = y[axis] - difference[axis];
      one_plus_d2 += difference[axis] * difference[axis];
    }
  }
};

// The differences of any number of axes fill no fixed number of vectors: who needs them takes them
// from the points.
template <typename Real>
struct Ends<Real, kAnyDims> {
  using S = EdgeSimd<Real>;
  const Real* point[S::kLanes];
  typename S::Vec one_plus_d2 = S::splat(1);

  template <typename Column>
  Ends(int dims, const Real* y, const Real* points, const Column* columns) {
    for (int lane = 0; lane < S::kLanes; ++lane) {
      point[lane] = points + static_cast<Size>(columns[lane]) * dims;
      Real d2 = 0;
      for (int axis = 0; axis < dims; ++axis) {
        const Real difference = y[axis] - point[lane][axis];
        d2 += difference * difference;
      }
      one_plus_d2[lane] += d2;
    }
  }
};

// Calls visit(p, ends) for every vector of edges of row i.
template <typename Real, int Dims, bool Halves, typename Visit>
inline void visit_row(int any_dims, const EdgeView<Real>& edges, const Real* points, Size i,
                      Size window, Visit&& visit) {
  using S = EdgeSimd<Real>;
  const int dims = Dims == kAnyDims ? any_dims : Dims;
  const Real* y = points + i * dims;
  const auto visit_edges = [&](const Real* base, const auto* columns, const void* values,
                               EdgeId e) {
    visit(load_values<Real, Halves>(values, e), Ends<Real, Dims>(dims, y, base, columns + e));
  };
  constexpr EdgeId kValueBytes = Halves ? 2 : sizeof(Real);
  for (EdgeId e = edges.near_offsets[i]; e < edges.near_offsets[i + 1]; e += S::kLanes) {
    __builtin_prefetch(edges.near_columns + e + kStreamAhead);
    __builtin_prefetch(static_cast<const char*>(edges.near_values) +
                       (e + kStreamAhead) * kValueBytes);
    visit_edges(points + window * dims, edges.near_columns, edges.near_values, e);
  }
  const EdgeId last = edges.far_offsets[edges.rows];
  for (EdgeId e = edges.far_offsets[i]; e < edges.far_offsets[i + 1]; e += S::kLanes) {
    if (e + kPrefetchDistance + S::kLanes <= last) {
      for (int lane = 0; lane < S::kLanes; ++lane) {
        const Size column = edges.far_columns[e + kPrefetchDistance + lane];
        __builtin_prefetch(points + column * dims);
      }
    }
    visit_edges(points, edges.far_columns, edges.far_values, e);
  }
}

template <typename Real, int Dims, bool Halves>
void attractive_rows_of(int dims, const EdgeView<Real>& edges, const Real* points, Size begin,
                        Size end, Real* force) {
  using S = EdgeSimd<Real>;
  using Vec = typename S::Vec;
  const Size window = edge_window(begin / kEdgeBlockRows * kEdgeBlockRows, edges.rows);
  const Real scale = Halves ? Real(1) / edges.half_scale : Real(1);
  for (Size i = begin; i < end; ++i) {
    if constexpr (Dims == kAnyDims) {
      const Real* y = points + i * dims;
      Real* sums = force + i * dims;
      for (int axis = 0; axis < dims; ++axis) {
        sums[axis] = 0;
      }
      visit_row<Real, Dims, Halves>(dims, edges, points, i, window,
                                    [&](Vec p, const Ends<Real, Dims>& ends) {
                                      Real weight[S::kLanes];
                                      S::store(weight, p / ends.one_plus_d2 * scale);
                                      for (int axis = 0; axis < dims; ++axis) {
                                        Real sum = sums[axis];
                                        for (int lane = 0; lane < S::kLanes; ++lane) {
                                          sum += weight[lane] * (y[axis] - ends.point[lane][axis]);
                                        }
                                        sums[axis] = sum;
                                      }
                                    });
    } else {
      Vec sums[Dims] = {};
      visit_row<Real, Dims, Halves>(dims, edges, points, i, window,
                                    [&](Vec p, const Ends<Real, Dims>& ends) {
                                      // Faster than an estimate with a step of Newton's, 79 us a
                                      // pass of digits instead of 89.
                                      const Vec weight = p / ends.one_plus_d2;
                                      for (int axis = 0; axis < Dims; ++axis) {
                                        sums[axis] += weight * ends.difference[axis];
                                      }
                                    });
      for (int axis = 0; axis < Dims; ++axis) {
        force[i * Dims + axis] = S::sum(sums[axis]) * scale;
      }
    }
  }
}

template <typename Real, int Dims, bool Halves>
double cross_entropy_rows_of(int dims, const EdgeView<Real>& edges, const Real* points, Size begin,
                             Size end) {
  using S = EdgeSimd<Real>;
  using Vec = typename S::Vec;
  const Size window = edge_window(begin / kEdgeBlockRows * kEdgeBlockRows, edges.rows);
  double total = 0;
  for (Size i = begin; i < end; ++i) {
    Vec row = {};
    visit_row<Real, Dims, Halves>(
        dims, edges, points, i, window,
        [&](Vec p, const Ends<Real, Dims>& ends) { row += p * S::log_from_one(ends.one_plus_d2); });
    total += static_cast<double>(S::sum(row));
  }
  return Halves ? total / static_cast<double>(edges.half_scale) : total;
}

template <typename Real, int Dims>
void attractive_rows(int dims, const EdgeView<Real>& edges, const Real* points, Size begin,
                     Size end, Real* force) {
  if constexpr (EdgeSimd<Real>::kHalves) {
    if (edges.half_scale != Real(0)) {
      attractive_rows_of<Real, Dims, true>(dims, edges, points, begin, end, force);
      return;
    }
  }
  attractive_rows_of<Real, Dims, false>(dims, edges, points, begin, end, force);
}

template <typename Real, int Dims>
double cross_entropy_rows(int dims, const EdgeView<Real>& edges, const Real* points, Size begin,
                          Size end) {
  if constexpr (EdgeSimd<Real>::kHalves) {
    if (edges.half_scale != Real(0)) {
      return cross_entropy_rows_of<Real, Dims, true>(dims, edges, points, begin, end);
    }
  }
  return cross_entropy_rows_of<Real, Dims, false>(dims, edges, points, begin, end);
}

template <typename Real>
void to_half(const Real* values, Size count, Real scale, std::uint16_t* halves) {
  using S = EdgeSimd<Real>;
  for (Size i = 0; i < count; i += S::kLanes) {
    S::store_halves(halves + i, S::load(values + i) * scale);
  }
}

template <typename Real>
constexpr auto half_converter() -> decltype(&to_half<Real>) {
  return EdgeSimd<Real>::kHalves ? &to_half<Real> : nullptr;
}
