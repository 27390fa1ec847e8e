// Distances for the approximate neighbour search (neighbors/probe.cpp, neighbors/approximate.cpp).
// By differences: products, as the exact search has them, cancel in tight clusters far from the
// centre, and it cannot afford to compute again what survives.

inline bool probe_tile(const ProbeQueries& queries, const float* panel,
                       const float* panel_residuals, const TileStages& stages, std::uint64_t* hits,
                       float* distances) {
  using S = Simd<float>;
  using Vec = S::Vec;
  constexpr int kPanelPoints = kPanelVectors * S::kLanes;
  Vec sums[kTileQueries][kPanelVectors] = {};
  Size d = 0;
  for (int stage = 0; stage < stages.count; ++stage) {
    for (; d < stages.dims[stage]; ++d) {
      Vec points[kPanelVectors];
      for (int v = 0; v < kPanelVectors; ++v) {
        points[v] = S::load(panel + d * kPanelPoints + v * S::kLanes);
      }
      for (int q = 0; q < kTileQueries; ++q) {
        const Vec query = S::splat(queries.coordinates[q][d]);
        for (int v = 0; v < kPanelVectors; ++v) {
          const Vec difference = query - points[v];
          sums[q][v] += difference * difference;
        }
      }
    }
    if (stage == stages.count - 1) {
      for (int q = 0; q < kTileQueries; ++q) {
        for (int v = 0; v < kPanelVectors; ++v) {
          const Vec difference = queries.residuals[q] - S::load(panel_residuals + v * S::kLanes);
          sums[q][v] += difference * difference;
        }
      }
    }
    std::uint64_t any = 0;
    for (int q = 0; q < kTileQueries; ++q) {
      hits[q] = lanes_below(sums[q], queries.limits[q]);
      any |= hits[q];
    }
    if (any == 0) {
      return false;
    }
  }
  for (int q = 0; q < kTileQueries; ++q) {
    for (int v = 0; v < kPanelVectors; ++v) {
      S::store(distances + q * kPanelPoints + v * S::kLanes, sums[q][v]);
    }
  }
  return true;
}

inline void spread_of_distances(const float* panel, Size dims, const float* centre,
                                const float* variances, float* means, float* spreads) {
  using S = Simd<float>;
  using Vec = S::Vec;
  constexpr int kPanelPoints = kPanelVectors * S::kLanes;
  Vec sums[kPanelVectors] = {};
  Vec squares[kPanelVectors] = {};
  for (Size d = 0; d < dims; ++d) {
    for (int v = 0; v < kPanelVectors; ++v) {
      const Vec difference = S::load(panel + d * kPanelPoints + v * S::kLanes) - centre[d];
      const Vec squared = difference * difference;
      sums[v] += squared + variances[d];
      squares[v] += (4.0f * squared + 2.0f * variances[d]) * variances[d];
    }
  }
  for (int v = 0; v < kPanelVectors; ++v) {
    S::store(means + v * S::kLanes, sums[v]);
    S::store(spreads + v * S::kLanes, squares[v]);
  }
}
