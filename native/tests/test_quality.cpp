// The referee's KL divergence against its definition.
#include "check.hpp"
#include "data.hpp"
#include "plain_kl.hpp"
#include "quality/exact_kl.hpp"
#include "quality/ranks.hpp"

#include <algorithm>
#include <numeric>
#include <random>

using namespace acctsne;

namespace {

constexpr OutputKernel kOutputKernels[] = {{1, 1}, {0.5, 0.5}, {3, 3}, {1.5, 2}};

} // namespace

TEST(exact_kl_is_its_definition) {
  // More rows than a chunk has.
  const Csr<double> P = make_joint<double>(601, 7);
  for_levels([&] {
    for (const int dims : {1, 2, 3, 5}) {
      const std::vector<double> points = make_cloud<double>(Cloud::clustered, 601, dims);
      for (const OutputKernel& output_kernel : kOutputKernels) {
        const double expected = plain_kl(P, points, dims, output_kernel);
        ThreadTeam alone(1);
        const double kl = exact_kl(P.view(), points.data(), dims, output_kernel, alone);
        CHECK_NEAR(kl, expected, 1e-9);
        for (const int threads : {2, 3, 8}) {
          ThreadTeam team(threads);
          CHECK(exact_kl(P.view(), points.data(), dims, output_kernel, team) == kl);
        }
      }
    }
  });
}

TEST(exact_kl_of_points_far_apart_is_finite) {
  const Csr<double> P = make_joint<double>(50, 5);
  std::vector<double> points = make_cloud<double>(Cloud::clustered, 50, 2);
  for (double& value : points) {
    value *= 1e12;
  }
  ThreadTeam team(2);
  CHECK(std::isfinite(exact_kl(P.view(), points.data(), 2, {1000, 1000}, team)));
}

TEST(kl_by_point_sums_to_the_divergence) {
  const Csr<double> P = make_joint<double>(601, 7);
  for (const OutputKernel& output_kernel : kOutputKernels) {
    const std::vector<double> points = make_cloud<double>(Cloud::clustered, 601, 2);
    ThreadTeam alone(1);
    // Z from its definition, as every share's reference is.
    double z = 0;
    const auto similarity = [&](Size i, Size j) {
      const double d2 = squared(&points[at(2 * i)], &points[at(2 * j)], 2);
      const double unit = output_kernel.unit();
      return std::pow(1 + d2 / (unit * unit), -output_kernel.exponent);
    };
    for (Size i = 0; i < 601; ++i) {
      for (Size j = 0; j < 601; ++j) {
        z += i == j ? 0 : similarity(i, j);
      }
    }
    const std::vector<double> shares =
        kl_by_point(P.view(), points.data(), 2, output_kernel, z, alone);
    for (Size i = 0; i < 601; ++i) {
      double expected = 0;
      for (EdgeId e = P.offsets[at(i)]; e < P.offsets[at(i + 1)]; ++e) {
        const double p = P.values[at(e)];
        expected += p * std::log(p * z / similarity(i, P.columns[at(e)]));
      }
      CHECK_NEAR(shares[at(i)], expected, 1e-12);
    }
    for (const int threads : {2, 3, 8}) {
      ThreadTeam team(threads);
      CHECK(same_bytes(shares, kl_by_point(P.view(), points.data(), 2, output_kernel, z, team)));
    }
  }
}

namespace {

// The order in which a point meets the others: by distance, ties by index.
template <typename Real>
std::vector<PointId> order_of(const std::vector<Real>& points, Size rows, int dims, Size i) {
  std::vector<std::pair<double, PointId>> others;
  for (Size j = 0; j < rows; ++j) {
    if (j != i) {
      others.emplace_back(squared(&points[at(i * dims)], &points[at(j * dims)], dims),
                          static_cast<PointId>(j));
    }
  }
  std::sort(others.begin(), others.end());
  std::vector<PointId> order;
  for (const auto& [distance, id] : others) {
    order.push_back(id);
  }
  return order;
}

} // namespace

