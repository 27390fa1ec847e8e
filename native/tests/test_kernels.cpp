// The kernels of every SIMD level against scalar loops. Tolerances are multiples of the type's
// epsilon times the sum of the terms' magnitudes: what the longest chain of roundings can make of
// them.
#include "kernels/dispatch.hpp"

#include "check.hpp"
#include "data.hpp"

#include <stdexcept>

using namespace acctsne;

namespace {

// Rows of 0, 1, ..., 40 edges, then as many of 40: every length of a vector's tail, and prefetching
// across rows.
constexpr Size kRows = 82;
constexpr Size kLongestRow = 40;

template <typename Real>
Csr<Real> make_rows() {
  std::mt19937_64 random(3);
  std::uniform_int_distribution<PointId> column(0, kRows - 1);
  std::uniform_real_distribution<double> value(0.01, 1);
  Csr<Real> rows;
  rows.offsets.push_back(0);
  for (Size i = 0; i < kRows; ++i) {
    for (Size e = 0; e < std::min(i, kLongestRow); ++e) {
      rows.columns.push_back(column(random));
      rows.values.push_back(static_cast<Real>(value(random)));
    }
    rows.offsets.push_back(static_cast<EdgeId>(rows.columns.size()));
  }
  return rows;
}

// One bit at a time, from cell numbers worked out in Real as the kernel is specified to.
template <typename Real, int Dims>
MortonCode plain_code(const Real* point, const Real* lower, Real scale) {
  constexpr int kBits = kMortonBits<Dims>;
  const Real largest = std::nextafter(std::ldexp(Real(1), kBits), Real(0));
  MortonCode code = 0;
  for (int axis = 0; axis < Dims; ++axis) {
    const Real cell = std::clamp((point[axis] - lower[axis]) * scale, Real(0), largest);
    const auto whole = static_cast<MortonCode>(cell);
    for (int bit = 0; bit < kBits; ++bit) {
      code |= ((whole >> bit) & 1) << (bit * Dims + axis);
    }
  }
  return code;
}

// The kernel compiled for a dimension, if there is one, and the one for any number.
template <typename Kernel>
std::vector<Kernel> kernels_for(int dims, const ByDims<Kernel>& kernel) {
  return dims <= kCompiledDims ? std::vector{kernel.of(dims), kernel.any} : std::vector{kernel.any};
}

} // namespace

TEST(levels_can_be_chosen_by_name) {
  const std::string before = kernels().level;
  CHECK(!usable_levels().empty());
  for (const std::string& level : usable_levels()) {
    use_level(level);
    CHECK_EQUAL(level, kernels().level);
  }
  use_level(before);
  CHECK(check::throws<std::invalid_argument>([&] { use_level("abacus"); }));
  CHECK_EQUAL(before, kernels().level);
}

TEST(gaussian_row_matches_exp) {
  for_levels([] {
    std::mt19937_64 random(4);
    std::uniform_real_distribution<double> uniform(0, 50);
    for (const Size count : {0, 8, 16, 40, 128}) {
      for (const double beta : {0.0, 1e-300, 1e-3, 0.7, 1.0, 3.0, 14.0, 14.2, 20.0, 1e10, 1e300}) {
        std::vector<double> distances(at(count));
        std::vector<double> mask(at(count), 1);
        for (std::size_t j = 0; j < distances.size(); ++j) {
          distances[j] = j % 7 == 0 ? 0 : uniform(random);
          mask[j] = j % 5 == 4 ? 0 : 1;
        }
        std::vector<double> weights(at(count));
        const GaussianSums sums = kernels().perplexity.gaussian_row(distances.data(), mask.data(),
                                                                    count, beta, weights.data());

        double expected[3] = {};
        for (std::size_t j = 0; j < distances.size(); ++j) {
          const double w = mask[j] * std::exp(-beta * distances[j]);
          // Four units in the last place; weights below 1e-307 may be 0.
          CHECK_NEAR(weights[j], w, 4 * kEpsilon<double> * w + 1e-307);
          expected[0] += w;
          expected[1] += w * distances[j];
          expected[2] += w * distances[j] * distances[j];
        }
        CHECK_NEAR(sums.total, expected[0], 1e-14 * expected[0] + 1e-300);
        CHECK_NEAR(sums.first, expected[1], 1e-14 * expected[1] + 1e-300);
        CHECK_NEAR(sums.second, expected[2], 1e-14 * expected[2] + 1e-300);
      }
    }
  });
}

