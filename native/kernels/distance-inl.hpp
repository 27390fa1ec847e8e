// Distances for the neighbour search (neighbors/cell_search.cpp, neighbors/exact.cpp): the tile
// that bounds them from below, and the distances themselves, quick and exact.

inline constexpr int kPanelVectors = 2;

// Which lanes of a panel's vectors hold a number below the limit, one for all or a vector of them.
template <typename Limits>
std::uint64_t lanes_below(const Simd<float>::Vec* numbers, const Limits& limits) {
  using S = Simd<float>;
  std::uint64_t mask = 0;
  for (int v = 0; v < kPanelVectors; ++v) {
    S::Vec limit;
    if constexpr (std::is_same_v<Limits, float>) {
      limit = S::splat(limits);
    } else {
      limit = limits[v];
    }
    std::uint64_t lanes = 0;
#if defined(__AVX512F__)
    lanes = _mm512_cmp_ps_mask(reinterpret_cast<__m512>(numbers[v]),
                               reinterpret_cast<__m512>(limit), _CMP_LT_OQ);
#elif defined(__AVX2__)
    const S::IntVec below = numbers[v] < limit;
    lanes = static_cast<std::uint32_t>(_mm256_movemask_ps(reinterpret_cast<__m256>(below)));
#else
    const S::IntVec below = numbers[v] < limit;
    for (int lane = 0; lane < S::kLanes; ++lane) {
      lanes |= static_cast<std::uint64_t>(below[lane] & 1) << lane;
    }
#endif
    mask |= lanes << (v * S::kLanes);
  }
  return mask;
}

// The lanes in which no number has been below its limit so far.
class LanesAbove {
public:
  using S = Simd<float>;

  void meet(S::Vec numbers, S::Vec limits) {
#if defined(__AVX512F__)
    lanes_ = _mm512_mask_cmp_ps_mask(lanes_, reinterpret_cast<__m512>(numbers),
                                     reinterpret_cast<__m512>(limits), _CMP_GE_OQ);
#else
    lanes_ &= numbers >= limits;
#endif
  }

  bool all() const {
#if defined(__AVX512F__)
    return lanes_ == kAll;
#elif defined(__AVX2__)
    return _mm256_movemask_ps(reinterpret_cast<__m256>(lanes_)) == 0xff;
#else
    S::Int every = -1;
    for (int lane = 0; lane < S::kLanes; ++lane) {
      every &= lanes_[lane];
    }
    return every != 0;
#endif
  }

private:
#if defined(__AVX512F__)
  static constexpr __mmask16 kAll = 0xffff;
  __mmask16 lanes_ = kAll;
#else
  S::IntVec lanes_ = ~S::IntVec{};
#endif
};

// The products of a tile's queries and points, in the units of both.
class TileProducts {
public:
  using S = Simd<float>;

  // Adds those of dims [begin, end), both even.
  void add(const FilterQueries& queries, const FilterPanel& panel, Size begin, Size end) {
    for (Size d = begin; d < end; d += 2) {
      S::IntVec points[kPanelVectors];
      for (int v = 0; v < kPanelVectors; ++v) {
        __builtin_memcpy(&points[v], panel.coordinates + (d * kPanelVectors + 2 * v) * S::kLanes,
                         sizeof points[v]);
      }
      unrolled<kTileQueries>([&](auto q) __attribute__((always_inline)) {
        S::Int pair;
        __builtin_memcpy(&pair, queries.coordinates[q] + d, sizeof pair);
        const S::IntVec query = S::IntVec{} + pair;
        unrolled<kPanelVectors>([&](auto v) __attribute__((always_inline)) {
          sums_[q][v] = S::add_products(sums_[q][v], query, points[v]);
        });
      });
    }
  }

  // |q|^2 + |p|^2 - 2 q p.
  S::Vec squared_distances(const FilterQueries& queries, const FilterPanel& panel, int q,
                           int v) const {
    const S::Vec units = S::load(panel.units + v * S::kLanes);
    const S::Vec norms = S::load(panel.norms + v * S::kLanes) + queries.norms[q];
    return __builtin_convertvector(S::lanes_of(sums_[q][v]), S::Vec) * units * queries.factors[q] +
           norms;
  }

  // With the residuals in one direction.
  S::Vec lower_bounds(const FilterQueries& queries, const FilterPanel& panel, int stage, int q,
                      int v) const {
    const S::Vec residuals = S::load(panel.residuals + (stage * kPanelVectors + v) * S::kLanes);
    return squared_distances(queries, panel, q, v) + residuals * queries.residual_factors[stage][q];
  }

private:
  // 6 x 2 sums, two vectors of points and one broadcast: 15 of the 16 vector registers of AVX2, 27
  // of NEON's 32.
  S::ProductSums sums_[kTileQueries][kPanelVectors] = {};
};

