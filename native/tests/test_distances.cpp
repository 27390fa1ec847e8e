// The kernels of the neighbour searches, at every level, against plain loops in double.
#include "check.hpp"
#include "data.hpp"
#include "kernels/dispatch.hpp"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace acctsne;

// Queries and a panel of random numbers for the filter's kernels.
struct FilterTile {
  explicit FilterTile(Size dims_) : dims(dims_), width(kernels().search.panel_points) {
    std::mt19937_64 random(6);
    std::normal_distribution<float> normal;
    std::uniform_int_distribution<std::int16_t> coordinate(-32767, 32767);
    coordinates.resize(at(kTileQueries * dims));
    values.resize(at(width * dims));
    for (auto* integers : {&coordinates, &values}) {
      std::generate(integers->begin(), integers->end(), [&] { return coordinate(random); });
    }
    // Products of whole points must fit 32 bits.
    for (std::int16_t& value : values) {
      value = static_cast<std::int16_t>(value / dims);
    }
    units.resize(at(width));
    norms.resize(at(width));
    residuals.resize(at(width * kMostStages));
    for (auto* reals : {&units, &norms, &residuals}) {
      std::generate(reals->begin(), reals->end(), [&] { return normal(random); });
    }
    // The padding of a last panel.
    norms[at(width - 1)] = std::numeric_limits<float>::infinity();
    panel = {values.data(), units.data(), norms.data(), residuals.data(), nullptr};
    for (int q = 0; q < kTileQueries; ++q) {
      queries.coordinates[q] = coordinates.data() + q * dims;
      queries.factors[q] = -2e-8f * normal(random);
      queries.norms[q] = normal(random);
      for (auto& stage : queries.residual_factors) {
        stage[q] = -2 * normal(random);
      }
    }
  }

  double squared_distance(int q, Size p, Size leading) const {
    double dot = 0;
    for (Size d = 0; d < leading; ++d) {
      dot += static_cast<double>(coordinates[at(q * dims + d)]) *
             static_cast<double>(values[at(d / 2 * 2 * width + 2 * p + d % 2)]);
    }
    return static_cast<double>(norms[at(p)]) + static_cast<double>(queries.norms[q]) +
           dot * static_cast<double>(units[at(p)]) * static_cast<double>(queries.factors[q]);
  }

  Size dims;
  Size width;
  std::vector<std::int16_t> coordinates;
  std::vector<std::int16_t> values;
  std::vector<float> units;
  std::vector<float> norms;
  std::vector<float> residuals;
  FilterPanel panel;
  FilterQueries queries;
};

TEST(filter_tile_matches_direct_computation) {
  for_levels([] {
    for (const Size dims : {2, 4, 18, 100}) {
      FilterTile tile(dims);
      const TileStages stages({4, 10, 40}, dims);
      CHECK_EQUAL(stages.dims[stages.count - 1], dims);
      const auto bound = [&](int q, Size p, int stage) {
        return tile.squared_distance(q, p, stages.dims[stage]) +
               static_cast<double>(tile.queries.residual_factors[stage][q]) *
                   static_cast<double>(tile.residuals[at(stage * tile.width + p)]);
      };

      const float infinity = std::numeric_limits<float>::infinity();
      const float limits[kTileQueries] = {0, infinity, -infinity, 2, -2, 0.1f};
      std::copy_n(limits, kTileQueries, tile.queries.limits);
      std::vector<float> point_limits(at(tile.width), 1.0f);
      std::copy_n(limits, kTileQueries, point_limits.begin());
      for (const bool both : {false, true}) {
        tile.panel.limits = both ? point_limits.data() : nullptr;
        FilterHits hits;
        CHECK(kernels().search.filter_tile(tile.queries, tile.panel, stages, hits));
        const auto check_hit = [&](std::uint64_t bits, Size p, double expected, float limit) {
          // Rounding decides what is too close to tell.
          if (std::abs(expected - static_cast<double>(limit)) > 1e-4 || std::isinf(limit)) {
            CHECK_EQUAL(((bits >> p) & 1) != 0, expected < static_cast<double>(limit));
          }
        };
        for (int q = 0; q < kTileQueries; ++q) {
          for (Size p = 0; p < tile.width; ++p) {
            const double expected = bound(q, p, stages.count - 1);
            check_hit(hits.of_query[q], p, expected, limits[q]);
            check_hit(hits.of_point[q], p, expected, both ? point_limits[at(p)] : -infinity);
          }
        }
      }

      // Below every bound of the first stage, though not of the last: given up at once.
      double lowest = 1e30;
      for (int q = 0; q < kTileQueries; ++q) {
        for (Size p = 0; p < tile.width; ++p) {
          lowest = std::min(lowest, bound(q, p, 0));
        }
      }
      std::fill_n(tile.queries.limits, kTileQueries, static_cast<float>(lowest - 1e-3));
      std::fill(point_limits.begin(), point_limits.end(), static_cast<float>(lowest - 1e-3));
      FilterHits hits;
      CHECK(!kernels().search.filter_tile(tile.queries, tile.panel, stages, hits));
      // One limit, of either side, above the bound of a single pair in every stage lets it pass.
      const auto highest = [&](int q, Size p) {
        double most = bound(q, p, 0);
        for (int stage = 1; stage < stages.count; ++stage) {
          most = std::max(most, bound(q, p, stage));
        }
        return static_cast<float>(most + 1e-3);
      };
      point_limits[0] = highest(5, 0);
      CHECK(kernels().search.filter_tile(tile.queries, tile.panel, stages, hits));
      CHECK((hits.of_point[5] & 1) != 0);
      tile.queries.limits[1] = highest(1, tile.width - 2);
      tile.panel.limits = nullptr;
      CHECK(kernels().search.filter_tile(tile.queries, tile.panel, stages, hits));
      CHECK((hits.of_query[1] >> (tile.width - 2) & 1) != 0);
      CHECK_EQUAL(hits.of_point[5], std::uint64_t{0});
    }
  });
}

