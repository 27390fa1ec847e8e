// The sparse search against all pairs of rows made dense.
#include "check.hpp"
#include "data.hpp"
#include "neighbors/sparse.hpp"

#include <algorithm>
#include <cmath>
#include <random>

using namespace acctsne;

namespace {

constexpr SparseMetric kMetrics[] = {SparseMetric::euclidean, SparseMetric::cosine,
                                     SparseMetric::correlation};

// Whole numbers from -3 to 3, so that distances tie exactly; every 40th row is a copy of an earlier
// one, every 53rd has a single entry.
template <typename Data>
Csr<Data> make_sparse(Size rows, Size features, double filled, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform;
  Csr<Data> matrix;
  matrix.offsets.push_back(0);
  for (Size i = 0; i < rows; ++i) {
    if (i % 40 == 39) {
      const auto begin = matrix.offsets[at(i - 20)];
      const auto end = matrix.offsets[at(i - 19)];
      for (EdgeId e = begin; e < end; ++e) {
        matrix.columns.push_back(PointId{matrix.columns[at(e)]});
        matrix.values.push_back(Data{matrix.values[at(e)]});
      }
    } else {
      for (Size c = 0; c < features; ++c) {
        // Some columns are nearly full.
        const double chance = i % 53 == 52 ? (c == 0 ? 1 : 0) : (c % 31 == 5 ? 0.9 : filled);
        if (uniform(random) < chance) {
          matrix.columns.push_back(static_cast<PointId>(c));
          matrix.values.push_back(static_cast<Data>(static_cast<int>(random() % 7) - 3));
        }
      }
    }
    matrix.offsets.push_back(static_cast<EdgeId>(matrix.columns.size()));
  }
  return matrix;
}

template <typename Data>
std::vector<double> dense_row(const Csr<Data>& matrix, Size i, Size features, SparseMetric metric) {
  std::vector<double> row(at(features));
  for (EdgeId e = matrix.offsets[at(i)]; e < matrix.offsets[at(i + 1)]; ++e) {
    row[at(matrix.columns[at(e)])] = static_cast<double>(matrix.values[at(e)]);
  }
  if (metric == SparseMetric::euclidean) {
    return row;
  }
  if (metric == SparseMetric::correlation) {
    double mean = 0;
    for (const double value : row) {
      mean += value / static_cast<double>(features);
    }
    for (double& value : row) {
      value -= mean;
    }
  }
  double length = 0;
  for (const double value : row) {
    length += value * value;
  }
  for (double& value : row) {
    value /= length > 0 ? std::sqrt(length) : 1;
  }
  return row;
}

bool any(const std::vector<double>& row) {
  return std::any_of(row.begin(), row.end(), [](double value) { return value != 0; });
}

// Squared distances of a row from all points; infinite from itself if it is one of them.
template <typename Data>
std::vector<double> all_distances(const Csr<Data>& queries, Size i, const Csr<Data>& points,
                                  Size features, SparseMetric metric, bool among_themselves) {
  const std::vector<double> query = dense_row(queries, i, features, metric);
  std::vector<double> distances;
  for (Size j = 0; j < points.view().rows(); ++j) {
    const std::vector<double> point = dense_row(points, j, features, metric);
    const bool has_length = metric == SparseMetric::euclidean || (any(query) && any(point));
    distances.push_back(among_themselves && i == j ? std::numeric_limits<double>::infinity()
                        : has_length
                            ? squared(query.data(), point.data(), static_cast<int>(features))
                            : 2.0);
  }
  return distances;
}

template <typename Data>
struct Found {
  std::vector<PointId> indices;
  std::vector<double> squared;

