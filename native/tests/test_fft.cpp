// The grid's Fourier transforms against sums over all frequencies, and its forces against all
// pairs.
#include "forces/block_convolution.hpp"
#include "forces/convolution.hpp"
#include "forces/fft_plan.hpp"
#include "forces/repulsive.hpp"
#include "forces/repulsive_fft.hpp"

#include "check.hpp"
#include "data.hpp"
#include "plain_forces.hpp"

#include <chrono>
#include <complex>
#include <numbers>
#include <thread>

using namespace acctsne;

namespace {

constexpr Cloud kMaps[] = {Cloud::uniform, Cloud::clustered, Cloud::grid};

template <int Dims, typename Real>
RepulsiveForces<Real> on_grid(const std::vector<Real>& points, double step, int threads = 2) {
  FftRepulsion<Real, Dims> repulsion(step);
  return forces_by<Dims>(repulsion, points, threads);
}

// Clusters as they are, far from each other: a map whose grid is convolved in blocks.
template <typename Real>
std::vector<Real> wide(std::vector<Real> map) {
  for (Real& value : map) {
    value += Real(400) * std::round(value / Real(25));
    value /= Real(3);
  }
  return map;
}

} // namespace

TEST(lengths_are_products_of_small_primes) {
  for (Size length = 1; length < 5000; ++length) {
    const Size found = fft_length(length);
    CHECK(found >= length);
    CHECK_EQUAL(found % 16, 0);
    Size rest = found;
    for (const Size prime : {2, 3, 5}) {
      while (rest % prime == 0) {
        rest /= prime;
      }
    }
    CHECK_EQUAL(rest, 1);
    // The next larger one is never more than a fifth away.
    CHECK(length < 16 || static_cast<double>(found) <= 1.25 * static_cast<double>(length) + 16);
  }
}

TEST(passes_of_a_plan_multiply_to_its_length) {
  for (Size length = 16; length <= 2 * kMaxGridNodes; length = fft_length(length + 1)) {
    const FftTables<float> tables(length);
    const FftPlan<float>& plan = tables.plan();
    CHECK_EQUAL(plan.pass[0].radix, 4);
    CHECK_EQUAL(plan.pass[plan.passes - 1].radix, 4);
    Size product = 1;
    for (int i = 0; i < plan.passes; ++i) {
      const FftPass& pass = plan.pass[i];
      CHECK(pass.radix <= kMaxRadix);
      int factors = 1;
      for (int f = 0; f < pass.factors; ++f) {
        factors *= pass.factor[f];
      }
      CHECK_EQUAL(factors, pass.radix);
      product *= pass.radix;
    }
    CHECK_EQUAL(product, length);
  }
}

TEST(even_lines_transform_like_the_cosine_sum) {
  for_levels([] {
    for_reals([]<typename Real>() {
      // Of none, one and two passes between the first and the last.
      for (const Size length : {16, 48, 80, 96, 240, 720, 1280}) {
        const FftTables<Real> tables(length);
        const GridKernels<Real>& kernel = kernels().grid.of<Real>();
        const int lanes = kernel.lanes;
        const Size half = length / 2;
        std::mt19937_64 random(5);
        std::normal_distribution<double> normal;
        std::vector<Real> lines(at((half + 1) * lanes));
        for (Real& value : lines) {
          value = static_cast<Real>(normal(random));
        }
        const std::vector<Real> given = lines;
        std::vector<Real> scratch(at(tables.scratch_size(lanes)));
        kernel.fft_even_lines(tables.plan(), lines.data(), lanes, scratch.data());
        for (Size k = 0; k <= half; ++k) {
          for (int lane = 0; lane < lanes; ++lane) {
            double sum = 0;
            for (Size x = 0; x < length; ++x) {
              const Size from = x <= half ? x : length - x;
              sum += static_cast<double>(given[at(from * lanes + lane)]) *
                     std::cos(2 * std::numbers::pi * static_cast<double>(k * x % length) /
                              static_cast<double>(length));
            }
            CHECK_NEAR(lines[at(k * lanes + lane)], sum,
                       100 * static_cast<double>(kEpsilon<Real>) * std::sqrt(length));
          }
        }
      }
    });
  });
}

