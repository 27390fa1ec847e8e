// The frame of the data and principal components, against plain loops over rows and features.
#include "neighbors/frame.hpp"

#include "check.hpp"
#include "data.hpp"
#include "linear/eigen.hpp"
#include "neighbors/exact.hpp"
#include "neighbors/principal_components.hpp"
#include "processes.hpp"
#include "projection.hpp"

#include <limits>
#include <mutex>
#include <utility>

using namespace acctsne;

namespace {

using Numbers = std::vector<double>;

// Correlated features of falling variance, away from the origin, with zeros in between.
template <typename Data>
std::vector<Data> falling_data(Size rows, Size features, double fall = 0.97) {
  const Numbers noise = normal_data<double>(rows, features);
  std::vector<Data> data(at(rows * features));
  for (Size i = 0; i < rows; ++i) {
    double carried = 0;
    double size = 3;
    for (Size f = 0; f < features; ++f) {
      carried = 0.5 * carried + size * noise[at(i * features + f)];
      data[at(i * features + f)] = static_cast<Data>((i + f) % 5 == 0 ? 0 : carried + 1);
      size *= fall;
    }
  }
  return data;
}

template <typename Data>
Numbers centred(const std::vector<Data>& data, Size features) {
  Numbers mean(at(features), 0.0);
  for (std::size_t i = 0; i < data.size(); ++i) {
    mean[i % at(features)] += static_cast<double>(data[i]) * static_cast<double>(features) /
                              static_cast<double>(data.size());
  }
  Numbers rows(data.size());
  for (std::size_t i = 0; i < data.size(); ++i) {
    rows[i] = static_cast<double>(data[i]) - mean[i % at(features)];
  }
  return rows;
}

Numbers plain_covariance(const Numbers& rows, Size features) {
  Numbers covariance(at(features * features), 0.0);
  for (Size i = 0; i < static_cast<Size>(rows.size()) / features; ++i) {
    const double* row = rows.data() + i * features;
    for (Size f = 0; f < features; ++f) {
      for (Size g = 0; g < features; ++g) {
        covariance[at(f * features + g)] += row[f] * row[g];
      }
    }
  }
  return covariance;
}

template <typename Data>
Csr<Data> sparse_form(const std::vector<Data>& data, Size features) {
  Csr<Data> csr;
  csr.offsets.push_back(0);
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (data[i] != 0) {
      csr.columns.push_back(static_cast<PointId>(i % at(features)));
      csr.values.push_back(data[i]);
    }
    if ((i + 1) % at(features) == 0) {
      csr.offsets.push_back(static_cast<EdgeId>(csr.values.size()));
    }
  }
  return csr;
}

double largest_of(const Numbers& numbers) {
  double largest = 0;
  for (const double number : numbers) {
    largest = std::max(largest, std::abs(number));
  }
  return largest;
}

void check_all_near(const Numbers& found, const Numbers& expected, double tolerance) {
  CHECK_EQUAL(found.size(), expected.size());
  for (std::size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    CHECK_NEAR(found[i], expected[i], tolerance);
  }
}

// Covariance, its products and coordinates of rows, against those of plain loops.
void check_centred(CentredRows& rows, const Numbers& plain, double relative) {
  const Size features = rows.features();
  const Size count = rows.samples();
  CHECK_EQUAL(count, static_cast<Size>(plain.size()) / features);
  const Numbers covariance = plain_covariance(plain, features);
  const double tolerance = relative * largest_of(covariance);
  check_all_near(rows.covariance(), covariance, tolerance);
  const Size width = 3;
  const Numbers axes = normal_data<double>(width, features);
  Numbers expected(axes.size(), 0.0);
  Numbers places(at(count * width), 0.0);
  for (Size a = 0; a < width; ++a) {
    for (Size f = 0; f < features; ++f) {
      for (Size g = 0; g < features; ++g) {
        expected[at(a * features + f)] +=
            covariance[at(f * features + g)] * axes[at(a * features + g)];
      }
    }
    for (Size i = 0; i < count; ++i) {
      places[at(i * width + a)] =
          std::inner_product(plain.begin() + i * features, plain.begin() + (i + 1) * features,
                             axes.begin() + a * features, 0.0);
    }
  }
  Numbers products(axes.size());
  rows.covariance_times(axes, 1, products.data());
  check_all_near(products, expected, 20 * relative * largest_of(expected));
  check_all_near(rows.times(axes), places, 20 * relative * largest_of(places));
}