// Whether the points have limits of their own is known at compile time, for speed.
template <bool kPointLimits>
bool filter_tile_for(const FilterQueries& queries, const FilterPanel& panel,
                     const TileStages& stages, FilterHits& hits) {
  using S = Simd<float>;
  S::Vec limits[kPanelVectors] = {}; // of the points
  if constexpr (kPointLimits) {
    for (int v = 0; v < kPanelVectors; ++v) {
      limits[v] = S::load(panel.limits + v * S::kLanes);
    }
  }
  TileProducts products;
  Size done = 0;
  for (int stage = 0; stage < stages.count; ++stage) {
    products.add(queries, panel, done, stages.dims[stage]);
    done = stages.dims[stage];
    LanesAbove above[kPanelVectors];
    unrolled<kTileQueries>([&](auto q) __attribute__((always_inline)) {
      const S::Vec query_limit = S::splat(queries.limits[q]);
      unrolled<kPanelVectors>([&](auto v) __attribute__((always_inline)) {
        const S::Vec limit = kPointLimits ? S::max(limits[v], query_limit) : query_limit;
        above[v].meet(products.lower_bounds(queries, panel, stage, q, v), limit);
      });
    });
    if (above[0].all() && above[1].all()) {
      return false;
    }
  }
  unrolled<kTileQueries>([&](auto q) __attribute__((always_inline)) {
    S::Vec bounds[kPanelVectors];
    unrolled<kPanelVectors>([&](auto v) __attribute__((always_inline)) {
      bounds[v] = products.lower_bounds(queries, panel, stages.count - 1, q, v);
    });
    hits.of_query[q] = lanes_below(bounds, queries.limits[q]);
    hits.of_point[q] = kPointLimits ? lanes_below(bounds, limits) : 0;
  });
  return true;
}

inline bool filter_tile(const FilterQueries& queries, const FilterPanel& panel,
                        const TileStages& stages, FilterHits& hits) {
  return panel.limits != nullptr ? filter_tile_for<true>(queries, panel, stages, hits)
                                 : filter_tile_for<false>(queries, panel, stages, hits);
}

inline void estimate_tile(const FilterQueries& queries, const FilterPanel& panel, Size dims,
                          float* const* estimates) {
  using S = Simd<float>;
  TileProducts products;
  products.add(queries, panel, 0, dims);
  for (int q = 0; q < kTileQueries; ++q) {
    for (int v = 0; v < kPanelVectors; ++v) {
      S::store(estimates[q] + v * S::kLanes, products.squared_distances(queries, panel, q, v));
    }
  }
}

// `count` is a multiple of panel_points here and below.
inline Size count_below(const float* numbers, Size count, float limit) {
  using S = Simd<float>;
  S::IntVec below[kPanelVectors] = {};
  for (Size i = 0; i < count; i += kPanelVectors * S::kLanes) {
    for (int v = 0; v < kPanelVectors; ++v) {
      below[v] -= S::load(numbers + i + v * S::kLanes) < limit;
    }
  }
  Size sum = 0;
  for (int lane = 0; lane < S::kLanes; ++lane) {
    sum += below[0][lane] + below[1][lane];
  }
  return sum;
}

inline void bits_below(const float* numbers, Size count, float limit, std::uint64_t* bits,
                       Size stride) {
  using S = Simd<float>;
  for (Size i = 0; i < count; i += kPanelVectors * S::kLanes) {
    S::Vec panel[kPanelVectors];
    for (int v = 0; v < kPanelVectors; ++v) {
      panel[v] = S::load(numbers + i + v * S::kLanes);
    }
    *bits = lanes_below(panel, limit);
    bits += stride;
  }
}

// distances[i] = |point - rows[i]|, rows being `stride` apart.
inline void distances_to_rows(const float* point, const float* rows, Size count, Size dims,
                              Size stride, float* distances) {
  using S = Simd<float>;
  for (Size i = 0; i < count; ++i) {
    const float* row = rows + i * stride;
    S::Vec sums = {};
    Size d = 0;
    for (; d + S::kLanes <= dims; d += S::kLanes) {
      const S::Vec difference = S::load(point + d) - S::load(row + d);
      sums += difference * difference;
    }
    float total = S::sum(sums);
    for (; d < dims; ++d) {
      const float difference = point[d] - row[d];
      total += difference * difference;
    }
    distances[i] = __builtin_sqrtf(total);
  }
}

