// Attractive forces (the paper's Algorithm 2) and the part of the KL divergence that shares their
// pass over P. Figures of the choices below: benchmarks/steps.py and docs/tuning.md.

// Vectors are put together point by point, by instructions that have three ports as long as nothing
// wider than 32 bytes is under way, and two otherwise.
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
    // gathers: they are slow on AMD's CPUs and on Intel's that are guarded against Downfall.
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

// How many edges ahead the edges are fetched.
inline constexpr EdgeId kStreamAhead = 768;

// Fetches what edge e + kStreamAhead has in an array. Once for each cache line.
template <typename T>
inline void fetch_ahead(const T* stream, EdgeId e) {
  constexpr EdgeId kLine = 64 / sizeof(T);
  if (e % kLine == 0) {
    __builtin_prefetch(stream + e + kStreamAhead);
  }
}

template <typename Real, typename Value>
inline typename EdgeSimd<Real>::Vec load_values(const Value* values) {
  if constexpr (sizeof(Value) < sizeof(Real)) {
    return EdgeSimd<Real>::load_halves(values);
  } else {
    return EdgeSimd<Real>::load(values);
  }
}

// A point y seen from the other ends of kLanes of its edges.
template <typename Real, int Dims>
struct EdgeVectors {
  using S = EdgeSimd<Real>;
  typename S::Vec difference[Dims];
  typename S::Vec one_plus_d2 = S::splat(1);

