// The approximate neighbour search against the exact one.
#include "neighbors/approximate.hpp"

#include "check.hpp"
#include "data.hpp"
#include "projection.hpp"

#include <set>

using namespace acctsne;

namespace {

template <typename Real>
struct Found {
  std::vector<PointId> indices;
  std::vector<Real> squared_distances;
  double recall; // as the search estimates it from every point
};

template <typename Real, typename Data>
Found<Real> find(const PointSet<Data>& points, Size k, int threads, ApproximateEffort effort = {}) {
  Found<Real> found{std::vector<PointId>(at(points.rows * k)),
                    std::vector<Real>(at(points.rows * k)), 0};
  std::vector<PointId> sample(at(points.rows));
  std::iota(sample.begin(), sample.end(), PointId{0});
  std::atomic<Size> done{0};
  ThreadTeam team(threads);
  found.recall = approximate_neighbors<Data>(
      {points, k, found.indices.data(), found.squared_distances.data(), &done}, effort, sample,
      team);
  CHECK_EQUAL(done.load(), points.rows);
  return found;
}

// The part of the neighbours that are as near as the true ones; checks on the way that they are
// neighbours at all.
template <typename Real, typename Data>
double true_recall(const Found<Real>& found, const PointSet<Data>& points, Size k) {
  std::vector<PointId> indices(at(points.rows * k));
  std::vector<Real> exact(at(points.rows * k));
  ThreadTeam team(2);
  exact_neighbors<Data>({points, k, indices.data(), exact.data()}, team);
  const Real rounding = 1 + 8 * kEpsilon<Real>; // among few points, the exact search uses double
  Size hits = 0;
  for (Size i = 0; i < points.rows; ++i) {
    std::set<PointId> seen;
    for (Size j = i * k; j < (i + 1) * k; ++j) {
      const PointId id = found.indices[at(j)];
      CHECK(id >= 0 && id < points.rows && id != i);
      CHECK(seen.insert(id).second);
      CHECK(found.squared_distances[at(j)] * rounding >= exact[at(j)]);
      hits += found.squared_distances[at(j)] <= exact[at((i + 1) * k - 1)] * rounding ? 1 : 0;
    }
  }
  return static_cast<double>(hits) / static_cast<double>(points.rows * k);
}

// Clusters of unequal width.
template <typename Data>
std::vector<Data> clustered_data(Size rows, Size features) {
  const std::vector<double> centres = normal_data<double>(20, features, 4, 0, 5);
  std::vector<double> data = normal_data<double>(rows, features);
  for (Size i = 0; i < rows; ++i) {
    for (Size f = 0; f < features; ++f) {
      double& value = data[at(i * features + f)];
      value = centres[at(i % 20 * features + f)] + value * static_cast<double>(i % 20 + 5) / 15;
    }
  }
  return {data.begin(), data.end()};
}

} // namespace

TEST(the_same_bytes_with_any_number_of_threads) {
  for_reals([]<typename Real>() {
    for (const Size features : {8, 40}) {
      const std::vector<Real> data = clustered_data<Real>(2603, features);
      const Projected<Real> projected(data, features, poor_frame(data, features));
      for_levels([&] {
        const Found<Real> found = find<Real>(projected.points(), 15, 1, {4, 1.5, 2});
        CHECK(found.recall < 1); // so that there is something that could differ
        for (const int threads : kThreadCounts) {
          const Found<Real> again = find<Real>(projected.points(), 15, threads, {4, 1.5, 2});
          CHECK(same_bytes(again.indices, found.indices));
          CHECK(same_bytes(again.squared_distances, found.squared_distances));
          CHECK_EQUAL(again.recall, found.recall);
        }
      });
    }
  });
}

