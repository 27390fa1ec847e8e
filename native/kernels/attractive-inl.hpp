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
[[gnu::always_inline]] inline Sum sum_edges(int dims, const Real* y,
                                            EdgeRange<Real, Column, Value> edges, Sum sum) {
  for (EdgeId e = edges.begin; e < edges.end; e += EdgeSimd<Real>::kLanes) {
    fetch_ahead(edges.columns, e);
    fetch_ahead(edges.values, e);
    sum.add(load_values<Real>(edges.values + e),
            EdgeVectors<Real, Dims>(dims, y, edges.points, edges.columns + e));
  }
  return sum;
}

// Near points are in cache already; far ones have to be fetched.
template <typename Real>
inline void fetch_points(int dims, const Real* points, const PointId* columns, EdgeId begin,
                         EdgeId end) {
  for (EdgeId e = begin; e < end; ++e) {
    __builtin_prefetch(points + static_cast<Size>(columns[e]) * dims);
  }
}

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
    // They will be there when the near edges are done.
    fetch_points(dims, points, edges.far_columns, far[i], far[i + 1]);
    const EdgeRange near_edges{points + window * dims, edges.near_columns, near_values, near[i],
                               near[i + 1]};
    const EdgeRange far_edges{points, edges.far_columns, far_values, far[i], far[i + 1]};
    const Sum sum = sum_edges<Real, Dims>(dims, y, near_edges, sums[i - first]);
    sums[i - first] = sum_edges<Real, Dims>(dims, y, far_edges, sum);
  }
}

// A row of more edges than this is summed in parts of as many, which are added up in double. A
// float has 24 bits: an edge that is added to the sum of 4096 others like it keeps the upper 12 of
// its own, and one that is added to millions would keep two or three.
inline constexpr EdgeId kPartEdges = 4096;
static_assert(kPartEdges % EdgeSimd<float>::kLanes == 0);

// Adds what a long row's edges make of `nothing`, a sum of no edges, to totals.
template <typename Real, int Dims, typename Column, typename Value, typename Sum>
inline void sum_parts(int dims, const Real* y, const EdgeRange<Real, Column, Value>& edges,
                      const Sum& nothing, double* totals) {
  for (EdgeId begin = edges.begin; begin < edges.end; begin += kPartEdges) {
    EdgeRange<Real, Column, Value> part = edges;
    part.begin = begin;
    part.end = edges.end - begin < kPartEdges ? edges.end : begin + kPartEdges;
    if constexpr (sizeof(Column) == sizeof(PointId)) {
      fetch_points(dims, part.points, part.columns, part.begin, part.end);
    }
    const Sum sum = sum_edges<Real, Dims>(dims, y, part, nothing);
    for (int k = 0; k < Sum::kSums; ++k) {
      totals[k] += static_cast<double>(EdgeSimd<Real>::sum(sum.lanes[k]));
    }
  }
}

// Row i, which is long: Sum::kSums totals. Not inlined, so that the compiler treats the loop over
// other rows as if there were none.
template <typename Real, int Dims, bool Halves, typename Sum>
[[gnu::noinline]] void sum_long_row(int any_dims, const EdgeView<Real>& edges, const Real* points,
                                    Size i, const Sum& nothing, double* totals) {
  using Value = std::conditional_t<Halves, std::uint16_t, Real>;
  const int dims = Dims == kAnyDims ? any_dims : Dims;
  const Size window = edge_window(i / kEdgeBlockRows * kEdgeBlockRows, edges.rows);
  const EdgeRange near_edges{points + window * dims, edges.near_columns,
                             static_cast<const Value*>(edges.near_values), edges.near_offsets[i],
                             edges.near_offsets[i + 1]};
  const EdgeRange far_edges{points, edges.far_columns, static_cast<const Value*>(edges.far_values),
                            edges.far_offsets[i], edges.far_offsets[i + 1]};
  for (int k = 0; k < Sum::kSums; ++k) {
    totals[k] = 0;
  }
  sum_parts<Real, Dims>(dims, points + i * dims, near_edges, nothing, totals);
  sum_parts<Real, Dims>(dims, points + i * dims, far_edges, nothing, totals);
}

// Rows whose sums are finished together. Adding up a vector's lanes is a chain of instructions that
// wait for each other, and would hold up the next row.
inline constexpr Size kRowsAtOnce = 16;

// The first of rows [begin, end) that is long, or end.
template <typename Real>
inline Size next_long_row(const EdgeView<Real>& edges, Size begin, Size end) {
  const auto edges_before = [&edges](Size row) {
    return edges.near_offsets[row] + edges.far_offsets[row];
  };
  EdgeId before = edges_before(begin);
  for (Size first = begin; first < end; first += kRowsAtOnce) {
    const Size last = first + kRowsAtOnce < end ? first + kRowsAtOnce : end;
    const EdgeId after = edges_before(last);
    // Only rows that are long together can have one among them.
    for (Size i = after - before > kPartEdges ? first : last; i < last; ++i) {
      if (edges_before(i + 1) - edges_before(i) > kPartEdges) {
        return i;
      }
    }
    before = after;
  }
  return end;
}