TEST(estimate_tile_matches_direct_computation) {
  for_levels([] {
    for (const Size dims : {2, 18, 100}) {
      const FilterTile tile(dims);
      std::vector<float> estimates(at(kTileQueries * tile.width));
      float* rows[kTileQueries];
      for (int q = 0; q < kTileQueries; ++q) {
        rows[q] = estimates.data() + q * tile.width;
      }
      kernels().search.estimate_tile(tile.queries, tile.panel, dims, rows);
      for (int q = 0; q < kTileQueries; ++q) {
        CHECK(std::isinf(rows[q][tile.width - 1]));
        for (Size p = 0; p < tile.width - 1; ++p) {
          CHECK_NEAR(rows[q][p], tile.squared_distance(q, p, dims), 1e-4);
        }
      }
    }
  });
}

// The largest integers, whose products just fit.
TEST(filter_tile_does_not_overflow) {
  for_levels([] {
    FilterTile tile(2);
    std::fill(tile.values.begin(), tile.values.end(), std::int16_t{23169}); // 2^14.5
    std::fill(tile.coordinates.begin(), tile.coordinates.end(), std::int16_t{-23169});
    std::vector<float> estimates(at(kTileQueries * tile.width));
    float* rows[kTileQueries];
    for (int q = 0; q < kTileQueries; ++q) {
      rows[q] = estimates.data() + q * tile.width;
    }
    kernels().search.estimate_tile(tile.queries, tile.panel, 2, rows);
    for (int q = 0; q < kTileQueries; ++q) {
      const double expected = tile.squared_distance(q, 0, 2);
      CHECK_NEAR(rows[q][0], expected, 1e-5 * std::abs(expected));
    }
  });
}

TEST(near_distance_keeps_to_the_precision_of_the_data) {
  for_levels([] {
    for_reals([]<typename Real>() {
      for (const Size features : {0, 1, 2, 7, 8, 17, 64, 100, 784}) {
        const std::vector<Real> a = make_cloud<Real>(Cloud::uniform, features, 1, 7);
        const std::vector<Real> b = make_cloud<Real>(Cloud::uniform, features, 1, 8);
        const double exact =
            kernels().distances.of<Real>().squared_distance(a.data(), b.data(), features, 0.5);
        CHECK_NEAR(kernels().distances.of<Real>().near_distance(a.data(), b.data(), features, 0.5),
                   exact, 8 * static_cast<double>(kEpsilon<Real>) * exact);
      }
    });
  });
}