TEST(finds_nearly_all_and_knows_how_many) {
  for_reals([]<typename Real>() {
    const std::vector<Real> data = clustered_data<Real>(6000, 10);
    const Projected<Real> projected(data, 10, poor_frame(data, 10));
    for_levels([&] {
      const Found<Real> found = find<Real>(projected.points(), 30, 2);
      CHECK(found.recall > 0.99);
      CHECK_NEAR(found.recall, true_recall(found, projected.points(), 30), 1e-4);
    });
  });
}

TEST(more_effort_finds_more) {
  const std::vector<float> data = clustered_data<float>(6000, 10);
  const Projected<float> projected(data, 10, poor_frame(data, 10));
  const auto recall = [&](ApproximateEffort effort) {
    return find<float>(projected.points(), 30, 2, effort).recall;
  };
  const double least = recall({2, 1, 0});
  CHECK(recall({8, 1, 0}) > least);
  CHECK(recall({2, 1, 5}) > least);
  CHECK(recall({8, 3, 0}) > recall({8, 1, 0}));
}

TEST(effort_grows_with_the_points) {
  CHECK_EQUAL(ApproximateEffort::of(2).cells, ApproximateEffort{}.cells);
  CHECK_EQUAL(ApproximateEffort::of(1'000'000).cells, ApproximateEffort{}.cells);
  // 32^0.6 = 8, which may be rounded to less.
  const Size cells = ApproximateEffort::of(32'000'000).cells;
  CHECK(cells == 8 * ApproximateEffort{}.cells || cells == 8 * ApproximateEffort{}.cells - 1);
  CHECK(ApproximateEffort::of(Size{1} << 31).cells > 10'000);
}

TEST(distances_in_double_of_float_data) {
  const std::vector<float> data = clustered_data<float>(3000, 10);
  const Projected<float> projected(data, 10, poor_frame(data, 10));
  const Found<double> found = find<double>(projected.points(), 10, 2);
  CHECK(true_recall(found, projected.points(), 10) > 0.99);
}

TEST(few_points_and_all_others_as_neighbors) {
  for_reals([]<typename Real>() {
    for (const Size rows : {2, 3, 40, 256, 257, 700}) {
      const std::vector<Real> data = normal_data<Real>(rows, 3);
      const Projected<Real> projected(data, 3, poor_frame(data, 3));
      for (const Size k : {Size{1}, rows - 1}) {
        const Found<Real> found = find<Real>(projected.points(), k, 2);
        CHECK_EQUAL(found.recall, 1.0);
        CHECK_EQUAL(true_recall(found, projected.points(), k), 1.0);
      }
    }
  });
}

TEST(duplicates_and_tight_clusters_far_apart) {
  for_reals([]<typename Real>() {
    const std::vector<Real> equal(600 * 4, Real(2.5));
    const Projected<Real> same(equal, 4, poor_frame(equal, 4));
    CHECK_EQUAL(true_recall(find<Real>(same.points(), 20, 2), same.points(), 20), 1.0);

    std::vector<Real> data = normal_data<Real>(3000, 5, 0.1);
    for (Size i = 0; i < 3000; ++i) {
      data[at(i * 5)] += static_cast<Real>(i % 2 == 0 ? 1000 : -1000);
    }
    const Projected<Real> far(data, 5, poor_frame(data, 5));
    CHECK(true_recall(find<Real>(far.points(), 20, 2), far.points(), 20) > 0.98);
  });
}

TEST(a_poll_cancels_the_search) {
  const std::vector<float> data = normal_data<float>(60'000, 20);
  const Projected<float> projected(data, 20, poor_frame(data, 20));
  std::vector<PointId> indices(60'000 * 30);
  std::vector<float> distances(60'000 * 30);
  const std::vector<PointId> sample{0};
  ThreadTeam team(2, [] { return true; });
  CHECK(check::throws<Cancelled>([&] {
    approximate_neighbors<float>({projected.points(), 30, indices.data(), distances.data()}, {},
                                 sample, team);
  }));
}

int main() {
  return check::run_tests();
}
