// Conditional probabilities of a given perplexity, and joint ones, against slow references.
#include "affinities/perplexity.hpp"
#include "affinities/symmetrize.hpp"

#include "check.hpp"
#include "data.hpp"

#include <numeric>
#include <set>

using namespace acctsne;

namespace {

template <typename Real>
struct Solved {
  std::vector<Real> conditional;
  std::vector<double> betas;
  std::vector<double> perplexities;
  Size missed;

  Solved(Size rows, Size neighbors)
      : conditional(at(rows * neighbors)), betas(at(rows)), perplexities(at(rows)), missed(0) {}

  ConditionalRows<Real> rows_of(const std::vector<Real>& distances, Size neighbors) {
    return {distances.data(), static_cast<Size>(betas.size()), neighbors, conditional.data(),
            perplexities.data()};
  }
};

template <typename Real>
Solved<Real> solve(const std::vector<Real>& distances, Size neighbors, double perplexity,
                   int threads = 2) {
  const Size rows = static_cast<Size>(distances.size()) / neighbors;
  ThreadTeam team(threads);
  Solved<Real> solved(rows, neighbors);
  solved.missed = search_perplexity(solved.rows_of(distances, neighbors), perplexity,
                                    solved.betas.data(), team);
  return solved;
}

// Squared distances of a point to its neighbours, as they might look in 5 dimensions.
template <typename Real>
std::vector<Real> random_distances(Size rows, Size neighbors, double scale = 1) {
  std::mt19937_64 random(21);
  std::gamma_distribution<double> gamma(2.5);
  std::vector<Real> distances(at(rows * neighbors));
  std::generate(distances.begin(), distances.end(),
                [&] { return static_cast<Real>(scale * (0.5 + gamma(random))); });
  return distances;
}

template <typename Real>
double sum_of_row(const std::vector<Real>& values, Size row, Size neighbors) {
  double sum = 0;
  for (Size j = 0; j < neighbors; ++j) {
    sum += static_cast<double>(values[at(row * neighbors + j)]);
  }
  return sum;
}

template <typename Real>
double perplexity_of_row(const std::vector<Real>& values, Size row, Size neighbors) {
  double entropy = 0;
  for (Size j = 0; j < neighbors; ++j) {
    const auto p = static_cast<double>(values[at(row * neighbors + j)]);
    entropy -= p > 0 ? p * std::log(p) : 0.0;
  }
  return std::exp(entropy);
}

template <typename Real>
void check_rows_are_distributions(const Solved<Real>& solved, Size neighbors) {
  CHECK(all_finite(std::span<const Real>(solved.conditional)));
  const Size rows = static_cast<Size>(solved.conditional.size()) / neighbors;
  for (Size i = 0; i < rows; ++i) {
    CHECK_NEAR(sum_of_row(solved.conditional, i, neighbors), 1,
               static_cast<double>(neighbors) * static_cast<double>(kEpsilon<Real>));
  }
  CHECK(std::all_of(solved.conditional.begin(), solved.conditional.end(),
                    [](Real p) { return p >= 0; }));
}

// The bandwidth by bisection, 200 halvings of log(beta).
double bisected_beta(const std::vector<double>& distances, double perplexity) {
  const double smallest = *std::min_element(distances.begin(), distances.end());
  double low = -300;
  double high = 300;
  for (int step = 0; step < 200; ++step) {
    const double beta = std::exp(0.5 * (low + high));
    double sum = 0;
    double weighted = 0;
    for (const double d : distances) {
      const double w = std::exp(-beta * (d - smallest));
      sum += w;
      weighted += w * (d - smallest);
    }
    const double entropy = std::log(sum) + beta * weighted / sum;
    (entropy > std::log(perplexity) ? low : high) = 0.5 * (low + high);
  }
  return std::exp(low);
}

struct NeighborLists {
  std::vector<PointId> indices;
  std::vector<double> values;
  Size rows;
  Size neighbors;
};

NeighborLists random_edges(Size rows, Size neighbors) {
  std::mt19937_64 random(22);
  std::uniform_real_distribution<double> value(0.01, 1);
  NeighborLists edges{{}, {}, rows, neighbors};
  for (Size i = 0; i < rows; ++i) {
    std::vector<PointId> others(at(rows));
    std::iota(others.begin(), others.end(), PointId{0});
    others.erase(others.begin() + i);
    // A few popular points, so that rows of the transpose differ much in length.
    std::shuffle(others.begin() + std::min<Size>(3, rows - 1), others.end(), random);
    edges.indices.insert(edges.indices.end(), others.begin(), others.begin() + neighbors);
    for (Size j = 0; j < neighbors; ++j) {
      edges.values.push_back(j == 1 ? 0.0 : value(random)); // weights may have underflowed
    }
  }
  return edges;
}

// Transposed in one go, or, with a limit of edges, a block of columns at a time.
template <typename Real>
Csr<Real> symmetrize_edges(const NeighborLists& edges, int threads, bool equal = false,
                           EdgeId group_edges = SymmetrizedRows<Real>::kGroupEdges) {
  ThreadTeam team(threads);
  std::vector<PointId> indices = edges.indices;
  std::vector<Real> values(edges.values.begin(), edges.values.end());
  sort_by_column(indices.data(), values.data(), edges.rows, edges.neighbors, edges.rows, team);
  SymmetrizedRows<Real> rows({indices.data(), values.data(), edges.rows, edges.neighbors, equal},
                             team, group_edges);
  return collect<Real>(rows, team);
}

template <typename Real>
bool same_matrix(const Csr<Real>& a, const Csr<Real>& b) {
  return a.offsets == b.offsets && a.columns == b.columns && same_bytes(a.values, b.values);
}

template <typename Real>
void check_symmetrize(const NeighborLists& edges) {
  const Size n = edges.rows;
  std::vector<double> dense(at(n * n), 0.0);
  std::set<std::pair<Size, Size>> pattern;
  for (Size i = 0; i < n; ++i) {
    for (Size e = i * edges.neighbors; e < (i + 1) * edges.neighbors; ++e) {
      const Size j = edges.indices[at(e)];
      const auto value = static_cast<double>(static_cast<Real>(edges.values[at(e)]));
      dense[at(i * n + j)] += value;
      dense[at(j * n + i)] += value;
      pattern.insert({i, j});
      pattern.insert({j, i});
    }
  }
  const double sum = std::accumulate(dense.begin(), dense.end(), 0.0);
  // Of the value, and of two sums of thousands in double.
  const double tolerance = 4 * static_cast<double>(kEpsilon<Real>) + 32 * kEpsilon<double>;

  const Csr<Real> joint = symmetrize_edges<Real>(edges, 1);
  CHECK_EQUAL(joint.offsets.size(), at(n + 1));
  CHECK_EQUAL(joint.offsets.front(), 0);
  CHECK_EQUAL(joint.offsets.back(), static_cast<EdgeId>(pattern.size()));
  CHECK_EQUAL(joint.columns.size(), pattern.size());
  CHECK_EQUAL(joint.values.size(), pattern.size());
  double total = 0;
  std::vector<Real> found(dense.size(), Real(0));
  for (Size i = 0; i < n; ++i) {
    for (EdgeId e = joint.offsets[at(i)]; e < joint.offsets[at(i + 1)]; ++e) {
      const PointId j = joint.columns[at(e)];
      CHECK(e == joint.offsets[at(i)] || joint.columns[at(e - 1)] < j);
      CHECK(pattern.contains({i, j}));
      const double expected = dense[at(i * n + j)] / sum;
      CHECK_NEAR(joint.values[at(e)], expected, tolerance * expected);
      found[at(i * n + j)] = joint.values[at(e)];
      total += static_cast<double>(joint.values[at(e)]);
    }
  }
  CHECK_NEAR(total, 1, sizeof(Real) == 4 ? 1e-6 : 1e-14);
  for (Size i = 0; i < n; ++i) {
    for (Size j = 0; j < i; ++j) {
      CHECK_EQUAL(found[at(i * n + j)], found[at(j * n + i)]);
    }
  }

  for (const int threads : kThreadCounts) {
    CHECK(same_matrix(symmetrize_edges<Real>(edges, threads), joint));
    CHECK(same_matrix(symmetrize_edges<Real>(edges, threads, false, 1), joint));
  }

  // All entries alike, where there are any.
  for (const EdgeId group_edges : {SymmetrizedRows<Real>::kGroupEdges, EdgeId{1}}) {
    const Csr<Real> equal = symmetrize_edges<Real>(edges, 2, true, group_edges);
    CHECK(equal.offsets == joint.offsets);
    CHECK(equal.columns == joint.columns);
    const auto share = static_cast<Real>(1 / static_cast<double>(pattern.size()));
    CHECK(equal.values == std::vector<Real>(pattern.size(), share));
  }
}

} // namespace