// With a kernel spectrum of 1 / length^2 the three passes must give back what they were given.
TEST(transforms_undo_each_other) {
  for_levels([] {
    for_reals([]<typename Real>() {
      const GridKernels<Real>& kernel = kernels().grid.of<Real>();
      const int lanes = kernel.lanes;
      const FftTables<Real> along_x(96);
      const FftTables<Real> along_y(160);
      const Size columns = 41; // not a multiple of anything
      const Size rows = 2 * lanes;
      const Size stride = 3 * lanes;
      const Size slabs = (96 / 2 + lanes) / lanes;
      const Size slab_size = rows * 2 * lanes;
      std::mt19937_64 random(6);
      std::normal_distribution<double> normal;
      std::vector<Real> grid(at(columns * stride), Real(0));
      for (Size x = 0; x < columns; ++x) {
        for (Size y = 0; y < rows; ++y) {
          grid[at(x * stride + y)] = static_cast<Real>(normal(random));
        }
      }
      const std::vector<Real> given = grid;
      std::vector<Real> spectrum(at(slabs * slab_size));
      const std::vector<Real> ones(at((160 / 2 + 1) * lanes), Real(1) / (96 * 160));
      std::vector<Real> scratch(at(along_y.scratch_size(lanes)));
      kernel.fft_grid_to_spectrum(along_x.plan(), grid.data(), stride, columns, spectrum.data(),
                                  slab_size, scratch.data());
      for (Size slab = 0; slab < slabs; ++slab) {
        kernel.fft_convolve_slab(along_y.plan(), ones.data(), rows,
                                 spectrum.data() + slab * slab_size, scratch.data());
      }
      std::fill(grid.begin(), grid.end(), Real(0));
      kernel.fft_spectrum_to_grid(along_x.plan(), spectrum.data(), slab_size, grid.data(), stride,
                                  columns, scratch.data());
      for (std::size_t i = 0; i < grid.size(); ++i) {
        CHECK_NEAR(grid[i], given[i], 50 * static_cast<double>(kEpsilon<Real>));
      }
    });
  });
}

TEST(the_parts_of_the_kernel_add_up) {
  for (const double exponent : {0.5, 1.0, 2.0}) {
    const GridKernel kernel(exponent);
    for (double r = 0; r < 60; r += 0.25) {
      const double whole = kernel(KernelPart::whole, r * r);
      CHECK_NEAR(whole, std::pow(1 + r * r, -exponent), 1e-15);
      const double near = kernel(KernelPart::near, r * r);
      CHECK_NEAR(near + kernel(KernelPart::far, r * r), whole, 1e-15);
      CHECK(r < kNearReach ? true : near == 0);
    }
  }
}

// The cubic B-spline around node 0 of a grid with this step.
double spline(double x, double step) {
  const double t = std::abs(x / step);
  return t < 1 ? 2.0 / 3 - t * t + t * t * t / 2 : (t < 2 ? std::pow(2 - t, 3) / 6 : 0);
}

TEST(a_coarse_spline_is_a_sum_of_fine_ones) {
  for (double x = -9; x < 9; x += 0.0625) {
    double sum = 0;
    for (int i = 0; i < 16; ++i) {
      sum += TwoScale<double>::kWeights[i] * spline(x - (i - 9), 1);
    }
    CHECK_NEAR(sum, spline(x, kCoarseness), 1e-14);
  }
}