TEST(distances_to_rows_match_a_double_loop) {
  for_levels([] {
    for (const Size dims : {1, 5, 16, 33}) {
      const Size stride = dims + 3;
      const std::vector<float> rows = make_cloud<float>(Cloud::uniform, 7 * stride, 1, 3);
      const std::vector<float> point = make_cloud<float>(Cloud::uniform, dims, 1, 4);
      std::vector<float> distances(7);
      kernels().search.distances_to_rows(point.data(), rows.data(), 7, dims, stride,
                                         distances.data());
      for (Size i = 0; i < 7; ++i) {
        double sum = 0;
        for (Size d = 0; d < dims; ++d) {
          sum += std::pow(
              static_cast<double>(point[at(d)]) - static_cast<double>(rows[at(i * stride + d)]), 2);
        }
        CHECK_NEAR(distances[at(i)], std::sqrt(sum), 1e-5 * std::sqrt(sum));
      }
    }
  });
}

TEST(squared_distance_is_taken_in_double) {
  for_levels([] {
    for_reals([]<typename Real>() {
      const auto kernel = kernels().distances.of<Real>().squared_distance;
      for (const Size features : {0, 1, 2, 7, 8, 17, 100}) {
        std::vector<Real> a = make_cloud<Real>(Cloud::uniform, features, 1, 7);
        std::vector<Real> b = make_cloud<Real>(Cloud::uniform, features, 1, 8);
        for (std::size_t f = 0; f < a.size(); ++f) {
          // Nothing may be lost to a common offset beyond what the data have lost already.
          a[f] += Real(1e6);
          b[f] += Real(1e6);
        }
        for (const double scale : {1.0, 0x1p-10, 0x1p100}) {
          double expected = 0;
          for (std::size_t f = 0; f < a.size(); ++f) {
            const double difference =
                (static_cast<double>(a[f]) - static_cast<double>(b[f])) * scale;
            expected += difference * difference;
          }
          CHECK_NEAR(kernel(a.data(), b.data(), features, scale), expected, 1e-14 * expected);
        }
      }
    });
  });
}

TEST(probe_tile_matches_direct_computation) {
  for_levels([] {
    const int width = kernels().search.panel_points;
    for (const Size dims : {1, 2, 17, 100}) {
      const auto values = [](Size count, std::uint64_t seed) {
        return make_cloud<float>(Cloud::uniform, count, 1, seed);
      };
      const std::vector<float> coordinates = values(kTileQueries * dims, 1);
      const std::vector<float> query_residuals = values(kTileQueries, 2);
      const std::vector<float> panel = values(width * dims, 3);
      const std::vector<float> residuals = values(width, 4);
      const TileStages stages({4, 9, 40}, dims);
      std::vector<double> expected(at(kTileQueries * width));
      ProbeQueries queries{};
      for (int q = 0; q < kTileQueries; ++q) {
        queries.coordinates[q] = coordinates.data() + q * dims;
        queries.residuals[q] = query_residuals[at(q)];
        for (Size p = 0; p < width; ++p) {
          const auto square = [](float a, float b) {
            return std::pow(static_cast<double>(a) - static_cast<double>(b), 2);
          };
          double& sum = expected[at(q * width + p)];
          sum = square(query_residuals[at(q)], residuals[at(p)]);
          for (Size d = 0; d < dims; ++d) {
            sum += square(queries.coordinates[q][d], panel[at(d * width + p)]);
          }
        }
        // A distance of one of the points: itself not below, about half of the others.
        queries.limits[q] = static_cast<float>(expected[at(q * width + 3)]);
      }
      std::vector<float> distances(expected.size());
      std::uint64_t hits[kTileQueries];
      CHECK(kernels().search.probe_tile(queries, panel.data(), residuals.data(), stages, hits,
                                        distances.data()));
      for (int q = 0; q < kTileQueries; ++q) {
        for (Size p = 0; p < width; ++p) {
          const float distance = distances[at(q * width + p)];
          CHECK_NEAR(distance, expected[at(q * width + p)], 1e-5 * expected[at(q * width + p)]);
          CHECK_EQUAL(((hits[q] >> p) & 1) != 0, distance < queries.limits[q]);
        }
      }
      std::fill_n(queries.limits, kTileQueries, 0.0f);
      CHECK(!kernels().search.probe_tile(queries, panel.data(), residuals.data(), stages, hits,
                                         distances.data()));
    }
  });
}