template <typename Data>
Numbers components_of(const std::vector<Data>& data, Size features, Size components, int threads) {
  ThreadTeam team(threads);
  const PointSet<Data> rows = rows_of_data(data, features);
  const auto all = centred_rows(rows, rows.rows, one_process, team);
  return principal_components(*all, components, nullptr, one_process, team);
}

// By the decomposition of the plain covariance, each axis with its largest loading positive.
template <typename Data>
Numbers plain_components(const std::vector<Data>& data, Size features, Size components) {
  ThreadTeam team(1);
  const Numbers rows = centred(data, features);
  const Numbers vectors = symmetric_eigen(plain_covariance(rows, features), features, team).vectors;
  const Size count = static_cast<Size>(rows.size()) / features;
  Numbers found(at(count * components));
  for (Size c = 0; c < components; ++c) {
    const double* axis = vectors.data() + c * features;
    const double largest = *std::max_element(
        axis, axis + features, [](double a, double b) { return std::abs(a) < std::abs(b); });
    for (Size i = 0; i < count; ++i) {
      const double place =
          std::inner_product(axis, axis + features, rows.begin() + i * features, 0.0);
      found[at(i * components + c)] = largest < 0 ? -place : place;
    }
  }
  return found;
}

} // namespace

TEST(sums_over_rows_are_those_of_plain_loops) {
  for_reals([]<typename Real>() {
    const Size features = 37;
    const std::vector<Real> data = falling_data<Real>(4500, features);
    const Numbers plain = centred(data, features);
    const Csr<Real> csr = sparse_form(data, features);
    const double tolerance = sizeof(Real) == 4 ? 1e-5 : 1e-12;
    for_levels([&] {
      ThreadTeam team(2);
      const PointSet<Real> rows = rows_of_data(data, features);
      check_centred(*centred_rows(rows, rows.rows, one_process, team), plain, tolerance);
      check_centred(*centred_rows(csr.view(), features, team), plain, tolerance);
      Origin origin;
      check_centred(*centred_sample(rows, origin, team), plain, 1e-5);
    });
  });
}

TEST(sums_over_every_few_rows) {
  const Size features = 12;
  const std::vector<double> data = falling_data<double>(1000, features);
  const Numbers plain = centred(data, features);
  const Csr<double> csr = sparse_form(data, features);
  const Numbers axes = normal_data<double>(2, features);
  Numbers expected(axes.size(), 0.0);
  for (Size i = 0; i < 1000; i += 7) { // about the mean of all
    const double* row = plain.data() + i * features;
    for (Size a = 0; a < 2; ++a) {
      const double place =
          std::inner_product(row, row + features, axes.begin() + a * features, 0.0);
      for (Size f = 0; f < features; ++f) {
        expected[at(a * features + f)] += place * row[f];
      }
    }
  }
  ThreadTeam team(2);
  Numbers products(axes.size());
  centred_rows(rows_of_data(data, features), 1000, one_process, team)
      ->covariance_times(axes, 7, products.data());
  check_all_near(products, expected, 1e-11 * largest_of(expected));
  centred_rows(csr.view(), features, team)->covariance_times(axes, 7, products.data());
  check_all_near(products, expected, 1e-11 * largest_of(expected));
}

TEST(numbers_that_are_not_finite_are_found) {
  const auto check = []<typename Data>() {
    constexpr Size kRows = 600;
    constexpr Size kFeatures = 37;
    const Data largest = std::numeric_limits<Data>::max(); // whose square is not finite
    std::vector<Data> data = normal_data<Data>(kRows, kFeatures);
    data[40] = largest;
    data.back() = -largest;
    for (const int threads : {1, 2, 3, 8}) {
      ThreadTeam team(threads);
      const PointSet<Data> rows{data.data(), kRows, kFeatures, {}};
      CHECK(all_finite(rows, team));
      for (const std::size_t place : {std::size_t{0}, std::size_t{12345}, data.size() - 1}) {
        for (const Data wrong :
             {std::numeric_limits<Data>::quiet_NaN(), std::numeric_limits<Data>::infinity(),
              -std::numeric_limits<Data>::infinity()}) {
          const Data before = std::exchange(data[place], wrong);
          CHECK(!all_finite(rows, team));
          data[place] = before;
        }
      }
    }
  };
  check.operator()<float>();
  check.operator()<double>();
}