// Coarse coefficient j lies on the fine coefficient 4 j - 3.
TEST(lines_go_to_the_coarse_grid_and_back) {
  for_levels([] {
    for_reals([]<typename Real>() {
      const GridKernels<Real>& kernel = kernels().grid.of<Real>();
      std::mt19937_64 random(8);
      std::normal_distribution<double> normal;
      for (const Size fine : {4, 31, 64, 201}) {
        const Size coarse = (fine + 3) / 4 + 3;
        const auto weight = [&](Size i, Size j) {
          const Size at = i - (4 * j - 12);
          return at < 0 || at >= 16 ? 0.0 : TwoScale<double>::kWeights[at];
        };
        std::vector<Real> line(at(4 * coarse + 24), Real(0));
        Real* charges = line.data() + 12;
        for (Size i = 0; i < fine; ++i) {
          charges[i] = static_cast<Real>(normal(random));
        }
        std::vector<Real> found(at(coarse));
        kernel.coarsen_line(charges, coarse, found.data());
        for (Size j = 0; j < coarse; ++j) {
          double sum = 0;
          for (Size i = 0; i < fine; ++i) {
            sum += weight(i, j) * static_cast<double>(charges[i]);
          }
          CHECK_NEAR(found[at(j)], sum, 20 * static_cast<double>(kEpsilon<Real>));
        }
        std::vector<Real> back(at(4 * (coarse - 3)));
        kernel.refine_line(found.data(), coarse - 3, back.data());
        for (Size i = 0; i < fine; ++i) {
          double sum = 0;
          for (Size j = 0; j < coarse; ++j) {
            sum += weight(i, j) * static_cast<double>(found[at(j)]);
          }
          CHECK_NEAR(back[at(i)], sum, 20 * static_cast<double>(kEpsilon<Real>));
        }
      }
      const int lanes = kernel.lanes;
      std::vector<Real> lines[3];
      for (auto& values : lines) {
        values.resize(at(3 * lanes));
        for (Real& value : values) {
          value = static_cast<Real>(normal(random));
        }
      }
      std::vector<Real> sum = lines[2];
      const Real* const added[2] = {lines[0].data(), lines[1].data()};
      const Real weights[2] = {Real(0.75), Real(-2)};
      kernel.add_lines(added, weights, 2, 3 * lanes, sum.data());
      for (std::size_t i = 0; i < sum.size(); ++i) {
        CHECK_NEAR(sum[i], lines[2][i] + Real(0.75) * lines[0][i] - 2 * lines[1][i],
                   20 * static_cast<double>(kEpsilon<Real>));
      }
    });
  });
}

// Charges in a few places, so that some blocks have none, and some of those have them close by.
TEST(blocks_are_convolved_as_the_whole_grid_is) {
  for_levels([] {
    for_reals([]<typename Real>() {
      ThreadTeam team(2);
      constexpr double kStep = 0.4;
      constexpr Size kNodes[2] = {701, 402};
      const GridBlocks blocks(kNodes, kStep);
      CHECK(blocks.count[0] > 2 && blocks.count[1] > 1);
      const GridKernel kernel(1);
      GridConvolution<Real> whole(kernel);
      BlockConvolution<Real> by_block(kernel);
      Grid<Real> expected;
      Grid<Real> charges;
      Grid<Real> found;
      whole.prepare(KernelPart::near, kNodes, kStep, expected, team);
      by_block.prepare(blocks, kNodes, kStep, charges, found, team);
      expected.clear(team);
      charges.clear(team);
      const std::pair<Size, Size> nodes[] = {{0, 0},     {1, 401},
                                             {700, 0},   {blocks.side, blocks.side},
                                             {700, 401}, {blocks.side - 1, blocks.side + 40}};
      for (const auto& [x, y] : nodes) {
        charges.column(x)[y] = expected.column(x)[y] = static_cast<Real>(1 + x % 3);
      }
      const typename GridConvolution<Real>::Task task = {&whole, &expected};
      GridConvolution<Real>::run(std::span(&task, 1), team);
      double largest = 0;
      double error = 0;
      for (Size block = 0; block < blocks.total(); ++block) {
        by_block.run(charges, block, found, static_cast<int>(block % 2));
      }
      for (Size x = 0; x < kNodes[0]; ++x) {
        for (Size y = 0; y < kNodes[1]; ++y) {
          const auto value = static_cast<double>(expected.column(x)[y]);
          largest = std::max(largest, std::abs(value));
          error = std::max(error, std::abs(static_cast<double>(found.column(x)[y]) - value));
        }
      }
      CHECK(largest > 0.5);
      // Beyond rounding, what the spline's inverse has of the near part beyond its reach.
      CHECK(error < largest * std::max(20 * static_cast<double>(kEpsilon<Real>), 1e-7));
    });
  });
}

TEST(forces_of_maps_in_blocks_meet_the_error) {
  for_levels([] {
    for_reals([]<typename Real>() {
      for (const Cloud cloud : {Cloud::uniform, Cloud::clustered}) {
        const check::Scope scope(name_of(cloud));
        const std::vector<Real> map = wide(make_cloud<Real>(cloud, 3000, 2));
        const RepulsiveForces<Real> exact = all_pairs<2>(map);
        const RepulsiveForces<Real> found = on_grid<2>(map, grid_step_for_error(0.02));
        CHECK(relative_error(found, exact) < 0.02);
        CHECK_NEAR(found.z / exact.z, 1, 0.002);
      }
    });
  });
}

