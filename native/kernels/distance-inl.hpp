// Distances for the neighbour search: a float tile that finds candidates, and the double distance
// that decides.

inline constexpr int kPanelVectors = 2;

inline void filter_tile(const float* queries, const float* query_norms, const float* limits,
                        const float* panel, const float* panel_norms, Size features, float* bounds,
                        std::uint64_t* hits) {
  using S = Simd<float>;
  using Vec = S::Vec;
  constexpr int kPanelPoints = kPanelVectors * S::kLanes;
  // 6 x 2 accumulators, two panel vectors and one broadcast: 15 of the 16 vector registers of AVX2.
  Vec dots[kTileQueries][kPanelVectors] = {};
  for (Size f = 0; f < features; ++f) {
    Vec points[kPanelVectors];
    for (int v = 0; v < kPanelVectors; ++v) {
      points[v] = S::load(panel + f * kPanelPoints + v * S::kLanes);
    }
    for (int q = 0; q < kTileQueries; ++q) {
      const Vec query = S::splat(queries[q * features + f]);
      for (int v = 0; v < kPanelVectors; ++v) {
        dots[q][v] += query * points[v];
      }
    }
  }
  for (int q = 0; q < kTileQueries; ++q) {
    std::uint64_t mask = 0;
    for (int v = 0; v < kPanelVectors; ++v) {
      const Vec norms = S::load(panel_norms + v * S::kLanes) + query_norms[q];
      const Vec bound = norms - 2.0f * dots[q][v];
      S::store(bounds + q * kPanelPoints + v * S::kLanes, bound);
      const S::IntVec below = bound < limits[q];
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
    hits[q] = mask;
  }
}

template <typename Real>
double squared_distance(const Real* a, const Real* b, Size features, double scale) {
  using S = Simd<double>;
  S::Vec sums = {};
  Size f = 0;
  for (; f + S::kLanes <= features; f += S::kLanes) {
    double left[S::kLanes];
    double right[S::kLanes];
    for (int lane = 0; lane < S::kLanes; ++lane) {
      left[lane] = static_cast<double>(a[f + lane]);
      right[lane] = static_cast<double>(b[f + lane]);
    }
    const S::Vec difference = S::load(left) * scale - S::load(right) * scale;
    sums += difference * difference;
  }
  double total = S::sum(sums);
  for (; f < features; ++f) {
    const double difference = static_cast<double>(a[f]) * scale - static_cast<double>(b[f]) * scale;
    total += difference * difference;
  }
  return total;
}