TEST(spread_of_distances_matches_draws) {
  for_levels([] {
    constexpr Size kDims = 3;
    const int width = kernels().search.panel_points;
    const std::vector<float> panel = make_cloud<float>(Cloud::uniform, width * kDims, 1, 1);
    const float centre[kDims] = {10, -20, 5};
    const float variances[kDims] = {100, 25, 4};
    std::vector<float> means(at(width));
    std::vector<float> spreads(at(width));
    kernels().search.spread_of_distances(panel.data(), kDims, centre, variances, means.data(),
                                         spreads.data());
    std::mt19937_64 random(2);
    std::normal_distribution<double> normal;
    for (const Size p : {0, width - 1}) {
      constexpr int kDraws = 100'000;
      double sum = 0;
      double squares = 0;
      for (int draw = 0; draw < kDraws; ++draw) {
        double distance = 0;
        for (Size d = 0; d < kDims; ++d) {
          const double drawn = static_cast<double>(centre[d]) +
                               std::sqrt(static_cast<double>(variances[d])) * normal(random);
          distance += std::pow(drawn - static_cast<double>(panel[at(d * width + p)]), 2);
        }
        sum += distance / kDraws;
        squares += distance * distance / kDraws;
      }
      // Five times what the draws may be off by.
      CHECK_NEAR(means[at(p)], sum, 5 * std::sqrt((squares - sum * sum) / kDraws));
      CHECK_NEAR(spreads[at(p)], squares - sum * sum, 0.05 * (squares - sum * sum));
    }
  });
}

TEST(squared_distances_to_named_rows_match_a_double_loop) {
  for_levels([] {
    for_reals([]<typename Real>() {
      const std::vector<PointId> named{6, 0, 3};
      for (const Size dims : {16, 48, 784}) {
        const std::vector<Real> rows = make_cloud<Real>(Cloud::uniform, 7 * dims, 1, 3);
        const std::vector<Real> point = make_cloud<Real>(Cloud::uniform, dims, 1, 4);
        std::vector<Real> distances(3);
        kernels().distances.of<Real>().squared_distances_to(point.data(), rows.data(), named.data(),
                                                            3, dims, distances.data());
        for (Size i = 0; i < 3; ++i) {
          const Real* row = rows.data() + named[at(i)] * dims;
          double sum = 0;
          for (Size d = 0; d < dims; ++d) {
            sum += std::pow(static_cast<double>(point[at(d)]) - static_cast<double>(row[d]), 2);
          }
          CHECK_NEAR(distances[at(i)], sum, 8 * static_cast<double>(kEpsilon<Real>) * sum);
        }
      }
    });
  });
}

TEST(squared_distances_of_all_pairs_match_a_double_loop) {
  for_levels([] {
    for_reals([]<typename Real>() {
      constexpr Size kMost = 9; // two tiles and what is left of a third
      constexpr Size kStride = 11;
      const auto& distances_of = kernels().distances.of<Real>();
      for (const Size dims : {16, 48, 784}) {
        const std::vector<Real> points = make_cloud<Real>(Cloud::uniform, kMost * dims, 1, 3);
        const std::vector<Real> rows = make_cloud<Real>(Cloud::uniform, kMost * dims, 1, 4);
        for (const Size point_count : {1, 3, 4, 9}) {
          for (const Size row_count : {0, 1, 2, 3, 8}) {
            std::vector<Real> distances(at(kMost * kStride), Real(-1));
            distances_of.squared_distances_of_all({points.data(), point_count},
                                                  {rows.data(), row_count}, dims, distances.data(),
                                                  kStride);
            for (Size p = 0; p < kMost; ++p) {
              for (Size r = 0; r < kStride; ++r) {
                const Real found = distances[at(p * kStride + r)];
                if (p >= point_count || r >= row_count) {
                  CHECK_EQUAL(found, Real(-1));
                  continue;
                }
                double sum = 0;
                for (Size d = 0; d < dims; ++d) {
                  sum += std::pow(static_cast<double>(points[at(p * dims + d)]) -
                                      static_cast<double>(rows[at(r * dims + d)]),
                                  2);
                }
                CHECK_NEAR(found, sum, 16 * static_cast<double>(kEpsilon<Real>) * sum);
                Real alone;
                distances_of.squared_distances_of_all({&points[at(p * dims)], 1},
                                                      {&rows[at(r * dims)], 1}, dims, &alone, 1);
                CHECK_EQUAL(found, alone);
              }
            }
          }
        }
      }
    });
  });
}

