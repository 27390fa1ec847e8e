// The neighbour search against all pairs in double.
#include "neighbors/exact.hpp"

#include "check.hpp"
#include "data.hpp"
#include "neighbors/cell_search.hpp"
#include "projection.hpp"

#include <set>

using namespace acctsne;

namespace {

template <typename Real>
struct Found {
  std::vector<PointId> indices;
  std::vector<Real> squared_distances;
  double scale;
};

template <typename Real, typename Data>
Found<Real> find(const std::vector<Data>& data, Size features, Size k, int threads) {
  const Frame frame = poor_frame(data, features);
  const Projected<Data> projected(data, features, frame);
  const Size rows = projected.rows();
  ThreadTeam team(threads);
  std::atomic<Size> done{0};
  Found<Real> found{std::vector<PointId>(at(rows * k)), std::vector<Real>(at(rows * k)),
                    frame.origin.scale};
  exact_neighbors<Data>(
      {projected.points(), k, found.indices.data(), found.squared_distances.data(), &done}, team);
  CHECK_EQUAL(done.load(), rows);
  return found;
}

template <typename Data>
std::vector<double> distances_of(const std::vector<Data>& data, Size features, Size query,
                                 double scale) {
  const Size rows = static_cast<Size>(data.size()) / features;
  std::vector<double> distances(at(rows), 0.0);
  for (Size j = 0; j < rows; ++j) {
    for (Size f = 0; f < features; ++f) {
      const double difference = static_cast<double>(data[at(query * features + f)]) * scale -
                                static_cast<double>(data[at(j * features + f)]) * scale;
      distances[at(j)] += difference * difference;
    }
  }
  return distances;
}

// The k nearest of a row by distance and index, of data whose distances are exact.
template <typename Data>
std::vector<PointId> nearest_of(const std::vector<Data>& data, Size features, Size query, Size k) {
  const std::vector<double> distances = distances_of(data, features, query, 1);
  std::vector<PointId> nearest(distances.size());
  std::iota(nearest.begin(), nearest.end(), PointId{0});
  nearest.erase(nearest.begin() + query);
  std::sort(nearest.begin(), nearest.end(), [&](PointId a, PointId b) {
    return std::pair(distances[at(a)], a) < std::pair(distances[at(b)], b);
  });
  nearest.resize(at(k));
  return nearest;
}

// The distances must be the k smallest and belong to the indices; among equal ones any index will
// do.
template <typename Real, typename Data>
void check_found(const Found<Real>& found, const std::vector<Data>& data, Size features, Size k,
                 Size every = 1) {
  const Size rows = static_cast<Size>(data.size()) / features;
  CHECK(found.scale > 0 && std::isfinite(found.scale));
  int exponent = 0;
  CHECK_EQUAL(std::frexp(found.scale, &exponent), 0.5); // a power of two
  // Sums of up to a hundred terms, in the precision of data and result.
  const double tolerance = 8 * std::max<double>(kEpsilon<Real>, 8 * kEpsilon<double>);
  for (Size i = 0; i < rows; i += every) {
    const std::vector<double> distances = distances_of(data, features, i, found.scale);
    std::vector<double> expected = distances;
    expected.erase(expected.begin() + i);
    std::partial_sort(expected.begin(), expected.begin() + k, expected.end());
    std::set<PointId> seen;
    for (Size j = 0; j < k; ++j) {
      const PointId id = found.indices[at(i * k + j)];
      const auto distance = static_cast<double>(found.squared_distances[at(i * k + j)]);
      if (id < 0 || id >= rows) {
        CHECK(id >= 0 && id < rows);
        continue;
      }
      CHECK(id != i);
      CHECK(seen.insert(id).second);
      CHECK_NEAR(distance, distances[at(id)], tolerance * distances[at(id)]);
      CHECK_NEAR(distance, expected[at(j)], tolerance * expected[at(j)]);
      CHECK(j == 0 || distance >= static_cast<double>(found.squared_distances[at(i * k + j - 1)]));
    }
  }
}

// At every level: right with one thread, for one row of so many, and the same bytes with more.
template <typename Real, typename Data>
void check_search(const char* name, const std::vector<Data>& data, Size features, Size k,
                  Size every = 1) {
  const check::Scope scope(std::string(name) + ", " + std::to_string(features) + " features, k " +
                           std::to_string(k));
  for_levels([&] {
    const Found<Real> found = find<Real>(data, features, k, 1);
    check_found(found, data, features, k, every);
    for (const int threads : kThreadCounts) {
      const Found<Real> again = find<Real>(data, features, k, threads);
      CHECK(same_bytes(again.indices, found.indices));
      CHECK(same_bytes(again.squared_distances, found.squared_distances));
      CHECK_EQUAL(again.scale, found.scale);
    }
  });
}

template <typename Real, typename Data>
Found<Real> find_for(const std::vector<Data>& queries, const std::vector<Data>& data, Size features,
                     Size k, int threads) {
  const Frame frame = poor_frame(data, features);
  const Projected<Data> projected(data, features, frame);
  const Projected<Data> asked(queries, features, frame);
  ThreadTeam team(threads);
  Found<Real> found{std::vector<PointId>(at(asked.rows() * k)),
                    std::vector<Real>(at(asked.rows() * k)), frame.origin.scale};
  exact_neighbors<Data>(
      {projected.points(), k, found.indices.data(), found.squared_distances.data()}, asked.points(),
      team);
  return found;
}

// Queries against points: right, and the same alone as with others.
template <typename Real, typename Data>
void check_queries(const std::vector<Data>& queries, const std::vector<Data>& data, Size features,
                   Size k) {
  for_levels([&] {
    const Found<Real> found = find_for<Real>(queries, data, features, k, 2);
    const Size count = static_cast<Size>(queries.size()) / features;
    for (Size q = 0; q < count; ++q) {
      const std::vector<Data> alone(queries.begin() + q * features,
                                    queries.begin() + (q + 1) * features);
      std::vector<std::pair<double, PointId>> expected;
      for (Size j = 0; j < static_cast<Size>(data.size()) / features; ++j) {
        double distance = 0;
        for (Size f = 0; f < features; ++f) {
          distance += std::pow((static_cast<double>(alone[at(f)]) -
                                static_cast<double>(data[at(j * features + f)])) *
                                   found.scale,
                               2);
        }
        expected.emplace_back(distance, static_cast<PointId>(j));
      }
      std::sort(expected.begin(), expected.end());
      const double tolerance = 8 * std::max<double>(kEpsilon<Real>, 8 * kEpsilon<double>);
      for (Size j = 0; j < k; ++j) {
        CHECK_NEAR(found.squared_distances[at(q * k + j)], expected[at(j)].first,
                   tolerance * expected[at(j)].first);
      }
      if (q % 10 == 0) {
        const Found<Real> again = find_for<Real>(alone, data, features, k, 1);
        CHECK(
            std::equal(again.indices.begin(), again.indices.end(), found.indices.begin() + q * k));
        CHECK(std::equal(again.squared_distances.begin(), again.squared_distances.end(),
                         found.squared_distances.begin() + q * k));
      }
    }
  });
}

} // namespace