TEST(rows_reach_the_perplexity_whatever_their_unit) {
  constexpr Size kRows = 600;
  for_levels([] {
    for_reals([]<typename Real>() {
      for (const double scale : {1e-30, 1e-10, 1.0, 1e10, 1e30}) {
        for (const double perplexity : {2.0, 30.0, 80.0}) {
          constexpr Size kNeighbors = 90;
          const Solved<Real> solved =
              solve(random_distances<Real>(kRows, kNeighbors, scale), kNeighbors, perplexity);
          CHECK_EQUAL(solved.missed, 0);
          check_rows_are_distributions(solved, kNeighbors);
          for (Size i = 0; i < kRows; ++i) {
            CHECK_NEAR(perplexity_of_row(solved.conditional, i, kNeighbors), perplexity, 1e-4);
          }
        }
      }
    });
  });
}

TEST(bandwidths_agree_with_bisection) {
  for_levels([] {
    for_reals([]<typename Real>() {
      for (const Size neighbors : {Size{3}, Size{8}, Size{37}}) {
        const std::vector<Real> distances = random_distances<Real>(50, neighbors, 7);
        const double perplexity = static_cast<double>(neighbors) / 2;
        const Solved<Real> solved = solve(distances, neighbors, perplexity);
        for (Size i = 0; i < 50; ++i) {
          const std::vector<double> row(distances.begin() + i * neighbors,
                                        distances.begin() + (i + 1) * neighbors);
          const double beta = bisected_beta(row, perplexity);
          CHECK_NEAR(solved.betas[at(i)], beta, 1e-7 * beta);
          const double smallest = *std::min_element(row.begin(), row.end());
          double sum = 0;
          for (const double d : row) {
            sum += std::exp(-beta * (d - smallest));
          }
          for (Size j = 0; j < neighbors; ++j) {
            const double expected = std::exp(-beta * (row[at(j)] - smallest)) / sum;
            CHECK_NEAR(solved.conditional[at(i * neighbors + j)], expected,
                       (sizeof(Real) == 4 ? 1e-6 : 1e-7) * expected + 1e-37);
          }
        }
      }
    });
  });
}