TEST(normalize_row_takes_smallest_and_mean_away) {
  for_levels([] {
    for_reals([]<typename Real>() {
      std::mt19937_64 random(5);
      std::uniform_real_distribution<double> uniform(0, 1);
      for (const Size count : {1, 2, 7, 8, 9, 91}) {
        for (const double scale : {1e-36, 1.0, 3e37}) {
          for (const bool equal : {false, true}) {
            const Size padded = chunk_count(count, kRowPadding) * kRowPadding;
            std::vector<Real> given(at(count));
            for (Real& number : given) {
              number = static_cast<Real>(scale * (equal ? 3 : 3 + uniform(random)));
            }
            std::vector<double> mask(at(padded), 0);
            std::fill_n(mask.begin(), count, 1.0);
            std::vector<double> distances(at(padded), -1);
            const RowUnit unit = kernels().perplexity.normalize_row<Real>()(
                given.data(), mask.data(), count, padded, distances.data());

            const auto smallest =
                static_cast<double>(*std::min_element(given.begin(), given.end()));
            double mean = 0;
            for (const Real number : given) {
              mean += (static_cast<double>(number) - smallest) / static_cast<double>(count);
            }
            CHECK_EQUAL(unit.smallest, smallest);
            CHECK_NEAR(unit.unit, mean, 1e-14 * mean);
            for (std::size_t j = 0; j < at(padded); ++j) {
              const double expected = j < given.size() && mean > 0
                                          ? (static_cast<double>(given[j]) - smallest) / mean
                                          : 0;
              CHECK_NEAR(distances[j], expected, 1e-14 * expected);
            }
          }
        }
      }
    });
  });
}

TEST(exp_is_accurate_over_its_range) {
  for_levels([] {
    std::vector<double> distances;
    for (double x = 0; x < 707; x += 0.0373) {
      distances.push_back(x);
    }
    distances.resize(distances.size() / at(kRowPadding) * at(kRowPadding));
    const std::vector<double> mask(distances.size(), 1);
    std::vector<double> weights(distances.size());
    kernels().perplexity.gaussian_row(distances.data(), mask.data(),
                                      static_cast<Size>(distances.size()), 1, weights.data());
    CHECK_EQUAL(weights[0], 1.0);
    for (std::size_t j = 0; j < distances.size(); ++j) {
      const double expected = std::exp(-distances[j]);
      CHECK_NEAR(weights[j], expected, 4 * kEpsilon<double> * expected);
    }
  });
}

TEST(log_is_accurate_over_its_range) {
  // One edge of weight 1 a row: cross_entropy_rows of that row is log(1 + d^2) itself.
  for_levels([] {
    for_reals([]<typename Real>() {
      const auto kernel = kernels().attractive.of<Real>().cross_entropy_rows.of(1);
      Csr<Real> P;
      P.offsets = {0, 1, 1};
      P.columns = {1};
      P.values = {1};
      const Edges<Real> edges = edges_of(P);
      for (double d = 1e-12; d < 1e18; d *= 1.013) {
        const Real points[] = {0, static_cast<Real>(d)};
        const double d2 = static_cast<double>(points[1]) * static_cast<double>(points[1]);
        // 1 + d^2 is rounded before its logarithm is taken, hence the absolute part.
        const double expected = std::log1p(d2);
        CHECK_NEAR(kernel(1, edges.view(), points, 0, 2), expected,
                   2 * static_cast<double>(kEpsilon<Real>) * (1 + expected));
      }
    });
  });
}

