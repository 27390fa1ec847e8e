// Distances for the neighbour search (neighbors/cell_search.cpp, neighbors/exact.cpp): the tile
// that bounds them from below, and the distances themselves, quick and exact.

inline constexpr int kPanelVectors = 2;

// Which lanes of two vectors hold a number below the limit.
inline std::uint64_t lanes_below(const Simd<float>::Vec* bounds, float limit) {
  using S = Simd<float>;
  std::uint64_t mask = 0;
  for (int v = 0; v < kPanelVectors; ++v) {
    const S::IntVec below = bounds[v] < limit;
    std::uint64_t lanes = 0;
#if defined(__AVX512F__)
    lanes = static_cast<std::uint64_t>(_mm512_movepi32_mask(reinterpret_cast<__m512i>(below)));
#elif defined(__AVX2__)
    lanes = static_cast<std::uint32_t>(_mm256_movemask_ps(reinterpret_cast<__m256>(below)));
#else
    for (int lane = 0; lane < S::kLanes; ++lane) {
      lanes |= static_cast<std::uint64_t>(below[lane] & 1) << lane;
    }
#endif
    mask |= lanes << (v * S::kLanes);
  }
  return mask;
}

inline bool filter_tile(const FilterQueries& queries, const float* panel, const float* panel_norms,
                        const float* panel_rests, const Size* stages, std::uint64_t* hits) {
  using S = Simd<float>;
  using Vec = S::Vec;
  constexpr int kPanelPoints = kPanelVectors * S::kLanes;
  // 6 x 2 accumulators, two panel vectors and one broadcast: 15 of the 16 vector registers of AVX2.
  Vec dots[kTileQueries][kPanelVectors] = {};
  Size d = 0;
  for (int stage = 0; stage < kFilterStages; ++stage) {
    for (; d < stages[stage]; ++d) {
      Vec points[kPanelVectors];
      for (int v = 0; v < kPanelVectors; ++v) {
        points[v] = S::load(panel + d * kPanelPoints + v * S::kLanes);
      }
      for (int q = 0; q < kTileQueries; ++q) {
        const Vec query = S::splat(queries.coordinates[q][d]);
        for (int v = 0; v < kPanelVectors; ++v) {
          dots[q][v] += query * points[v];
        }
      }
    }
    std::uint64_t any = 0;
    for (int q = 0; q < kTileQueries; ++q) {
      Vec bounds[kPanelVectors];
      for (int v = 0; v < kPanelVectors; ++v) {
        const Vec rests = S::load(panel_rests + stage * kPanelPoints + v * S::kLanes);
        const Vec product = dots[q][v] + queries.rests[q][stage] * rests;
        bounds[v] = (S::load(panel_norms + v * S::kLanes) + queries.norms[q]) - 2.0f * product;
      }
      hits[q] = lanes_below(bounds, queries.limits[q]);
      any |= hits[q];
    }
    if (any == 0) {
      return false;
    }
  }
  return true;
}

// distances[i] = |point - rows[i]|.
inline void distances_to_rows(const float* point, const float* rows, Size count, Size dims,
                              float* distances) {
  using S = Simd<float>;
  for (Size i = 0; i < count; ++i) {
    const float* row = rows + i * dims;
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

// Squared distance in the data's own precision, for choosing; its relative error is below (features
// + 16) times that of one float operation.
template <typename Real>
double near_distance(const Real* a, const Real* b, Size features, double scale) {
  using S = Simd<Real>;
  constexpr Size kStep = 4 * S::kLanes;
  const Real factor = static_cast<Real>(scale);
  typename S::Vec sums[4] = {};
  Size f = 0;
  for (; f + kStep <= features; f += kStep) {
    for (int v = 0; v < 4; ++v) {
      const auto difference =
          S::load(a + f + v * S::kLanes) * factor - S::load(b + f + v * S::kLanes) * factor;
      sums[v] += difference * difference;
    }
  }
  for (; f + S::kLanes <= features; f += S::kLanes) {
    const auto difference = S::load(a + f) * factor - S::load(b + f) * factor;
    sums[0] += difference * difference;
  }
  Real total = S::sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
  for (; f < features; ++f) {
    const Real difference = a[f] * factor - b[f] * factor;
    total += difference * difference;
  }
  return static_cast<double>(total);
}

// The next vector's worth of numbers, as doubles.
template <typename Real>
inline Simd<double>::Vec load_as_double(const Real* from) {
  if constexpr (sizeof(Real) == 8) {
    return Simd<double>::load(from);
  } else {
    typedef float Half __attribute__((vector_size(kVectorBytes / 2)));
    Half half;
    __builtin_memcpy(&half, from, sizeof half);
    return __builtin_convertvector(half, Simd<double>::Vec);
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