TEST(threads_do_not_change_the_search) {
  for_levels([] {
    for_reals([]<typename Real>() {
      const std::vector<Real> distances = random_distances<Real>(1000, 45);
      const Solved<Real> expected = solve(distances, 45, 15, 1);
      for (const int threads : kThreadCounts) {
        const Solved<Real> solved = solve(distances, 45, 15, threads);
        CHECK(same_bytes(solved.conditional, expected.conditional));
        CHECK(same_bytes(solved.betas, expected.betas));
        CHECK_EQUAL(solved.missed, expected.missed);
      }
    });
  });
}

TEST(rows_without_a_scale_are_uniform) {
  for_reals([]<typename Real>() {
    for (const double value : {0.0, 1.0, 1e-30, 1e30}) {
      const Solved<Real> solved =
          solve(std::vector<Real>(4 * 90, static_cast<Real>(value)), 90, 30);
      CHECK_EQUAL(solved.missed, 4);
      check_rows_are_distributions(solved, 90);
      for (const Real p : solved.conditional) {
        CHECK_NEAR(p, 1.0 / 90, 1e-8);
      }
    }
  });
}

TEST(rows_with_zeros) {
  constexpr Size kNeighbors = 90;
  for_reals([]<typename Real>() {
    for (const Size zeros : {1, 20, 29, 30, 40}) {
      const check::Scope scope(std::to_string(zeros) + " zeros");
      std::vector<Real> distances = random_distances<Real>(5, kNeighbors);
      for (std::size_t e = 0; e < distances.size(); ++e) {
        distances[e] = static_cast<Size>(e) % kNeighbors < zeros ? Real(0) : distances[e];
      }
      const Solved<Real> solved = solve(distances, kNeighbors, 30);
      check_rows_are_distributions(solved, kNeighbors);
      // With more neighbours at distance 0 than the perplexity, uniform over those is the nearest
      // there is.
      CHECK_EQUAL(solved.missed, zeros > 30 ? 5 : 0);
      const double expected = static_cast<double>(std::max<Size>(zeros, 30));
      for (Size i = 0; i < 5; ++i) {
        CHECK_NEAR(perplexity_of_row(solved.conditional, i, kNeighbors), expected, 1e-4);
      }
    }
  });
}