  Found(const Csr<Data>& points, const Csr<Data>* queries, Size features, SparseMetric metric,
        Size k, int threads) {
    const Size count = (queries ? *queries : points).view().rows();
    indices.resize(at(count * k));
    squared.resize(at(count * k));
    const SparseRequest<Data> request{points.view(),  features,      metric, k,
                                      indices.data(), squared.data()};
    ThreadTeam team(threads);
    if (queries) {
      sparse_neighbors(request, queries->view(), team);
    } else {
      sparse_neighbors(request, team);
    }
  }
};

// Checks every row's neighbours: in order, distinct, with their distances, and none nearer left
// out.
template <typename Data>
void check_found(const Found<Data>& found, const Csr<Data>& queries, const Csr<Data>& points,
                 Size features, SparseMetric metric, Size k, bool among_themselves) {
  // Of whole numbers, Euclidean distances have no rounding: ties must go to the lower index.
  const bool exact = metric == SparseMetric::euclidean;
  for (Size i = 0; i < queries.view().rows(); ++i) {
    const std::vector<double> all =
        all_distances(queries, i, points, features, metric, among_themselves);
    std::vector<PointId> order(all.size());
    std::iota(order.begin(), order.end(), PointId{0});
    std::sort(order.begin(), order.end(), [&](PointId a, PointId b) {
      return std::pair(all[at(a)], a) < std::pair(all[at(b)], b);
    });
    for (Size j = 0; j < k; ++j) {
      const PointId id = found.indices[at(i * k + j)];
      const double expected = all[at(order[at(j)])];
      CHECK_NEAR(found.squared[at(i * k + j)], expected, 1e-12);
      CHECK_NEAR(all[at(id)], expected, 1e-12);
      if (exact) {
        CHECK_EQUAL(id, order[at(j)]);
      }
    }
    std::vector<PointId> ids(found.indices.begin() + i * k, found.indices.begin() + (i + 1) * k);
    std::sort(ids.begin(), ids.end());
    CHECK(std::adjacent_find(ids.begin(), ids.end()) == ids.end());
  }
}

} // namespace

TEST(sparse_neighbors_are_those_of_dense_rows) {
  for_reals([&]<typename Data>() {
    const Csr<Data> points = make_sparse<Data>(330, 70, 0.15, 1);
    const Csr<Data> queries = make_sparse<Data>(90, 70, 0.1, 2);
    for (const SparseMetric metric : kMetrics) {
      const check::Scope scope(std::to_string(static_cast<int>(metric)));
      const Found<Data> among(points, nullptr, 70, metric, 7, 1);
      check_found(among, points, points, 70, metric, 7, true);
      const Found<Data> asked(points, &queries, 70, metric, 330, 2);
      check_found(asked, queries, points, 70, metric, 330, false);
    }
  });
}

TEST(sparse_neighbors_are_the_same_at_any_level_and_number_of_threads) {
  // Several blocks, an odd number of them, the last one short.
  const Csr<float> points = make_sparse<float>(2 * 4096 + 300, 40, 0.1, 3);
  const Found<float> alone(points, nullptr, 40, SparseMetric::cosine, 11, 1);
  for_levels([&] {
    for (const int threads : kThreadCounts) {
      const Found<float> team(points, nullptr, 40, SparseMetric::cosine, 11, threads);
      CHECK(same_bytes(alone.indices, team.indices));
      CHECK(same_bytes(alone.squared, team.squared));
    }
  });
  // Pairs of blocks find what each query finds by itself, but for the query.
  const Found<float> asked(points, &points, 40, SparseMetric::euclidean, 11, 3);
  const Found<float> among(points, nullptr, 40, SparseMetric::euclidean, 10, 3);
  for (Size i = 0; i < points.view().rows(); ++i) {
    std::vector<PointId> others;
    for (Size j = 0; j < 11; ++j) {
      if (asked.indices[at(i * 11 + j)] != i) {
        others.push_back(asked.indices[at(i * 11 + j)]);
      }
    }
    CHECK(std::equal(others.begin(), others.begin() + 10, among.indices.begin() + i * 10));
  }
}

TEST(near_duplicates_keep_their_digits) {
  // Lengths of 1000 and differences of 1e-5: seven digits would be lost of sixteen.
  Csr<double> points;
  points.offsets = {0, 2, 4, 6};
  points.columns = {1, 3, 1, 3, 1, 3};
  points.values = {1000, 7, 1000 + 1e-5, 7, 1000, 7 + 3e-5};
  const Found<double> found(points, nullptr, 5, SparseMetric::euclidean, 2, 1);
  CHECK_EQUAL(found.indices[0], 1);
  CHECK_NEAR(found.squared[0] / 1e-10, 1.0, 1e-6);
  CHECK_NEAR(found.squared[1] / 9e-10, 1.0, 1e-6);
}

int main() {
  return check::run_tests();
}
