// Repulsion with other exponents than 1: every method against a double loop.
#include "forces/repulsive.hpp"

#include "check.hpp"
#include "data.hpp"
#include "plain_forces.hpp"

using namespace acctsne;

namespace {

constexpr double kExponents[] = {1e-3, 0.5, 0.8, 1.5, 2, 10, 1e3};

// A cloud as wide as one of exponent 1 would be in its similarity's own unit. In many dimensions
// points are far from each other: it is narrower there, so that not all similarities underflow.
template <typename Real>
std::vector<Real> cloud_for(double exponent, Cloud cloud, Size count, int dims) {
  std::vector<Real> points = make_cloud<Real>(cloud, count, dims);
  const double narrower = dims > kCompiledDims ? 10 * std::sqrt(dims) : 1;
  for (Real& value : points) {
    value /= static_cast<Real>(narrower * std::sqrt(std::max(exponent, 1.0)));
  }
  return points;
}

template <int Dims, typename Real>
RepulsiveForces<Real> by(const RepulsionOptions& options, const std::vector<Real>& points,
                         int threads = 2) {
  ChosenRepulsion<Real> repulsion(Dims, options);
  RepulsiveForces<Real> found = forces_by<Dims>(repulsion, points, threads);
  CHECK(repulsion.used() == options.method);
  return found;
}

std::vector<Method> methods_in(int dims) {
  return dims <= kCompiledDims ? std::vector{Method::exact, Method::barnes_hut}
                               : std::vector{Method::exact};
}

RepulsionOptions options_for(Method method, double exponent, double angle = 0.5) {
  return {method, angle, 0.02, {exponent, 1}};
}

// Forces of a method that approximates, and Z to a relative error, at any thread count.
template <typename Real, int Dims>
void check_against_all_pairs(Method method, std::initializer_list<double> exponents,
                             double z_error) {
  for (const Cloud cloud : {Cloud::uniform, Cloud::clustered}) {
    for (const double exponent : exponents) {
      const std::vector<Real> points = cloud_for<Real>(exponent, cloud, 3000, Dims);
      const check::Scope scope(std::string(name_of(cloud)) + ", exponent " +
                               std::to_string(exponent));
      const RepulsiveForces<Real> exact = by<Dims>(options_for(Method::exact, exponent), points);
      const RepulsionOptions options = options_for(method, exponent);
      for_levels([&] {
        const RepulsiveForces<Real> found = by<Dims>(options, points);
        CHECK_NEAR(relative_error(found, exact), 0, 0.02);
        CHECK_NEAR(found.z, exact.z, z_error * exact.z);
      });
      const RepulsiveForces<Real> alone = by<Dims>(options, points, 1);
      for (const int threads : kThreadCounts) {
        CHECK(same_bytes(by<Dims>(options, points, threads).force, alone.force));
      }
    }
  }
}

} // namespace

TEST(similarity_is_accurate_over_its_range) {
  // One point at distance d: what range returns is the similarity itself. Nine of them: the first
  // eight or fewer go through a vector, the rest alone.
  for_levels([] {
    for_reals([]<typename Real>() {
      const auto kernel = kernels().all_pairs.of<Real>().any_power.of(1);
      const auto epsilon = static_cast<double>(kEpsilon<Real>);
      const auto smallest = static_cast<double>(std::numeric_limits<Real>::min());
      for (const double exponent : {1e-3, 0.1, 0.5, 0.8, 1.0, 1.5, 2.0, 10.0, 100.0, 1e3}) {
        const auto given = static_cast<Real>(exponent);
        for (double d = 1e-6; d < 1e15; d *= 1.07) {
          const std::vector<Real> points(17, static_cast<Real>(d));
          const Real* axes[] = {points.data()};
          const Real origin = 0;
          double force = 0;
          const double z = kernel(1, axes, 0, 17, &origin, given, &force) / 17;
          const double distance = static_cast<double>(points[0]);
          const double one_plus_d2 = 1 + distance * distance;
          const double q = std::pow(one_plus_d2, -static_cast<double>(given));
          // 2.3 (1 + |log q|) of the functions, exponent of 1 + d^2, a few of the sums.
          const double tolerance =
              epsilon * (2.5 * (1 + std::abs(std::log(q + smallest))) + exponent + 4);
          CHECK_NEAR(z, q, tolerance * q + smallest);
          const double expected = -17 * q * distance / one_plus_d2;
          // A product below the normal numbers has an absolute error, which the distance
          // multiplies.
          CHECK_NEAR(force, expected,
                     -2 * tolerance * expected + 17 * smallest * (1 + epsilon * distance));
        }
      }
    });
  });
}