// Calls rows(first, last) and long_row(i), in the order of the rows.
template <typename Real, typename OfRows, typename OfLongRow>
inline void for_rows(const EdgeView<Real>& edges, Size begin, Size end, const OfRows& rows,
                     const OfLongRow& long_row) {
  while (begin < end) {
    const Size next = next_long_row(edges, begin, end);
    if (begin < next) {
      rows(begin, next);
    }
    if (next < end) {
      long_row(next);
    }
    begin = next + 1;
  }
}

template <typename Real, int Dims>
struct Attraction {
  using Vec = typename EdgeSimd<Real>::Vec;
  static constexpr int kSums = Dims;
  Vec lanes[kSums];

  void start(int, const Real*, Real*) {
    for (Vec& sum : lanes) {
      sum = Vec{};
    }
  }
  void finish(Real scale, Real* force) const {
    for (int axis = 0; axis < Dims; ++axis) {
      force[axis] = EdgeSimd<Real>::sum(lanes[axis]) * scale;
    }
  }
  void add(Vec p, const EdgeVectors<Real, Dims>& edges) {
    // Faster than an estimate with a step of Newton's.
    const Vec weight = p / edges.one_plus_d2;
    for (int axis = 0; axis < Dims; ++axis) {
      lanes[axis] += weight * edges.difference[axis];
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

// Along a few of any number of axes: the sums of a long row's parts need room of their own.
template <typename Real>
struct AttractionAlongAxes {
  using Vec = typename EdgeSimd<Real>::Vec;
  static constexpr int kSums = 8;
  Vec lanes[kSums];
  const Real* y;
  int first;
  int count;

  void add(Vec p, const EdgeVectors<Real, kAnyDims>& edges) {
    const Vec weight = p / edges.one_plus_d2;
    for (int k = 0; k < count; ++k) {
      Vec difference;
      for (int lane = 0; lane < EdgeSimd<Real>::kLanes; ++lane) {
        difference[lane] = y[first + k] - edges.point[lane][first + k];
      }
      lanes[k] += weight * difference;
    }
  }
};

template <typename Real>
struct CrossEntropy {
  using S = EdgeSimd<Real>;
  static constexpr int kSums = 1;
  typename S::Vec lanes[kSums];

  template <int Dims>
  void add(typename S::Vec p, const EdgeVectors<Real, Dims>& edges) {
    lanes[0] += p * S::log_from_one(edges.one_plus_d2);
  }
};

template <typename Real, int Dims, bool Halves>
[[gnu::noinline]] void attract_rows(int dims, const EdgeView<Real>& edges, const Real* points,
                                    Size begin, Size end, Real scale, Real* force) {
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
[[gnu::noinline]] void attract_long_row(int dims, const EdgeView<Real>& edges, const Real* points,
                                        Size i, Real scale, Real* force) {
  using Sum =
      std::conditional_t<Dims == kAnyDims, AttractionAlongAxes<Real>, Attraction<Real, Dims>>;
  for (int first = 0; first < dims; first += Sum::kSums) {
    const int count = dims - first < Sum::kSums ? dims - first : Sum::kSums;
    Sum nothing = {};
    if constexpr (Dims == kAnyDims) {
      nothing.y = points + i * dims;
      nothing.first = first;
      nothing.count = count;
    }
    double totals[Sum::kSums];
    sum_long_row<Real, Dims, Halves>(dims, edges, points, i, nothing, totals);
    for (int k = 0; k < count; ++k) {
      force[i * dims + first + k] = static_cast<Real>(totals[k] * static_cast<double>(scale));
    }
  }
}

template <typename Real, int Dims, bool Halves>
void attractive_rows_of(int dims, const EdgeView<Real>& edges, const Real* points, Size begin,
                        Size end, Real* force) {
  const Real scale = Halves ? Real(1) / edges.half_scale : Real(1);
  for_rows(
      edges, begin, end,
      [&](Size first, Size last) {
        attract_rows<Real, Dims, Halves>(dims, edges, points, first, last, scale, force);
      },
      [&](Size i) { attract_long_row<Real, Dims, Halves>(dims, edges, points, i, scale, force); });
}

// Adds row by row to total: its bits do not depend on where rows were split.
template <typename Real, int Dims, bool Halves>
[[gnu::noinline]] double add_cross_entropy(int dims, const EdgeView<Real>& edges,
                                           const Real* points, Size begin, Size end, double total) {
  for (Size first = begin; first < end; first += kRowsAtOnce) {
    const Size last = first + kRowsAtOnce < end ? first + kRowsAtOnce : end;
    CrossEntropy<Real> sums[kRowsAtOnce] = {};
    sum_rows<Real, Dims, Halves>(dims, edges, points, first, last, sums);
    for (Size i = first; i < last; ++i) {
      total += static_cast<double>(EdgeSimd<Real>::sum(sums[i - first].lanes[0]));
    }
  }
  return total;
}

template <typename Real, int Dims, bool Halves>
double cross_entropy_rows_of(int dims, const EdgeView<Real>& edges, const Real* points, Size begin,
                             Size end) {
  double total = 0;
  for_rows(
      edges, begin, end,
      [&](Size first, Size last) {
        total = add_cross_entropy<Real, Dims, Halves>(dims, edges, points, first, last, total);
      },
      [&](Size i) {
        double row;
        sum_long_row<Real, Dims, Halves>(dims, edges, points, i, CrossEntropy<Real>{}, &row);
        total += row;
      });
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