// The sum of the squares of differences, a vector at a time, in their own precision; its relative
// error is below (features + 16) times that of one float operation. Zeros at the end change
// nothing.
template <typename Real, typename Difference>
Real sum_of_squares(Size features, const Difference& difference) {
  using S = Simd<Real>;
  // So many sums that none has to wait for its last addition.
  constexpr int kSums = 4;
  typename S::Vec sums[kSums] = {};
  const auto add = [&](Size f, int sum) {
    const auto apart = difference(f);
    sums[sum] += apart * apart;
  };
  Size f = 0;
  for (; f + kSums * S::kLanes <= features; f += kSums * S::kLanes) {
    for (int sum = 0; sum < kSums; ++sum) {
      add(f + sum * S::kLanes, sum);
    }
  }
  for (int sum = 0; sum < kSums; ++sum) {
    if (f + sum * S::kLanes < features) {
      add(f + sum * S::kLanes, sum);
    }
  }
  return S::sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

// Squared distance in the data's own precision, for choosing.
template <typename Real>
double near_distance(const Real* a, const Real* b, Size features, double scale) {
  using S = Simd<Real>;
  const auto load = [&](const Real* from, Size f) {
    if (f + S::kLanes <= features) {
      return S::load(from + f);
    }
    typename S::Vec last = {};
    for (int lane = 0; f + lane < features; ++lane) {
      last[lane] = from[f + lane];
    }
    return last;
  };
  const Real factor = static_cast<Real>(scale);
  return static_cast<double>(sum_of_squares<Real>(
      features, [&](Size f) { return load(a, f) * factor - load(b, f) * factor; }));
}

// distances[i] = |point - rows[named[i]]|^2, the same bits as near_distance, for rows that zeros
// fill to whole cache lines.
template <typename Real>
void squared_distances_to(const Real* point, const Real* rows, const PointId* named, Size count,
                          Size dims, Real* distances) {
  using S = Simd<Real>;
  for (Size i = 0; i < count; ++i) {
    const Real* row = rows + Size{named[i]} * dims;
    distances[i] =
        sum_of_squares<Real>(dims, [&](Size d) { return S::load(point + d) - S::load(row + d); });
  }
}

// 4 x 3 sums, three rows and one point: 16 vector registers, as AVX2 has.
inline constexpr int kPairPoints = 4;
inline constexpr int kPairRows = 3;

// Squared distances of a few points from a few rows, so that what is loaded once serves several.
template <int kPoints, int kRows, typename Real>
void squared_distances_of_few(const Real* points, const Real* rows, Size dims, Real* distances,
                              Size stride) {
  using S = Simd<Real>;
  typename S::Vec sums[kPoints][kRows] = {};
  for (Size d = 0; d < dims; d += S::kLanes) {
    typename S::Vec row[kRows];
    unrolled<kRows>([&](auto r)
                        __attribute__((always_inline)) { row[r] = S::load(rows + r * dims + d); });
    unrolled<kPoints>([&](auto p) __attribute__((always_inline)) {
      const typename S::Vec point = S::load(points + p * dims + d);
      unrolled<kRows>([&](auto r) __attribute__((always_inline)) {
        const typename S::Vec apart = point - row[r];
        sums[p][r] += apart * apart;
      });
    });
  }
  for (int p = 0; p < kPoints; ++p) {
    for (int r = 0; r < kRows; ++r) {
      distances[p * stride + r] = S::sum(sums[p][r]);
    }
  }
}

template <int kPoints, typename Real>
void squared_distances_of_points(const Real* points, FilledRange<Real> rows, Size dims,
                                 Real* distances, Size stride) {
  Size r = 0;
  for (; r + kPairRows <= rows.count; r += kPairRows) {
    squared_distances_of_few<kPoints, kPairRows>(points, rows.rows + r * dims, dims, distances + r,
                                                 stride);
  }
  for (; r < rows.count; ++r) {
    squared_distances_of_few<kPoints, 1>(points, rows.rows + r * dims, dims, distances + r, stride);
  }
}

template <typename Real>
void squared_distances_of_all(FilledRange<Real> points, FilledRange<Real> rows, Size dims,
                              Real* distances, Size stride) {
  Size p = 0;
  for (; p + kPairPoints <= points.count; p += kPairPoints) {
    squared_distances_of_points<kPairPoints>(points.rows + p * dims, rows, dims,
                                             distances + p * stride, stride);
  }
  for (; p < points.count; ++p) {
    squared_distances_of_points<1>(points.rows + p * dims, rows, dims, distances + p * stride,
                                   stride);
  }
}

// Squared distance, every operation in double.
template <typename Real>
double squared_distance(const Real* a, const Real* b, Size features, double scale) {
  using S = Simd<double>;
  S::Vec sums[2] = {};
  Size f = 0;
  for (; f + 2 * S::kLanes <= features; f += 2 * S::kLanes) {
    for (int v = 0; v < 2; ++v) {
      const Size at = f + v * S::kLanes;
      const S::Vec difference = load_as_double(a + at) * scale - load_as_double(b + at) * scale;
      sums[v] += difference * difference;
    }
  }
  double total = S::sum(sums[0] + sums[1]);
  for (; f < features; ++f) {
    const double difference = static_cast<double>(a[f]) * scale - static_cast<double>(b[f]) * scale;
    total += difference * difference;
  }
  return total;
}