TEST(a_perplexity_beyond_the_neighbors_is_missed) {
  for_reals([]<typename Real>() {
    const std::vector<Real> distances = random_distances<Real>(7, 20);
    const Solved<Real> too_large = solve(distances, 20, 25);
    CHECK_EQUAL(too_large.missed, 7);
    check_rows_are_distributions(too_large, 20);
    for (const Real p : too_large.conditional) {
      CHECK_NEAR(p, 0.05, 1e-8);
    }
    const Solved<Real> just_all = solve(distances, 20, 20);
    CHECK_EQUAL(just_all.missed, 0);
    CHECK_NEAR(perplexity_of_row(just_all.conditional, 0, 20), 20, 1e-4);
  });
}

TEST(only_bad_rows_are_counted) {
  std::vector<double> distances = random_distances<double>(1000, 20);
  for (const Size bad : {0, 300, 999}) {
    std::fill_n(distances.begin() + bad * 20, 20, 4.0);
  }
  for (const int threads : kThreadCounts) {
    CHECK_EQUAL(solve(distances, 20, 5, threads).missed, 3);
  }
}

TEST(rows_of_uncommon_shape) {
  for_reals([]<typename Real>() {
    const auto check_row = [](const char* name, const std::vector<Real>& row, double perplexity) {
      const check::Scope scope(name);
      const Size k = static_cast<Size>(row.size());
      const Solved<Real> solved = solve(row, k, perplexity);
      CHECK_EQUAL(solved.missed, 0);
      check_rows_are_distributions(solved, k);
      CHECK_NEAR(perplexity_of_row(solved.conditional, 0, k), perplexity, 1e-4);
    };
    std::vector<Real> row(90, Real(2));
    row[17] = 0;
    check_row("one nearer than the rest", row, 30);
    row.assign(90, Real(2));
    row[17] = Real(1e25);
    check_row("one far away", row, 89.5);
    for (std::size_t j = 0; j < row.size(); ++j) {
      row[j] = static_cast<Real>(std::pow(2.0, static_cast<double>(j)));
    }
    check_row("powers of two", row, 30);
    for (std::size_t j = 0; j < row.size(); ++j) {
      row[j] = Real(1) + static_cast<Real>(j) * kEpsilon<Real>;
    }
    check_row("last bits only", row, 30);
    check_row("perplexity near 1", random_distances<Real>(1, 90), 1.001);
    check_row("single neighbor", std::vector<Real>{3}, 1);
    check_row("two neighbors", std::vector<Real>{3, 4}, 1.5);
  });
}

TEST(betas_are_optional) {
  const std::vector<double> distances = random_distances<double>(10, 20);
  Solved<double> solved(10, 20);
  ThreadTeam team(2);
  CHECK_EQUAL(search_perplexity(solved.rows_of(distances, 20), 5, nullptr, team), 0);
  CHECK(same_bytes(solved.conditional, solve(distances, 20, 5).conditional));
}

TEST(reported_perplexities_are_those_of_the_rows) {
  for_reals([]<typename Real>() {
    std::vector<Real> distances = random_distances<Real>(300, 40);
    std::fill_n(distances.begin() + 80, 40, Real(4));  // uniform
    std::fill_n(distances.begin() + 120, 30, Real(0)); // more duplicates than the perplexity
    const Solved<Real> solved = solve(distances, 40, 12);
    CHECK_EQUAL(solved.missed, 2);
    for (Size i = 0; i < 300; ++i) {
      CHECK_NEAR(solved.perplexities[at(i)], perplexity_of_row(solved.conditional, i, 40), 1e-4);
    }
  });
}

