// The referee's KL divergence against its definition.
#include "check.hpp"
#include "data.hpp"
#include "plain_kl.hpp"
#include "quality/exact_kl.hpp"

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
        const double expected = naive_kl(P, points, dims, output_kernel);
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

int main() {
  return check::run_tests();
}