TEST(squared_distances_of_filled_rows_are_near_distances) {
  for_levels([] {
    for_reals([]<typename Real>() {
      for (const Size features : {1, 3, 8, 17, 60, 100, 784}) {
        const std::vector<Real> a = make_cloud<Real>(Cloud::uniform, features, 1, 7);
        const std::vector<Real> b = make_cloud<Real>(Cloud::uniform, features, 1, 8);
        std::vector<Real> filled_a = a;
        std::vector<Real> filled_b = b;
        filled_a.resize(at(chunk_count(features, 16) * 16));
        filled_b.resize(filled_a.size());
        const PointId named = 0;
        Real distance;
        kernels().distances.of<Real>().squared_distances_to(
            filled_a.data(), filled_b.data(), &named, 1, static_cast<Size>(filled_a.size()),
            &distance);
        CHECK_EQUAL(static_cast<double>(distance), kernels().distances.of<Real>().near_distance(
                                                       a.data(), b.data(), features, 1.0));
      }
    });
  });
}

TEST(numbers_below_a_limit) {
  for_levels([] {
    const Size width = kernels().search.panel_points;
    const Size count = 5 * width;
    std::mt19937_64 random(9);
    std::normal_distribution<float> normal;
    std::vector<float> numbers(at(count));
    for (float& number : numbers) {
      number = normal(random);
    }
    numbers[3] = std::numeric_limits<float>::infinity();
    numbers[at(width)] = 0.25f;
    for (const float limit : {-10.0f, 0.0f, 0.25f, std::numeric_limits<float>::infinity()}) {
      std::vector<std::uint64_t> bits(10, 77);
      kernels().search.bits_below(numbers.data(), count, limit, bits.data(), 2);
      Size expected = 0;
      for (Size i = 0; i < count; ++i) {
        const bool below = numbers[at(i)] < limit;
        expected += below;
        CHECK_EQUAL((bits[at(i / width * 2)] >> (i % width)) & 1, std::uint64_t{below});
        CHECK_EQUAL(bits[at(i / width * 2 + 1)], std::uint64_t{77});
      }
      CHECK_EQUAL(kernels().search.count_below(numbers.data(), count, limit), expected);
    }
  });
}

TEST(distances_of_integers_are_exact) {
  for_levels([] {
    for_reals([]<typename Real>() {
      // The last as long as 32 bits allow, of the most different rows.
      for (const Size dims : {64, 192, 32960}) {
        constexpr Size kRows = 5;
        std::mt19937_64 random(14);
        std::uniform_int_distribution<std::int16_t> byte(0, 255);
        std::vector<RowInteger> rows(at(kRows * dims));
        std::generate(rows.begin(), rows.end(),
                      [&] { return static_cast<RowInteger>(byte(random)); });
        std::fill_n(rows.begin() + 3 * dims, dims, RowInteger{0});
        const std::vector<RowInteger> point(at(dims), 255);
        const PointId named[] = {3, 0, 4};
        Real distances[3];
        kernels().distances.of<Real>().squared_distances_of_integers(point.data(), rows.data(),
                                                                     named, 3, dims, distances);
        for (int i = 0; i < 3; ++i) {
          std::int64_t expected = 0;
          for (Size d = 0; d < dims; ++d) {
            const int apart = 255 - rows[at(named[i] * dims + d)];
            expected += apart * apart;
          }
          CHECK_EQUAL(distances[i], static_cast<Real>(expected));
        }
      }
    });
  });
}

TEST(bytes_are_told_from_other_numbers) {
  for_levels([] {
    for_reals([]<typename Real>() {
      constexpr Size kCount = 300; // all bytes, some again
      std::vector<Real> numbers(kCount);
      for (Size i = 0; i < kCount; ++i) {
        numbers[at(i)] = static_cast<Real>(i % 256);
      }
      std::vector<std::uint8_t> bytes(kCount);
      CHECK(kernels().distances.of<Real>().to_bytes(numbers.data(), kCount, bytes.data()));
      std::vector<RowInteger> integers(kCount);
      kernels().search.bytes_to_integers(bytes.data(), kCount, integers.data());
      for (Size i = 0; i < kCount; ++i) {
        CHECK_EQUAL(static_cast<Real>(bytes[at(i)]), numbers[at(i)]);
        CHECK_EQUAL(static_cast<Real>(integers[at(i)]), numbers[at(i)]);
      }
      for (const double other : {-1.0, 256.0, 0.5, 254.999, -1e-30, 1e30, -1e30}) {
        for (const Size where : {Size{0}, Size{100}, kCount - 1}) {
          std::vector<Real> spoiled = numbers;
          spoiled[at(where)] = static_cast<Real>(other);
          CHECK(!kernels().distances.of<Real>().to_bytes(spoiled.data(), kCount, bytes.data()));
        }
      }
    });
  });
}

int main() {
  return check::run_tests();
}