TEST(rows_are_placed_on_axes_however_they_are_stored) {
  const Size rows = 300;
  const Size features = 50;
  const Size dims = 17;
  std::vector<std::uint8_t> bytes(at(2 * rows * features));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(i * i % 251);
  }
  // Every second byte, from the last row to the first.
  const PointSet<float> stored{bytes.data() + 2 * (rows - 1) * features,
                               rows,
                               features,
                               {},
                               {Stored::byte, false, -2 * features, 2}};
  const Origin origin{0.5, normal_data<double>(1, features)};
  const std::vector<float> axes = normal_data<float>(dims, features);
  const MatrixView<float> view = matrix<float>(axes.data(), dims, features);
  for_levels([&] {
    std::vector<float> first;
    for (const int threads : kThreadCounts) {
      ThreadTeam team(threads);
      std::vector<float> coordinates(at(rows * dims));
      std::vector<float> features_moved(at(rows * features));
      Numbers norms(at(rows));
      Numbers norms_again(at(rows));
      place_rows(stored, origin, &view, coordinates.data(), norms.data(), team);
      place_rows(stored, origin, nullptr, features_moved.data(), norms_again.data(), team);
      CHECK(same_bytes(norms, norms_again));
      first = threads == 1 ? coordinates : first;
      CHECK(same_bytes(coordinates, first));
      for (Size i = 0; i < rows; ++i) {
        double norm = 0;
        Numbers place(at(dims), 0.0);
        for (Size f = 0; f < features; ++f) {
          const double moved =
              0.5 * bytes[at(2 * ((rows - 1 - i) * features + f))] - origin.centre[at(f)];
          CHECK_NEAR(features_moved[at(i * features + f)], moved, 2e-5);
          norm += moved * moved;
          for (Size d = 0; d < dims; ++d) {
            place[at(d)] += moved * double{axes[at(d * features + f)]};
          }
        }
        CHECK_NEAR(norms[at(i)], norm, norm * 1e-6);
        for (Size d = 0; d < dims; ++d) {
          CHECK_NEAR(coordinates[at(i * dims + d)], place[at(d)], std::sqrt(norm) * 1e-5);
        }
      }
    }
  });
}

TEST(principal_components_are_those_of_the_covariance) {
  for_reals([]<typename Real>() {
    for (const Size features : {1, 5, 60, 300}) { // decomposed, and iterated
      const std::vector<Real> data = falling_data<Real>(700, features, 0.9);
      const Size components = std::min<Size>(features, 3);
      const Numbers expected = plain_components(data, features, components);
      const double tolerance = (features > kFewFeatures ? 2e-3 : 1e-5) * largest_of(expected);
      for_levels([&] {
        check_all_near(components_of(data, features, components, 2), expected, tolerance);
      });
    }
  });
}

TEST(principal_components_within_a_frame_point_as_its_features_do) {
  // Rows on axes that mirror the features: the largest loading's sign turns with them.
  const Size features = 6;
  const std::vector<float> data = falling_data<float>(500, features, 0.5);
  std::vector<float> mirrored(data);
  std::vector<float> mirror(at(features * features), 0.0f);
  for (Size f = 0; f < features; ++f) {
    mirror[at(f * (features + 1))] = -1;
  }
  std::transform(data.begin(), data.end(), mirrored.begin(), std::negate<>());
  ThreadTeam team(1);
  const auto rows = centred_rows(rows_of_data(mirrored, features), 500, one_process, team);
  const MatrixView<float> frame = matrix<float>(mirror.data(), features, features);
  const Numbers found = principal_components(*rows, 2, &frame, one_process, team);
  check_all_near(found, components_of(data, features, 2, 1), 1e-3);
}

TEST(components_that_the_data_does_not_have_are_zero) {
  for_reals([]<typename Real>() {
    const std::vector<Real> constant(at(30 * 4), Real(7));
    for (const double place : components_of(constant, 4, 2, 1)) {
      CHECK_EQUAL(place, 0.0);
    }
    const std::vector<Real> wide(at(5 * 400), Real(3));
    for (const double place : components_of(wide, 400, 2, 1)) {
      CHECK_EQUAL(place, 0.0);
    }
    const std::vector<Real> line{1, 2, 3};
    const Numbers found = components_of(line, 1, 2, 1);
    check_all_near(found, {-1, 0, 0, 0, 1, 0}, 1e-6);
  });
}