TEST(attractive_rows_match_a_double_loop) {
  for_levels([] {
    for_reals_and_any_dims([]<typename Real, int Dims>() {
      const Csr<Real> P = make_rows<Real>();
      const Edges<Real> edges = edges_of(P);
      const std::vector<Real> points = make_cloud<Real>(Cloud::uniform, kRows, Dims);
      for (const auto kernel : kernels_for(Dims, kernels().attractive.of<Real>().attractive_rows)) {
        for (const Size begin : {Size{0}, Size{5}}) {
          for (const Size end : {begin, Size{41}, kRows}) {
            constexpr Real kUntouched = -77;
            std::vector<Real> force(points.size(), kUntouched);
            kernel(Dims, edges.view(), points.data(), begin, end, force.data());
            for (Size i = 0; i < kRows; ++i) {
              double expected[Dims] = {};
              double magnitude[Dims] = {};
              for (EdgeId e = P.offsets[at(i)]; e < P.offsets[at(i + 1)]; ++e) {
                const Real* y = points.data() + i * Dims;
                const Real* other = points.data() + Size{P.columns[at(e)]} * Dims;
                for (int axis = 0; axis < Dims; ++axis) {
                  const double term =
                      static_cast<double>(P.values[at(e)]) *
                      (static_cast<double>(y[axis]) - static_cast<double>(other[axis])) /
                      (1 + squared(y, other, Dims));
                  expected[axis] += term;
                  magnitude[axis] += std::abs(term);
                }
              }
              for (int axis = 0; axis < Dims; ++axis) {
                const Real got = force[at(i * Dims + axis)];
                if (i < begin || i >= end) {
                  CHECK_EQUAL(got, kUntouched);
                } else {
                  CHECK_NEAR(got, expected[axis],
                             (16 + Dims) * static_cast<double>(kEpsilon<Real>) * magnitude[axis]);
                }
              }
            }
          }
        }
      }
    });
  });
}

TEST(cross_entropy_rows_match_a_double_loop) {
  for_levels([] {
    for_reals_and_any_dims([]<typename Real, int Dims>() {
      const Csr<Real> P = make_rows<Real>();
      const Edges<Real> edges = edges_of(P);
      const std::vector<Real> points = make_cloud<Real>(Cloud::clustered, kRows, Dims);
      for (Size i = 0; i < kRows; ++i) {
        double expected = 0;
        for (EdgeId e = P.offsets[at(i)]; e < P.offsets[at(i + 1)]; ++e) {
          expected += static_cast<double>(P.values[at(e)]) *
                      std::log1p(squared(points.data() + i * Dims,
                                         points.data() + Size{P.columns[at(e)]} * Dims, Dims));
        }
        for (const auto kernel :
             kernels_for(Dims, kernels().attractive.of<Real>().cross_entropy_rows)) {
          const double got = kernel(Dims, edges.view(), points.data(), i, i + 1);
          CHECK_NEAR(got, expected,
                     (16 + Dims) * static_cast<double>(kEpsilon<Real>) * (1 + expected));
        }
      }
    });
  });
}