TEST(rank_penalties_are_their_definition) {
  constexpr Size kRows = 210; // not a multiple of a chunk
  constexpr Size kKnown = 12;
  constexpr Size kAsked = 9;
  const std::vector<Size> sizes{1, 5, 9};
  for_reals([&]<typename Real>() {
    // Whole numbers: many ties, and distances without rounding.
    std::mt19937_64 random(3);
    for (const int dims : {2, 19}) {
      std::vector<Real> points(at(kRows * dims));
      for (Real& value : points) {
        value = static_cast<Real>(random() % 7);
      }
      std::vector<PointId> nearest;
      std::vector<PointId> asked;
      std::vector<std::vector<PointId>> orders;
      for (Size i = 0; i < kRows; ++i) {
        orders.push_back(order_of(points, kRows, dims, i));
        nearest.insert(nearest.end(), orders.back().begin(), orders.back().begin() + kKnown);
        std::vector<PointId> others = orders.back();
        std::shuffle(others.begin() + 4, others.end(), random);
        asked.insert(asked.end(), others.begin() + 1, others.begin() + 1 + kAsked);
      }
      std::vector<PointId> all(at(kRows));
      std::iota(all.begin(), all.end(), PointId{0});
      const RankRequest<Real> request{{points.data(), kRows, dims, {}},
                                      nearest.data(),
                                      kKnown,
                                      asked.data(),
                                      kAsked,
                                      sizes,
                                      all};
      for_levels([&] {
        ThreadTeam alone(1);
        const Ranks ranks = rank_penalties(request, alone);
        for (Size i = 0; i < kRows; ++i) {
          for (std::size_t s = 0; s < sizes.size(); ++s) {
            int kept = 0;
            double penalty = 0;
            for (Size p = 0; p < sizes[s]; ++p) {
              const std::vector<PointId>& order = orders[at(i)];
              const auto place =
                  std::find(order.begin(), order.end(), asked[at(i * kAsked + p)]) - order.begin();
              kept += place < sizes[s] ? 1 : 0;
              penalty += static_cast<double>(std::max<Size>(0, place + 1 - sizes[s]));
            }
            CHECK_EQUAL(ranks.kept[at(i) * sizes.size() + s], kept);
            CHECK_EQUAL(ranks.penalties[at(i) * sizes.size() + s], penalty);
            CHECK_EQUAL(ranks.variances[at(i) * sizes.size() + s], 0.0);
          }
        }
        if constexpr (sizeof(Real) == sizeof(float)) {
          const std::vector<std::uint8_t> bytes(points.begin(), points.end());
          RankRequest<Real> of_bytes = request;
          of_bytes.points.data = bytes.data();
          of_bytes.points.layout.stored = Stored::byte;
          CHECK(same_bytes(ranks.penalties, rank_penalties(of_bytes, alone).penalties));
        }
        for (const int threads : {2, 3, 8}) {
          ThreadTeam team(threads);
          const Ranks again = rank_penalties(request, team);
          CHECK(same_bytes(ranks.kept, again.kept));
          CHECK(same_bytes(ranks.penalties, again.penalties));
          CHECK(same_bytes(ranks.by_reference, again.by_reference));
        }
      });
    }
  });
}

TEST(sampled_ranks_are_right_on_average) {
  constexpr Size kRows = 400;
  constexpr Size kKnown = 5;
  const std::vector<Size> sizes{3};
  const std::vector<double> points = make_cloud<double>(Cloud::uniform, kRows, 3);
  std::vector<PointId> nearest;
  std::vector<PointId> asked;
  for (Size i = 0; i < kRows; ++i) {
    const std::vector<PointId> order = order_of(points, kRows, 3, i);
    nearest.insert(nearest.end(), order.begin(), order.begin() + kKnown);
    for (const Size place : {20, 1, 150}) {
      asked.push_back(order[at(place)]);
    }
  }
  const double expected = (21 - 3) + 0 + (151 - 3);
  std::vector<PointId> all(at(kRows));
  std::iota(all.begin(), all.end(), PointId{0});
  std::mt19937_64 random(1);
  ThreadTeam team(2);
  // Over many samples, errors of points are as large as said, and the mean error vanishes.
  double mean = 0;
  double normed = 0;
  constexpr int kRounds = 60;
  for (int round = 0; round < kRounds; ++round) {
    std::shuffle(all.begin(), all.end(), random);
    std::vector<PointId> references(all.begin(), all.begin() + 80);
    const RankRequest<double> request{
        {points.data(), kRows, 3, {}}, nearest.data(), kKnown, asked.data(), 3, sizes, references};
    const Ranks ranks = rank_penalties(request, team);
    for (Size i = 0; i < kRows; ++i) {
      const double error = ranks.penalties[at(i)] - expected;
      mean += error / (kRounds * kRows);
      normed += error * error / ranks.variances[at(i)] / (kRounds * kRows);
    }
  }
  CHECK_NEAR(mean, 0.0, 1.0);   // of 166; the error of a point is about 17
  CHECK_NEAR(normed, 1.0, 0.1); // a squared error in units of the variance
}

int main() {
  return check::run_tests();
}