TEST(finds_the_nearest_in_any_number_of_features) {
  for_reals([]<typename Real>() {
    for (const Size features : {1, 2, 17, 33, 64, 100}) {
      check_search<Real>("normal", normal_data<Real>(203, features), features, 20);
    }
  });
}

TEST(rows_need_not_fill_a_panel) {
  for_reals([]<typename Real>() {
    for (const Size rows : {2, 3, 40, 127, 128, 129, 161}) {
      const Size k = std::min<Size>(rows - 1, 5);
      check_search<Real>("few rows", normal_data<Real>(rows, 3), 3, k);
    }
  });
}

TEST(k_from_one_to_all_others) {
  for_reals([]<typename Real>() {
    for (const Size k : {1, 90, 149}) {
      check_search<Real>("normal", normal_data<Real>(150, 5), 5, k);
    }
  });
}

TEST(data_and_distances_may_differ_in_type) {
  check_search<double>("float data", normal_data<float>(203, 17), 17, 20);
  check_search<float>("double data", normal_data<double>(203, 17), 17, 20);
}

TEST(a_large_offset_costs_nothing) {
  check_search<double>("offset 1e9", normal_data<double>(203, 10, 1, 1e9), 10, 20);
  check_search<double>("offset 1e9, close", normal_data<double>(203, 10, 1e-5, 1e9), 10, 20);
}