TEST(the_unit_of_the_data_does_not_matter) {
  for (const Size features : {20, 300}) {
    const std::vector<double> data = falling_data<double>(400, features, 0.9);
    const Numbers expected = components_of(data, features, 2, 1);
    for (const int exponent : {-1030, -500, 500, 1000}) {
      std::vector<double> scaled(data);
      for (double& number : scaled) {
        number = std::ldexp(number, exponent);
      }
      Numbers found = components_of(scaled, features, 2, 1);
      const double unit = largest_of(found) / largest_of(expected);
      for (double& number : found) {
        number /= unit;
      }
      check_all_near(found, expected, 2e-3 * largest_of(expected));
    }
  }
}

TEST(neither_threads_nor_processes_change_a_bit_of_components) {
  for_reals([]<typename Real>() {
    for (const Size features : {20, 270}) {
      const Size count = 9000;
      const std::vector<Real> data = falling_data<Real>(count, features, 0.9);
      const PointSet<Real> all = rows_of_data(data, features);
      for_levels([&] {
        const Numbers alone = components_of(data, features, 2, 1);
        for (const int threads : kThreadCounts) {
          CHECK(same_bytes(components_of(data, features, 2, threads), alone));
        }
        for (const int size : {2, 4}) { // of the four, some own nothing
          std::mutex mutex;
          ThreadProcesses(size).run([&](Communicator& processes) {
            const Rows here = rows_of(processes.rank(), processes.size(), count);
            PointSet<Real> own = all;
            own.data = data.data() + here.begin * features;
            own.rows = here.end - here.begin;
            ThreadTeam team(2);
            const auto rows = centred_rows(own, count, processes, team);
            const Numbers found = principal_components(*rows, 2, nullptr, processes, team);
            const std::lock_guard lock(mutex);
            CHECK(same_bytes(std::span<const double>(found),
                             std::span(alone).subspan(at(here.begin * 2), at(own.rows * 2))));
          });
        }
      });
    }
  });
}

TEST(a_frame_has_orthonormal_axes_of_large_variance) {
  for_reals([]<typename Real>() {
    for (const Size features : {60, 150}) { // all of them kept, and 96
      const std::vector<Real> data = falling_data<Real>(1000, features);
      const Numbers plain = centred(data, features);
      ThreadTeam two(2);
      const Eigen eigen = symmetric_eigen(plain_covariance(plain, features), features, two);
      for_levels([&] {
        std::vector<float> first;
        for (const int threads : kThreadCounts) {
          ThreadTeam team(threads);
          const Frame frame = find_frame(rows_of_data(data, features), 10, {}, team);
          CHECK_EQUAL(frame.axes, std::min<Size>(features, 96));
          CHECK_EQUAL(frame.origin.scale, 1.0);
          first = threads == 1 ? frame.columns : first;
          CHECK(same_bytes(frame.columns, first));
        }
        const Size dims = std::min<Size>(features, 96);
        double variance = 0;
        for (Size a = 0; a < dims; ++a) {
          for (Size b = 0; b <= a; ++b) {
            double product = 0;
            for (Size f = 0; f < features; ++f) {
              product += double{first[at(f * dims + a)]} * double{first[at(f * dims + b)]};
            }
            CHECK_NEAR(product, a == b ? 1 : 0, 1e-6);
          }
        }
        double before = std::numeric_limits<double>::infinity();
        for (Size a = 0; a < dims; ++a) {
          double along = 0;
          for (Size i = 0; i < 1000; ++i) {
            double place = 0;
            for (Size f = 0; f < features; ++f) {
              place += plain[at(i * features + f)] * double{first[at(f * dims + a)]};
            }
            along += place * place;
          }
          variance += along;
          if (a < 8) { // leading ones first
            CHECK(along < before * 1.01);
            before = along;
          }
        }
        const double best = std::accumulate(eigen.values.begin(), eigen.values.begin() + dims, 0.0);
        CHECK(variance > 0.99 * best && variance < best * 1.00001);
      });
    }
  });
}