TEST(mixtures_match_a_direct_sum) {
  constexpr Size kRows = 300;
  constexpr Size kNeighbors = 37;
  for_reals([&]<typename Real>() {
    const std::vector<double> perplexities{3, 8, 20};
    const std::vector<Real> distances = random_distances<Real>(kRows, kNeighbors, 5);
    std::vector<std::vector<double>> betas;
    for (const double perplexity : perplexities) {
      betas.push_back(solve(distances, kNeighbors, perplexity).betas);
    }
    for (const Mixing mixing : {Mixing::equal, Mixing::density}) {
      Solved<Real> mixed(kRows, kNeighbors);
      ThreadTeam team(2);
      CHECK_EQUAL(
          mix_perplexities<Real>(mixed.rows_of(distances, kNeighbors), perplexities, mixing, team),
          0);
      check_rows_are_distributions(mixed, kNeighbors);
      for (Size i = 0; i < kRows; ++i) {
        const auto density = [&](std::size_t h, Size j) {
          const double beta = betas[h][at(i)];
          const auto d = static_cast<double>(distances[at(i * kNeighbors + j)]);
          return std::sqrt(beta) * std::exp(-beta * d);
        };
        std::vector<double> expected(at(kNeighbors), 0.0);
        for (std::size_t h = 0; h < betas.size(); ++h) {
          double total = 0;
          for (Size j = 0; j < kNeighbors; ++j) {
            total += density(h, j);
          }
          for (Size j = 0; j < kNeighbors; ++j) {
            expected[at(j)] += density(h, j) / (mixing == Mixing::equal ? total : 1);
          }
        }
        const double sum = std::accumulate(expected.begin(), expected.end(), 0.0);
        for (Size j = 0; j < kNeighbors; ++j) {
          const double p = expected[at(j)] / sum;
          CHECK_NEAR(mixed.conditional[at(i * kNeighbors + j)], p, 1e-6 * p);
        }
        CHECK_NEAR(mixed.perplexities[at(i)], perplexity_of_row(mixed.conditional, i, kNeighbors),
                   1e-4);
      }
    }
  });
}

TEST(a_mixture_of_one_is_that_one) {
  const std::vector<double> distances = random_distances<double>(100, 30);
  const Solved<double> expected = solve(distances, 30, 7);
  for (const Mixing mixing : {Mixing::equal, Mixing::density}) {
    Solved<double> mixed(100, 30);
    ThreadTeam team(2);
    mix_perplexities<double>(mixed.rows_of(distances, 30), std::vector<double>{7.0}, mixing, team);
    for (std::size_t e = 0; e < distances.size(); ++e) {
      CHECK_NEAR(mixed.conditional[e], expected.conditional[e], 1e-15);
    }
  }
}

TEST(mixtures_of_rows_without_a_bandwidth) {
  ThreadTeam team(1);
  const std::vector<double> perplexities{2, 4};
  const auto mix = [&](const std::vector<double>& row, Mixing mixing) {
    const Size k = static_cast<Size>(row.size());
    Solved<double> mixed(1, k);
    mixed.missed = mix_perplexities<double>(mixed.rows_of(row, k), perplexities, mixing, team);
    check_rows_are_distributions(mixed, k);
    return mixed;
  };
  // All at one distance: uniform. More duplicates than either perplexity: uniform over those.
  for (const Mixing mixing : {Mixing::equal, Mixing::density}) {
    for (const double p : mix(std::vector<double>(8, 3.0), mixing).conditional) {
      CHECK_NEAR(p, 0.125, 1e-15);
    }
    const Solved<double> duplicates = mix({0, 0, 0, 0, 0, 1, 2, 3}, mixing);
    CHECK_EQUAL(duplicates.missed, 1);
    CHECK_NEAR(duplicates.conditional[0], 0.2, 1e-15);
    CHECK_EQUAL(duplicates.conditional[5], 0.0);
  }
  // Between the two, 3 at one distance: a density that is all at distance 0 outweighs any other,
  // one at another distance is nothing.
  CHECK_NEAR(mix({0, 0, 0, 1, 2, 3}, Mixing::density).perplexities[0], 3, 1e-12);
  CHECK_NEAR(mix({5, 5, 5, 6, 7, 8}, Mixing::density).perplexities[0], 4, 1e-8);
  // The shift cannot be a factor of all densities at once: in double precision they would vanish.
  CHECK_NEAR(mix({1e5, 1e5 + 1, 1e5 + 2, 1e5 + 3, 1e5 + 4}, Mixing::density).perplexities[0], 4,
             1e-8);
}