TEST(tight_clusters_far_apart) {
  // Within a cluster all float bounds agree: the filter can prove nothing and the search must
  // notice.
  for_reals([]<typename Real>() {
    constexpr Size kRows = 300;
    constexpr Size kFeatures = 10;
    const double spread = sizeof(Real) == 4 ? 1e-2 : 1e-6;
    std::vector<Real> data = normal_data<Real>(kRows, kFeatures, spread);
    for (Size i = 0; i < kRows; ++i) {
      for (Size f = 0; f < kFeatures; ++f) {
        data[at(i * kFeatures + f)] += static_cast<Real>((i % 3 == f % 3 ? 1000 : -500));
      }
    }
    check_search<Real>("clusters", data, kFeatures, 20);
  });
}

TEST(equal_points_and_duplicates) {
  for_reals([]<typename Real>() {
    check_search<Real>("all equal", std::vector<Real>(200 * 4, Real(2.5)), 4, 20);
    check_search<Real>("all zero", std::vector<Real>(200 * 4, Real(0)), 4, 20);
    for (const Cloud cloud : {Cloud::half_duplicated, Cloud::two_point, Cloud::outlier}) {
      check_search<Real>(name_of(cloud), make_cloud<Real>(cloud, 203, 3), 3, 20);
    }
  });
}

TEST(ties_go_to_the_lower_index) {
  // Coordinates that are small integers: every distance is exact, in the search and here.
  for_reals([]<typename Real>() {
    constexpr Size kRows = 250;
    constexpr Size kNeighbors = 12;
    std::mt19937_64 random(12);
    std::uniform_int_distribution<int> uniform(0, 4);
    std::vector<Real> data(kRows * 3);
    std::generate(data.begin(), data.end(), [&] { return static_cast<Real>(uniform(random)); });
    for_levels([&] {
      const Found<Real> found = find<Real>(data, 3, kNeighbors, 3);
      for (Size i = 0; i < kRows; ++i) {
        const std::vector<PointId> expected = nearest_of(data, 3, i, kNeighbors);
        CHECK(std::equal(expected.begin(), expected.end(), found.indices.begin() + i * kNeighbors));
      }
    });
  });
}

TEST(squares_that_overflow_or_vanish) {
  for_reals([]<typename Real>() {
    for (const double scale : {1e-30, 1e-13, 1e13, 1e30}) {
      check_search<Real>("scaled", normal_data<Real>(203, 5, scale), 5, 20);
    }
  });
  for (const double scale : {1e-200, 1e200}) {
    check_search<double>("scaled", normal_data<double>(203, 5, scale), 5, 20);
    check_search<float>("scaled", normal_data<double>(203, 5, scale), 5, 20);
  }
}

TEST(subnormal_numbers) {
  check_search<double>("subnormal", normal_data<double>(203, 5, 1e-310), 5, 20);
}

TEST(the_largest_numbers) {
  // Two coordinates may differ by more than the type can hold.
  std::vector<double> data = normal_data<double>(203, 5);
  for (double& value : data) {
    value = std::clamp(value, -3.0, 3.0) * 0.5e308;
  }
  check_search<double>("largest", data, 5, 202);
}

TEST(a_cluster_at_the_mean_whose_float_squares_vanish) {
  // Pairs of opposite rows keep the mean at 0 and the extent at 1; the others sit so close to the
  // mean that float holds their squares with a few bits or none.
  for (const double spread : {1e-19, 1e-21, 1e-22, 1e-23}) {
    constexpr Size kRows = 300;
    std::vector<double> data = normal_data<double>(kRows, 4, spread);
    for (Size i = 0; i < 20; ++i) {
      for (Size f = 0; f < 4; ++f) {
        data[at(i * 4 + f)] = i % 2 == 0 ? 1.0 + static_cast<double>(i) : -static_cast<double>(i);
      }
    }
    check_search<double>("near the mean", data, 4, 20);
  }
}