TEST(repulsive_range_matches_a_double_loop) {
  constexpr Size kCount = 9000;
  for_levels([] {
    for_reals_and_any_dims([]<typename Real, int Dims>() {
      const std::vector<Real> points = make_cloud<Real>(Cloud::clustered, kCount, Dims);
      std::vector<Real> values[Dims];
      const Real* axes[Dims];
      for (int axis = 0; axis < Dims; ++axis) {
        for (Size i = 0; i < kCount; ++i) {
          values[axis].push_back(points[at(i * Dims + axis)]);
        }
        // What lies beyond the end must not count.
        values[axis].resize(at(kCount + kernels().all_pairs.of<Real>().lanes), Real(1));
        axes[axis] = values[axis].data();
      }
      Real y[Dims];
      for (int axis = 0; axis < Dims; ++axis) {
        y[axis] = points[at(axis)] + Real(1.5) * static_cast<Real>(axis % 3);
      }
      // Empty, one, a tail, a whole number of the blocks that are summed in Real, one more, all.
      const Size ranges[][2] = {{0, 0}, {4, 5}, {3, 20}, {0, 4096}, {0, 4097}, {1, kCount}};
      for (const auto& [begin, end] : ranges) {
        double expected[Dims];
        double magnitude[Dims] = {};
        std::fill_n(expected, Dims, 0.25); // the kernel adds to what is there
        double expected_z = 0;
        for (Size j = begin; j < end; ++j) {
          const double w = 1 / (1 + squared(y, points.data() + j * Dims, Dims));
          expected_z += w;
          for (int axis = 0; axis < Dims; ++axis) {
            const double term =
                w * w *
                (static_cast<double>(y[axis]) - static_cast<double>(points[at(j * Dims + axis)]));
            expected[axis] += term;
            magnitude[axis] += std::abs(term);
          }
        }
        for (const auto kernel : kernels_for(Dims, kernels().all_pairs.of<Real>().first_power)) {
          double force[Dims];
          std::fill_n(force, Dims, 0.25);
          const double z = kernel(Dims, axes, begin, end, y, 1, force);
          const double tolerance = (32 + Dims) * static_cast<double>(kEpsilon<Real>);
          CHECK_NEAR(z, expected_z, tolerance * expected_z);
          for (int axis = 0; axis < Dims; ++axis) {
            // What is expected has been added up, term by term, on top of 0.25.
            CHECK_NEAR(force[axis], expected[axis], tolerance * magnitude[axis] + 1e-14);
          }
        }
      }
    });
  });
}