TEST(a_fixed_bandwidth_is_a_gaussian) {
  for_reals([]<typename Real>() {
    const std::vector<Real> distances = random_distances<Real>(50, 20);
    Solved<Real> solved(50, 20);
    ThreadTeam team(2);
    for (const double beta : {1e-9, 0.7, 1e9}) {
      fixed_bandwidth(solved.rows_of(distances, 20), beta, team);
      check_rows_are_distributions(solved, 20);
      for (Size i = 0; i < 50; ++i) {
        const Real* row = distances.data() + i * 20;
        const auto smallest = static_cast<double>(*std::min_element(row, row + 20));
        double sum = 0;
        for (Size j = 0; j < 20; ++j) {
          sum += std::exp(-beta * (static_cast<double>(row[j]) - smallest));
        }
        for (Size j = 0; j < 20; ++j) {
          const double p = std::exp(-beta * (static_cast<double>(row[j]) - smallest)) / sum;
          CHECK_NEAR(solved.conditional[at(i * 20 + j)], p, 1e-6 * p + 1e-37);
        }
        CHECK_NEAR(solved.perplexities[at(i)], perplexity_of_row(solved.conditional, i, 20), 1e-4);
      }
    }
  });
}

TEST(threads_do_not_change_mixtures_or_fixed_bandwidths) {
  const std::vector<float> distances = random_distances<float>(1000, 45);
  const std::vector<double> perplexities{4, 15};
  const auto rows = [&](int threads, bool fixed) {
    ThreadTeam team(threads);
    Solved<float> solved(1000, 45);
    if (fixed) {
      fixed_bandwidth(solved.rows_of(distances, 45), 0.8, team);
    } else {
      mix_perplexities<float>(solved.rows_of(distances, 45), perplexities, Mixing::density, team);
    }
    return solved;
  };
  for (const bool fixed : {false, true}) {
    const Solved<float> expected = rows(1, fixed);
    for (const int threads : kThreadCounts) {
      const Solved<float> solved = rows(threads, fixed);
      CHECK(same_bytes(solved.conditional, expected.conditional));
      CHECK(same_bytes(solved.perplexities, expected.perplexities));
    }
  }
}

TEST(joint_probabilities_match_a_dense_reference) {
  for_reals([]<typename Real>() {
    check_symmetrize<Real>(random_edges(2, 1));
    check_symmetrize<Real>(random_edges(3, 2));
    check_symmetrize<Real>(random_edges(40, 39));
    check_symmetrize<Real>(random_edges(600, 1));
    check_symmetrize<Real>(random_edges(1500, 7));  // more than one block of columns
    check_symmetrize<Real>(random_edges(4200, 2));  // in blocks as large data have them
    check_symmetrize<Real>(random_edges(1100, 10)); // three chunks of rows
  });
}

TEST(unsorted_rows_and_unknown_points_are_seen) {
  const std::vector<float> values(6, 1.0f);
  const auto is_sorted = [&](const std::vector<PointId>& indices) {
    ThreadTeam team(2);
    return is_sorted_by_column<float>({indices.data(), values.data(), 3, 2}, 3, team);
  };
  CHECK(is_sorted({1, 2, 0, 2, 0, 1}));
  CHECK(!is_sorted({1, 2, 2, 0, 0, 1}));
  CHECK(!is_sorted({1, 2, 0, 3, 0, 1}));
  CHECK(!is_sorted({-1, 2, 0, 2, 0, 1}));
}

TEST(threads_do_not_change_joint_probabilities) {
  // Each point is named by rows of several chunks, so that threads race for its slots.
  constexpr Size kRows = 20'000;
  constexpr Size kNeighbors = 20;
  NeighborLists edges{{}, {}, kRows, kNeighbors};
  for (Size i = 0; i < kRows; ++i) {
    for (Size e = 0; e < kNeighbors; ++e) {
      edges.indices.push_back(static_cast<PointId>((i + 1 + e * 97) % kRows));
      edges.values.push_back(1.0 / static_cast<double>(1 + e + i % 13));
    }
  }
  const Csr<float> expected = symmetrize_edges<float>(edges, 1);
  for (const int threads : {2, 3, 8, 2, 3, 8}) {
    CHECK(same_matrix(symmetrize_edges<float>(edges, threads), expected));
    // 400,000 edges, a few blocks of columns at a time.
    CHECK(same_matrix(symmetrize_edges<float>(edges, threads, false, 50'000), expected));
  }
}

int main() {
  return check::run_tests();
}