TEST(clusters_of_several_cells_far_apart_for_their_size) {
  // Coordinates in float are off by more than the clusters' own distances, so bounding spheres
  // prove nothing.
  for (const double apart : {1e3, 1e6}) {
    std::vector<double> data = normal_data<double>(1500, 3);
    for (Size i = 0; i < 1500; ++i) {
      data[at(i * 3)] += i % 2 == 0 ? apart : -apart;
    }
    check_search<double>("far apart", data, 3, 12);
    check_search<float>("far apart", data, 3, 12);
  }
}

// Random whole numbers.
template <typename Data>
std::vector<Data> whole_data(Size rows, Size features, int largest) {
  std::mt19937_64 random(15);
  std::uniform_int_distribution<int> uniform(0, largest);
  std::vector<Data> data(at(rows * features));
  std::generate(data.begin(), data.end(), [&] { return static_cast<Data>(uniform(random)); });
  return data;
}

TEST(data_of_bytes) {
  for_reals([]<typename Data>() {
    for (const Size features : {63, 64, 100}) {
      check_search<float>("bytes", whole_data<Data>(600, features, 255), features, 20);
      check_search<double>("bytes", whole_data<Data>(600, features, 255), features, 20);
    }
    // Black and white, with the largest distances.
    std::vector<Data> data = whole_data<Data>(600, 70, 1);
    std::transform(data.begin(), data.end(), data.begin(), [](Data value) { return 255 * value; });
    check_search<Data>("black and white", data, 70, 20);
    // One number in one row is another.
    for (const double other : {-1.0, 256.0, 0.5}) {
      data = whole_data<Data>(600, 70, 255);
      data[at(599 * 70 + 3)] = static_cast<Data>(other);
      check_search<Data>("almost bytes", data, 70, 20);
      check_queries<Data>(data, whole_data<Data>(600, 70, 255), 70, 5);
    }
    check_queries<Data>(whole_data<Data>(30, 70, 200), whole_data<Data>(600, 70, 255), 70, 5);
    // Ties among them go to the lower index, too.
    data = whole_data<Data>(600, 70, 1);
    for_levels([&] {
      const Found<Data> found = find<Data>(data, 70, 20, 2);
      for (Size i = 0; i < 600; ++i) {
        const std::vector<PointId> expected = nearest_of(data, 70, i, 20);
        CHECK(std::equal(expected.begin(), expected.end(), found.indices.begin() + i * 20));
      }
    });
  });
}

// So many that eight threads visit cells in pairs, the last cell being short.
constexpr Size kPairedRows = 8 * kPairedCells * kCellPoints + 100;

TEST(cells_in_pairs) {
  // Clusters, one inside the other or beside it, of which some cells see each other, some only in
  // part, some not at all. Features vary less and less, or the search would take long.
  for (const Size features : {kPairedDims, 3 * kPairedDims}) {
    std::vector<float> data = normal_data<float>(kPairedRows, features);
    for (Size i = 0; i < kPairedRows; ++i) {
      for (Size f = 0; f < features; ++f) {
        float& value = data[at(i * features + f)];
        value /= static_cast<float>(1 + f);
        value = i % 4 == 0 ? 3 * value : i % 4 == 1 ? value : value / 4 + static_cast<float>(i % 4);
      }
    }
    check_search<float>("float", data, features, 30, 211);
    if (features == kPairedDims) {
      const std::vector<double> doubles(data.begin(), data.end());
      check_search<double>("double", doubles, features, 30, 211);
    }
  }
}

TEST(ties_between_cells_in_pairs) {
  // Few different coordinates, so that most distances are equal to others, and exact.
  const std::vector<float> data = whole_data<float>(kPairedRows, kPairedDims, 2);
  constexpr Size kNeighbors = 20;
  for_levels([&] {
    for (const int threads : {1, 3}) {
      const Found<float> found = find<float>(data, kPairedDims, kNeighbors, threads);
      for (Size i = 0; i < kPairedRows; i += 511) {
        const std::vector<PointId> expected = nearest_of(data, kPairedDims, i, kNeighbors);
        CHECK(std::equal(expected.begin(), expected.end(), found.indices.begin() + i * kNeighbors));
      }
    }
  });
}