TEST(update_points_match_the_rule) {
  constexpr Size kCount = 103;
  constexpr Size kBegin = 2;
  constexpr Size kEnd = 101;
  const auto check_rule = []<typename Real, int Dims>(StepRule rule, const auto kernel) {
    const bool heavy = rule == StepRule::heavy_ball;
    std::mt19937_64 random(5);
    std::normal_distribution<double> normal;
    const auto draw = [&](double scale) {
      std::vector<Real> values(at(kCount * Dims));
      for (Real& value : values) {
        value = static_cast<Real>(scale * normal(random));
      }
      return values;
    };
    const std::vector<Real> attractive = draw(1e-3);
    const std::vector<Real> repulsive = draw(10);
    const std::vector<Real> points = draw(20);
    std::vector<Real> updates = draw(1);
    std::vector<Real> gains = draw(1);
    std::vector<Real> preconditioner = draw(1);
    for (std::size_t i = 0; i < gains.size(); ++i) {
      gains[i] = i % 4 == 0 ? Real(0.011) : std::abs(gains[i]) + Real(0.1); // some near the floor
      if (heavy) {
        gains[i] = std::min(gains[i], Real(0.99)); // some near the ceiling, none above it
      }
      updates[i] = i % 9 == 0 ? Real(0) : updates[i];
      preconditioner[i] = std::abs(preconditioner[i]) + Real(0.5);
    }
    UpdateParameters<Real> parameters{};
    parameters.rule = rule;
    parameters.attraction_scale = 48;
    parameters.repulsion_scale = Real(-4.0 / 900);
    parameters.learning_rate = 50;
    parameters.momentum = Real(0.8);
    parameters.max_step = 3; // clips some of the points
    std::vector<Real> shift;
    for (int axis = 0; axis < Dims; ++axis) {
      shift.push_back(Real(0.5) - static_cast<Real>(axis % 3));
    }
    parameters.shift = shift.data();

    std::vector<Real> new_points = points;
    std::vector<Real> new_updates = updates;
    std::vector<Real> new_gains = gains;
    std::vector<double> numbers(at(UpdateSums::size(Dims)), -77.0);
    const UpdateSums sums(numbers.data(), Dims);
    kernel(Dims, parameters,
           {attractive.data(), repulsive.data(), preconditioner.data(), new_points.data(),
            new_updates.data(), new_gains.data()},
           kBegin, kEnd, sums);

    const double epsilon = static_cast<double>(kEpsilon<Real>);
    double squared_gradient = 0;
    double last_work = 0;
    double next_work = 0;
    double work_size = 0;
    Size clipped = 0;
    Size limited = 0;
    Size turned = 0;
    for (Size i = 0; i < kCount; ++i) {
      double step[Dims];
      double error[Dims];
      double gain[Dims];
      double gradients[Dims];
      double step2 = 0;
      double turn = 0;
      double growth = 0;
      for (int axis = 0; axis < Dims; ++axis) {
        const std::size_t c = at(i * Dims + axis);
        const double pull =
            static_cast<double>(parameters.attraction_scale) * static_cast<double>(attractive[c]);
        const double push =
            static_cast<double>(parameters.repulsion_scale) * static_cast<double>(repulsive[c]);
        const double gradient = pull + push;
        const auto update = static_cast<double>(updates[c]);
        const auto old_gain = static_cast<double>(gains[c]);
        gain[axis] = heavy
                         ? old_gain
                         : std::max(update * gradient < 0 ? old_gain + 0.2 : old_gain * 0.8, 0.01);
        const double factor =
            50 * gain[axis] * (heavy ? static_cast<double>(preconditioner[c]) : 1.0);
        step[axis] = 0.8 * update - factor * gradient;
        step2 += step[axis] * step[axis];
        turn += step[axis] * update;
        growth += step[axis] * step[axis] - update * update;
        gradients[axis] = gradient;
        // The sum pull + push may cancel: its error is that of its parts.
        error[axis] = 8 * epsilon * (std::abs(update) + factor * (std::abs(pull) + std::abs(push)));
        if (i >= kBegin && i < kEnd) {
          const double scale = heavy ? 1 : gain[axis];
          squared_gradient += scale * scale * gradient * gradient;
          last_work += gradient * update;
        }
      }
      const double length = std::sqrt(step2);
      const double shorten = length > 3 ? 3 / length : 1;
      const bool inside = i >= kBegin && i < kEnd;
      clipped += length > 3 && inside ? 1 : 0;
      for (int axis = 0; axis < Dims; ++axis) {
        const std::size_t c = at(i * Dims + axis);
        if (!inside) {
          CHECK_EQUAL(new_points[c], points[c]);
          CHECK_EQUAL(new_updates[c], updates[c]);
          CHECK_EQUAL(new_gains[c], gains[c]);
          continue;
        }
        if (heavy) {
          const bool swings = turn < 0 && growth > 0;
          gain[axis] = swings ? 0.7 * gain[axis] : std::min(1.02 * gain[axis], 1.0);
          turned += swings ? 1 : 0;
        }
        limited += gain[axis] == (heavy ? 1.0 : 0.01) ? 1 : 0;
        next_work += gradients[axis] * step[axis] * shorten;
        work_size += std::abs(gradients[axis]) * (std::abs(step[axis]) + 3);
        // A clipped step mixes the errors of all axes.
        double step_error = 0;
        for (int other = 0; other < Dims; ++other) {
          step_error += error[other];
        }
        const auto start = static_cast<double>(points[c]);
        const double moved =
            start - static_cast<double>(parameters.shift[axis]) + step[axis] * shorten;
        CHECK_NEAR(new_gains[c], gain[axis], 4 * epsilon * gain[axis]);
        CHECK_NEAR(new_updates[c], step[axis] * shorten, 2 * step_error);
        CHECK_NEAR(new_points[c], moved, 2 * step_error + 4 * epsilon * (std::abs(start) + 10));
      }
    }
    CHECK(clipped > 0 && (Dims > 5 || clipped < kEnd - kBegin));
    CHECK(limited > 0);
    CHECK(!heavy || turned > 0);
    CHECK_EQUAL(sums.turned, static_cast<double>(turned));
    CHECK_NEAR(sums.squared_gradient, squared_gradient, 64 * epsilon * squared_gradient);
    CHECK_NEAR(sums.last_work, last_work, 64 * epsilon * work_size);
    CHECK_NEAR(sums.next_work, next_work, 64 * epsilon * work_size);
    for (int axis = 0; axis < Dims; ++axis) {
      double total = 0;
      double size = 0;
      auto lower = static_cast<double>(new_points[at(kBegin * Dims + axis)]);
      double upper = lower;
      for (Size i = kBegin; i < kEnd; ++i) {
        const auto value = static_cast<double>(new_points[at(i * Dims + axis)]);
        total += value;
        size += std::abs(value);
        lower = std::min(lower, value);
        upper = std::max(upper, value);
      }
      // A few dozen terms at a time are added in Real.
      CHECK_NEAR(sums.position[axis], total, 32 * epsilon * size);
      CHECK_EQUAL(sums.lower[axis], lower);
      CHECK_EQUAL(sums.upper[axis], upper);
    }
  };
  for_levels([&] {
    for_reals_and_any_dims([&]<typename Real, int Dims>() {
      for (const auto kernel : kernels_for(Dims, kernels().update.of<Real>().update_points)) {
        for (const StepRule rule : {StepRule::delta_bar_delta, StepRule::heavy_ball}) {
          check_rule.template operator()<Real, Dims>(rule, kernel);
        }
      }
    });
  });
}