// What the far part adds to the error must follow the step too.
TEST(forces_of_wide_maps_become_as_accurate_as_asked) {
  for (const Cloud cloud : {Cloud::uniform, Cloud::clustered}) {
    const check::Scope scope(name_of(cloud));
    std::vector<double> map = make_cloud<double>(cloud, 5000, 2);
    for (std::size_t i = 0; i < map.size(); ++i) {
      map[i] *= i % 2 == 0 ? 1.7 : 0.6; // both sides just wide enough for two grids
    }
    const RepulsiveForces<double> exact = all_pairs<2>(map);
    for (const double error : {0.02, 0.005, 0.002}) {
      const RepulsiveForces<double> found = on_grid<2>(map, grid_step_for_error(error));
      CHECK(relative_error(found, exact) < error);
      CHECK_NEAR(found.z / exact.z, 1, 0.1 * error);
    }
  }
}

TEST(forces_meet_the_error_that_the_step_was_chosen_for) {
  for_levels([] {
    for_reals([]<typename Real>() {
      for (const Cloud cloud : kMaps) {
        const check::Scope scope(name_of(cloud));
        const std::vector<Real> map = make_cloud<Real>(cloud, 5000, 2);
        const RepulsiveForces<Real> exact = all_pairs<2>(map);
        for (const double error : {0.05, 0.02, 0.005}) {
          const RepulsiveForces<Real> found = on_grid<2>(map, grid_step_for_error(error));
          CHECK(relative_error(found, exact) < error);
          CHECK_NEAR(found.z / exact.z, 1, 0.1 * error);
        }
        const std::vector<Real> line = make_cloud<Real>(cloud, 3000, 1);
        CHECK(relative_error(on_grid<1>(line, grid_step_for_error(0.02)), all_pairs<1>(line)) <
              0.02);
      }
    });
  });
}

TEST(forces_are_right_for_maps_of_every_width) {
  for (const double scale : {1e-4, 1e-3, 0.1, 1.0, 7.0}) {
    const check::Scope scope(std::to_string(scale));
    std::vector<float> map = make_cloud<float>(Cloud::clustered, 2000, 2);
    for (std::size_t i = 0; i < map.size(); ++i) {
      map[i] *=
          static_cast<float>(scale) * (i % 2 == 0 ? 1.0f : 0.2f); // five times wider than high
    }
    CHECK(relative_error(on_grid<2>(map, grid_step_for_error(0.02)), all_pairs<2>(map)) < 0.02);
  }
}

// Down to where the potential's differences are lost in rounding, and where there would be more
// steps within the kernel's reach than an integer counts.
template <typename Real, int Dims>
void check_narrow_maps() {
  RepulsionOptions options;
  options.method = Method::fft;
  for (const double width : {1e-3, 1e-5, 2e-6, 1e-7, 1e-10, 1e-13, 1e-16, 1e-22, 1e-30}) {
    const check::Scope scope("width " + std::to_string(std::log10(width)));
    std::vector<Real> map = make_cloud<Real>(Cloud::uniform, 2000, Dims);
    for (Real& value : map) {
      value *= static_cast<Real>(width / 100);
    }
    ChosenRepulsion<Real> repulsion(Dims, options);
    const RepulsiveForces<Real> found = forces_by<Dims>(repulsion, map);
    const RepulsiveForces<Real> exact = all_pairs<Dims>(map);
    CHECK_NEAR(found.z / exact.z, 1, 1e-4);
    CHECK(relative_error(found, exact) < 0.03);
  }
}

TEST(forces_are_right_for_maps_that_are_almost_one_point) {
  check_narrow_maps<float, 1>();
  check_narrow_maps<float, 2>();
  check_narrow_maps<double, 1>();
  check_narrow_maps<double, 2>();
}