TEST(queries_among_other_points) {
  for_reals([]<typename Real>() {
    for (const Size features : {2, 30}) {
      check_queries<Real>(normal_data<Real>(70, features, 1.5, 0.5, 12),
                          normal_data<Real>(700, features), features, 20);
    }
  });
  check_queries<double>(normal_data<float>(30, 30, 1, 0, 12), normal_data<float>(700, 30), 30, 20);
}

TEST(queries_far_from_the_points_and_among_few) {
  for_reals([]<typename Real>() {
    check_queries<Real>(normal_data<Real>(20, 3, 1, 1e4, 12), normal_data<Real>(700, 3), 3, 20);
    check_queries<Real>(normal_data<Real>(20, 3, 1, 0, 12), normal_data<Real>(15, 3), 3, 15);
    check_queries<Real>(normal_data<Real>(1, 3, 1, 0, 12), normal_data<Real>(1, 3), 3, 1);
  });
}

TEST(a_query_finds_the_point_that_it_is) {
  for_reals([]<typename Real>() {
    const std::vector<Real> data = normal_data<Real>(700, 5);
    for_levels([&] {
      const Found<Real> found = find_for<Real>(data, data, 5, 3, 3);
      for (Size i = 0; i < 700; ++i) {
        CHECK_EQUAL(found.indices[at(i * 3)], static_cast<PointId>(i));
        CHECK_EQUAL(found.squared_distances[at(i * 3)], Real(0));
      }
    });
  });
}

TEST(a_poll_cancels_the_search) {
  constexpr Size kRows = 30'000; // seconds of work, so that there is time for a poll
  constexpr Size kFeatures = 64;
  constexpr Size kNeighbors = 30;
  const std::vector<float> data = normal_data<float>(kRows, kFeatures);
  const Projected<float> projected(data, kFeatures, poor_frame(data, kFeatures));
  ThreadTeam team(2, [] { return true; });
  std::vector<PointId> indices(kRows * kNeighbors);
  std::vector<float> distances(kRows * kNeighbors);
  CHECK(check::throws<Cancelled>([&] {
    exact_neighbors<float>({projected.points(), kNeighbors, indices.data(), distances.data()},
                           team);
  }));
}

TEST(rows_are_read_however_they_are_stored) {
  // Three rows of two numbers, with others between them, from the last to the first.
  const std::uint8_t bytes[] = {9, 1, 9, 2, 9, 3, 9, 4, 9, 5, 9, 6};
  const PointSet<float> of_bytes{bytes + 9, 3, 2, {}, {Stored::byte, false, -4, 2}};
  // 1, -2, the largest, the least, and zeros of both signs.
  const std::uint16_t halves[] = {0x3c00, 0xc000, 0x7bff, 0x0001, 0x0000, 0x8000};
  const PointSet<float> of_halves{halves, 3, 2, {}, {Stored::half}};
  const float expected_bytes[] = {5, 6, 3, 4, 1, 2};
  const float expected_halves[] = {1, -2, 65504, 0x1p-24f, 0, 0};
  const double doubles[] = {1, 2, 3, 4, 5, 6};
  const PointSet<double> by_columns{
      doubles, 3, 2, {}, {Stored::as_computed, false, sizeof(double), 3 * sizeof(double)}};
  const double expected_columns[] = {1, 4, 2, 5, 3, 6};
  std::vector<float> row;
  std::vector<double> in_double;
  for (PointId id = 0; id < 3; ++id) {
    for (int f = 0; f < 2; ++f) {
      CHECK_EQUAL(of_bytes.row(id, row)[f], expected_bytes[2 * id + f]);
      CHECK_EQUAL(of_halves.row(id, row)[f], expected_halves[2 * id + f]);
      CHECK_EQUAL(by_columns.row(id, in_double)[f], expected_columns[2 * id + f]);
    }
  }
  CHECK(std::signbit(of_halves.row(2, row)[1]));
  // Rows that need no reading are used where they are.
  const PointSet<double> in_place{doubles, 3, 2, {}};
  CHECK(in_place.row(1, in_double) == doubles + 2);
}

int main() {
  return check::run_tests();
}