TEST(morton_codes_match_a_plain_interleave) {
  for_levels([] {
    for_reals_and_dims([]<typename Real, int Dims>() {
      std::vector<Real> points = make_cloud<Real>(Cloud::uniform, 301, Dims);
      const Real lower[3] = {-50, -50, -50};
      const Real side = 100;
      // The faces of the box, and what rounding may leave just outside of them.
      const Real above = std::nextafter(Real(50), Real(100));
      const Real below = std::nextafter(Real(50), Real(0));
      for (const Real edge : {Real(-50), Real(50), above, below, Real(-51), Real(60), Real(0)}) {
        for (int axis = 0; axis < Dims; ++axis) {
          for (int other = 0; other < Dims; ++other) {
            points.push_back(other == axis ? edge : Real(12.5));
          }
        }
        points.insert(points.end(), Dims, edge);
      }
      const auto scale = static_cast<Real>(std::ldexp(1.0, kMortonBits<Dims>)) / side;
      const Size count = static_cast<Size>(points.size()) / Dims;
      std::vector<MortonCode> codes(at(count));
      kernels().tree.of<Real>().morton_codes[Dims - 1](points.data(), count, lower, scale,
                                                       codes.data());
      for (Size i = 0; i < count; ++i) {
        const MortonCode expected = plain_code<Real, Dims>(points.data() + i * Dims, lower, scale);
        CHECK_EQUAL(codes[at(i)], expected);
        CHECK(codes[at(i)] >> (Dims * kMortonBits<Dims>) == 0);
      }
    });
  });
}

TEST(negative_entropy_matches_a_plain_loop) {
  for_levels([] {
    for_reals([]<typename Real>() {
      for (const Size count : {0, 1, 7, 8, 9, 200}) {
        // From 1 down to the smallest normal numbers, with a zero between.
        std::vector<Real> probabilities(at(count));
        double expected = 0;
        for (Size i = 0; i < count; ++i) {
          const double smallest = std::numeric_limits<Real>::min();
          const double part = static_cast<double>(i) / 199;
          const Real p = i % 10 == 3 ? Real(0) : static_cast<Real>(std::pow(smallest, part));
          probabilities[at(i)] = p;
          expected += p > 0 ? static_cast<double>(p) * std::log(static_cast<double>(p)) : 0;
        }
        CHECK_NEAR(kernels().attractive.of<Real>().negative_entropy(probabilities.data(), count),
                   expected, 1e-14 * std::abs(expected));
      }
    });
  });
}

int main() {
  return check::run_tests();
}