TEST(all_pairs_and_an_opened_tree_match_a_double_loop) {
  for_reals_and_any_dims([]<typename Real, int Dims>() {
    for (const Cloud cloud : {Cloud::clustered, Cloud::half_duplicated, Cloud::outlier, Cloud::tiny,
                              Cloud::all_equal}) {
      for (const double exponent : kExponents) {
        const std::vector<Real> points = cloud_for<Real>(exponent, cloud, 203, Dims);
        const check::Scope scope(std::string(name_of(cloud)) + ", exponent " +
                                 std::to_string(exponent));
        const RepulsiveForces<double> expected = plain_repulsion<Dims>(points, exponent);
        const double rounding = (sizeof(Real) == 4 ? 2e-5 : 1e-12) + exponent * kEpsilon<Real>;
        for_levels([&] {
          for (const Method method : methods_in(Dims)) {
            const RepulsionOptions options = options_for(method, exponent, 0);
            const RepulsiveForces<Real> found = by<Dims>(options, points, 1);
            CHECK_NEAR(relative_error(found, expected), 0, rounding);
            CHECK_NEAR(found.z, expected.z, rounding * expected.z);
            for (const int threads : kThreadCounts) {
              const RepulsiveForces<Real> again = by<Dims>(options, points, threads);
              CHECK(same_bytes(again.force, found.force));
              CHECK_EQUAL(again.z, found.z);
            }
          }
        });
      }
    }
  });
}

TEST(distances_beyond_the_type_leave_finite_forces) {
  for_levels([] {
    for_reals_and_any_dims([]<typename Real, int Dims>() {
      const std::vector<Real> points = make_cloud<Real>(Cloud::huge, 203, Dims);
      for (const double exponent : kExponents) {
        for (const Method method : methods_in(Dims)) {
          const RepulsiveForces<Real> found = by<Dims>(options_for(method, exponent), points);
          CHECK(all_finite(std::span<const Real>(found.force)));
          CHECK(std::isfinite(found.z) && found.z >= 0);
        }
      }
    });
  });
}

TEST(the_tree_is_as_close_as_at_exponent_1) {
  for_reals_and_dims([]<typename Real, int Dims>() {
    check_against_all_pairs<Real, Dims>(Method::barnes_hut, {0.5, 0.8, 2.0, 5.0, 10.0}, 0.01);
  });
}

// The expansion is of second order whatever the exponent: halving the angle must divide the error
// by about eight.
TEST(the_tree_converges_with_the_third_power_of_the_angle) {
  const auto run = []<int Dims>() {
    for (const double exponent : {0.5, 2.0, 5.0}) {
      const std::vector<double> points = cloud_for<double>(exponent, Cloud::clustered, 3000, Dims);
      const check::Scope scope(std::to_string(Dims) + "-D, exponent " + std::to_string(exponent));
      const RepulsiveForces<double> exact = by<Dims>(options_for(Method::exact, exponent), points);
      const auto error_at = [&](double angle) {
        const RepulsionOptions options = options_for(Method::barnes_hut, exponent, angle);
        return relative_error(by<Dims>(options, points), exact);
      };
      CHECK(error_at(0.2) < error_at(0.4) / 5);
      CHECK(error_at(0.2) < 1e-3);
    }
  };
  run.operator()<1>();
  run.operator()<2>();
  run.operator()<3>();
}

TEST(the_grid_meets_its_error) {
  for_reals([]<typename Real>() {
    const auto exponents = {1e-3, 0.5, 0.8, 2.0, 5.0, 10.0, 200.0, 1e3};
    check_against_all_pairs<Real, 1>(Method::fft, exponents, 0.002);
    check_against_all_pairs<Real, 2>(Method::fft, exponents, 0.002);
  });
}

int main() {
  return check::run_tests();
}