// Each of a few points many times over: forces and Z follow from those of the few, so that no sum
// over all pairs of millions is needed.
template <typename Real>
void check_many_in_few_places(Real width, Size place_count, Size copy_count) {
  std::vector<Real> places = make_cloud<Real>(Cloud::uniform, place_count, 2);
  for (Real& value : places) {
    value *= width / Real(100);
  }
  std::vector<Real> points;
  for (Size copy = 0; copy < copy_count; ++copy) {
    points.insert(points.end(), places.begin(), places.end());
  }
  const std::vector<double> exact_places(places.begin(), places.end());
  const RepulsiveForces<double> few = all_pairs<2>(exact_places);
  const auto copies = static_cast<double>(copy_count);
  const auto places_count = static_cast<double>(place_count);
  const double z = copies * copies * (few.z + places_count) - copies * places_count;

  const RepulsiveForces<Real> found = on_grid<2>(points, grid_step_for_error(0.02));
  CHECK_NEAR(found.z / z, 1, 2e-4);
  double error = 0;
  double size = 0;
  for (std::size_t c = 0; c < found.force.size(); ++c) {
    const double exact = copies * few.force[c % few.force.size()];
    error += std::pow(static_cast<double>(found.force[c]) - exact, 2);
    size += exact * exact;
  }
  CHECK(std::sqrt(error / size) < (width > 1e-4 && width < 1 ? 1e-3 : 0.02));
}

TEST(millions_of_points_in_a_few_cells_are_summed_without_loss) {
  for (const double width : {1e-6, 1e-3, 0.1, 3.0}) {
    const check::Scope scope("width " + std::to_string(width));
    check_many_in_few_places<float>(static_cast<float>(width), 500, 4000);
    check_many_in_few_places<double>(width, 500, 4000);
  }
  // So many in a node that float, adding them one by one, would round each of them.
  check_many_in_few_places<float>(1e-3f, 5, 800'000);
}

TEST(same_bytes_at_any_thread_count) {
  for_reals([]<typename Real>() {
    const std::vector<Real> narrow = make_cloud<Real>(Cloud::clustered, 9001, 2);
    for (const std::vector<Real>& map : {narrow, wide(narrow)}) {
      const RepulsiveForces<Real> one = on_grid<2>(map, 0.4, 1);
      for (const int threads : kThreadCounts) {
        const RepulsiveForces<Real> many = on_grid<2>(map, 0.4, threads);
        CHECK(same_bytes(many.force, one.force));
        CHECK_EQUAL(many.z, one.z);
      }
    }
  });
}

TEST(one_object_serves_maps_that_grow_and_shrink) {
  ThreadTeam team(2);
  FftRepulsion<float, 2> repulsion(0.4);
  for (const float scale : {1.0f, 5.0f, 0.01f, 2.0f, 6.0f}) {
    std::vector<float> map = make_cloud<float>(Cloud::uniform, 1500, 2);
    for (float& value : map) {
      value *= scale;
    }
    std::vector<float> force(map.size());
    const double z = repulsion.forces(map_of<2>(map).map(), force.data(), team);
    const RepulsiveForces<float> fresh = on_grid<2>(map, 0.4);
    CHECK(same_bytes(force, fresh.force));
    CHECK_EQUAL(z, fresh.z);
  }
}

TEST(a_cancelled_call_leaves_nothing_half_done) {
  const std::vector<float> points = make_cloud<float>(Cloud::uniform, 300, 2, 1);
  const auto forces = [&](FftRepulsion<float, 2>& repulsion, ThreadTeam& team) {
    std::vector<float> force(points.size());
    repulsion.forces(map_of<2>(points).map(), force.data(), team);
    return force;
  };
  FftRepulsion<float, 2> interrupted(0.4);
  {
    ThreadTeam team(1, [] { return true; });
    // Until it is due to ask.
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    CHECK(check::throws<Cancelled>([&] { forces(interrupted, team); }));
  }
  FftRepulsion<float, 2> fresh(0.4);
  ThreadTeam team(1);
  CHECK(same_bytes(forces(interrupted, team), forces(fresh, team)));
}

TEST(a_runaway_point_sends_the_map_to_the_tree) {
  const std::vector<float> map = make_cloud<float>(Cloud::outlier, 3000, 2);
  RepulsionOptions options;
  options.method = Method::fft;
  ChosenRepulsion<float> repulsion(2, options);
  const RepulsiveForces<float> found = forces_by<2>(repulsion, map);
  CHECK(repulsion.used() == Method::barnes_hut);
  CHECK(relative_error(found, all_pairs<2>(map)) < 0.03);
}

int main() {
  return check::run_tests();
}