  template <typename Column>
  EdgeVectors(int, const Real* y, const Real* points, const Column* columns) {
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
struct EdgeVectors<Real, kAnyDims> {
  using S = EdgeSimd<Real>;
  const Real* point[S::kLanes];
  typename S::Vec one_plus_d2 = S::splat(1);

  template <typename Column>
  EdgeVectors(int dims, const Real* y, const Real* points, const Column* columns) {
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

// Edges [begin, end) of the near or of the far ones: all of them of one row.
template <typename Real, typename Column, typename Value>
struct EdgeRange {
  const Real* points; // that the columns are counted from
  const Column* columns;
  const Value* values;
  EdgeId begin;
  EdgeId end;
};

// Gives sum.add(p, edges) every vector of the edges of point y. By value: as a local variable, a
// sum stays in registers.
template <typename Real, int Dims, typename Column, typename Value, typename Sum>
inline Sum sum_edges(int dims, const Real* y, EdgeRange<Real, Column, Value> edges, Sum sum) {
  for (EdgeId e = edges.begin; e < edges.end; e += EdgeSimd<Real>::kLanes) {
    fetch_ahead(edges.columns, e);
    fetch_ahead(edges.values, e);
    sum.add(load_values<Real>(edges.values + e),
            EdgeVectors<Real, Dims>(dims, y, edges.points, edges.columns + e));
  }
  return sum;
}

// Rows whose sums are finished together. Adding up a vector's lanes is a chain of instructions that
// wait for each other, and would hold up the next row.
inline constexpr Size kRowsAtOnce = 16;

// Gives the edges of rows [first, last), which are of one block, to their sums.
template <typename Real, int Dims, bool Halves, typename Sum>
inline void sum_rows(int any_dims, const EdgeView<Real>& edges, const Real* points, Size first,
                     Size last, Sum* sums) {
  using Value = std::conditional_t<Halves, std::uint16_t, Real>;
  const int dims = Dims == kAnyDims ? any_dims : Dims;
  const Size window = edge_window(first / kEdgeBlockRows * kEdgeBlockRows, edges.rows);
  const EdgeId* near = edges.near_offsets;
  const EdgeId* far = edges.far_offsets;
  const auto* near_values = static_cast<const Value*>(edges.near_values);
  const auto* far_values = static_cast<const Value*>(edges.far_values);
  for (Size i = first; i < last; ++i) {
    const Real* y = points + i * dims;
    // Near points are in cache already; far ones will be when the near edges are done.
    for (EdgeId e = far[i]; e < far[i + 1]; ++e) {
      __builtin_prefetch(points + static_cast<Size>(edges.far_columns[e]) * dims);
    }
    const EdgeRange near_edges{points + window * dims, edges.near_columns, near_values, near[i],
                               near[i + 1]};
    const EdgeRange far_edges{points, edges.far_columns, far_values, far[i], far[i + 1]};
    const Sum sum = sum_edges<Real, Dims>(dims, y, near_edges, sums[i - first]);
    sums[i - first] = sum_edges<Real, Dims>(dims, y, far_edges, sum);
  }
}

template <typename Real, int Dims>
struct Attraction {
  using Vec = typename EdgeSimd<Real>::Vec;
  Vec along[Dims];

  void start(int, const Real*, Real*) {
    for (Vec& sum : along) {
      sum = Vec{};
    }
  }
  void finish(Real scale, Real* force) const {
    for (int axis = 0; axis < Dims; ++axis) {
      force[axis] = EdgeSimd<Real>::sum(along[axis]) * scale;
    }
  }
  void add(Vec p, const EdgeVectors<Real, Dims>& edges) {
    // Faster than an estimate with a step of Newton's.
    const Vec weight = p / edges.one_plus_d2;
    for (int axis = 0; axis < Dims; ++axis) {
      along[axis] += weight * edges.difference[axis];
    }
  }
};

template <typename Real>
struct Attraction<Real, kAnyDims> {
  using S = EdgeSimd<Real>;
  int dims;
  const Real* y;
  Real* along;

  void start(int any_dims, const Real* point, Real* force) {
    dims = any_dims;
    y = point;
    along = force;
    for (int axis = 0; axis < dims; ++axis) {
      along[axis] = 0;
    }
  }
  void finish(Real scale, Real* force) const {
    for (int axis = 0; axis < dims; ++axis) {
      force[axis] *= scale;
    }
  }
  void add(typename S::Vec p, const EdgeVectors<Real, kAnyDims>& edges) {
    Real weight[S::kLanes];
    S::store(weight, p / edges.one_plus_d2);
    for (int axis = 0; axis < dims; ++axis) {
      Real sum = along[axis];
      for (int lane = 0; lane < S::kLanes; ++lane) {
        sum += weight[lane] * (y[axis] - edges.point[lane][axis]);
      }
      along[axis] = sum;
    }
  }
};

template <typename Real>
struct CrossEntropy {
  using S = EdgeSimd<Real>;
  typename S::Vec total;

  template <int Dims>
  void add(typename S::Vec p, const EdgeVectors<Real, Dims>& edges) {
    total += p * S::log_from_one(edges.one_plus_d2);
  }
};

template <typename Real, int Dims, bool Halves>
void attractive_rows_of(int dims, const EdgeView<Real>& edges, const Real* points, Size begin,
                        Size end, Real* force) {
  const Real scale = Halves ? Real(1) / edges.half_scale : Real(1);
  for (Size first = begin; first < end; first += kRowsAtOnce) {
    const Size last = first + kRowsAtOnce < end ? first + kRowsAtOnce : end;
    Attraction<Real, Dims> sums[kRowsAtOnce];
    for (Size i = first; i < last; ++i) {
      sums[i - first].start(dims, points + i * dims, force + i * dims);
    }
    sum_rows<Real, Dims, Halves>(dims, edges, points, first, last, sums);
    for (Size i = first; i < last; ++i) {
      sums[i - first].finish(scale, force + i * dims);
    }
  }
}

template <typename Real, int Dims, bool Halves>
double cross_entropy_rows_of(int dims, const EdgeView<Real>& edges, const Real* points, Size begin,
                             Size end) {
  double total = 0;
  for (Size first = begin; first < end; first += kRowsAtOnce) {
    const Size last = first + kRowsAtOnce < end ? first + kRowsAtOnce : end;
    CrossEntropy<Real> sums[kRowsAtOnce] = {};
    sum_rows<Real, Dims, Halves>(dims, edges, points, first, last, sums);
    for (Size i = first; i < last; ++i) {
      total += static_cast<double>(EdgeSimd<Real>::sum(sums[i - first].total));
    }
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