TEST(features_stay_as_they_are_where_axes_do_not_help) {
  ThreadTeam team(2);
  const auto axes_of = [&](const std::vector<float>& data, Size features) {
    return find_frame(rows_of_data(data, features), 10, {}, team).axes;
  };
  CHECK_EQUAL(axes_of(falling_data<float>(1000, 24), 24), 0);  // few features
  CHECK_EQUAL(axes_of(falling_data<float>(190, 150), 150), 0); // few rows
  CHECK_EQUAL(axes_of(normal_data<float>(1000, 1000), 1000), 0);
  CHECK(axes_of(falling_data<float>(1000, 1000, 0.9), 1000) > 0);
  CHECK(axes_of(std::vector<float>(1000 * 150, 3.0f), 150) >= 0); // and constant data is no trouble
}

TEST(axes_help_where_only_norms_beyond_them_differ) {
  // Six copies of each of many rows in directions of their own, all but eight of them off the axes.
  const Size groups = 160;
  const Size rows = 6 * groups;
  std::vector<float> data = normal_data<float>(rows, groups);
  for (Size i = 0; i < rows * groups; ++i) {
    const Size group = i / groups / 6;
    const double length = group < 8 ? 100 : 1 + 0.01 * static_cast<double>(group);
    data[at(i)] = data[at(i)] * 1e-4f + static_cast<float>(i % groups == group ? length : 0);
  }
  ThreadTeam team(2);
  CHECK_EQUAL(find_frame(rows_of_data(data, groups), 1, 8, team).axes, 8);
}

TEST(rows_that_axes_are_found_from) {
  for (const Size samples : {1, 2047, 2048, 5000, 30'000, 30'001, 1'000'000}) {
    for (const std::optional<Size> axes : {std::optional<Size>{}, std::optional<Size>{128}}) {
      const SampledRows rows = sampled_rows({samples, 10, axes});
      const Size wanted = !axes && samples <= 30'000 ? 2048 : 4096;
      const Size count = chunk_count(rows.stop, rows.step);
      CHECK(rows.stop <= samples && rows.step >= 1);
      CHECK(samples <= wanted ? count == samples : count >= wanted && count < 2 * wanted);
    }
  }
}

TEST(a_scale_brings_squares_into_range) {
  CHECK_EQUAL(power_of_two_scale<float>(0), 1.0);
  CHECK_EQUAL(power_of_two_scale<float>(1e-12), 1.0);
  CHECK_EQUAL(power_of_two_scale<double>(1e12), 1.0);
  CHECK_EQUAL(power_of_two_scale<double>(0x1.8p100), 0x1p-100);
  CHECK_EQUAL(power_of_two_scale<double>(0x1.8p-100), 0x1p100);
  // Subnormal: as much as the precision can say.
  CHECK_EQUAL(power_of_two_scale<float>(0x1p-140), 0x1p126);
  CHECK_EQUAL(power_of_two_scale<double>(0x1p-1070), 0x1p1022);
}

TEST(exact_neighbors_do_not_depend_on_the_frame) {
  for_reals([]<typename Real>() {
    const Size features = 120;
    const Size k = 7;
    const std::vector<Real> data = falling_data<Real>(900, features);
    ThreadTeam team(2);
    const auto search = [&](const Frame& frame) {
      const Projected<Real> projected(data, features, frame);
      std::vector<PointId> indices(at(projected.rows() * k));
      std::vector<Real> distances(indices.size());
      exact_neighbors<Real>({projected.points(), k, indices.data(), distances.data()}, team);
      return std::pair(indices, distances);
    };
    const Frame found = find_frame(rows_of_data(data, features), k, {}, team);
    CHECK_EQUAL(found.axes, 96);
    CHECK(search(found) == search(poor_frame(data, features)));
  });
}

TEST(a_poll_cancels_the_search_for_a_frame) {
  const std::vector<float> data = falling_data<float>(20'000, 300, 0.999);
  ThreadTeam team(2, [] { return true; });
  CHECK(check::throws<Cancelled>([&] {
    for (int i = 0; i < 100; ++i) { // so that there is time for a poll
      find_frame(rows_of_data(data, 300), 10, {}, team);
    }
  }));
}

int main() {
  return check::run_tests();
}
