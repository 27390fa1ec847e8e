// Forces and the parts of the KL divergence against double loops; Barnes-Hut against all pairs.
#include "forces/attractive.hpp"
#include "forces/edges.hpp"
#include "forces/repulsive_tree.hpp"

#include "check.hpp"
#include "data.hpp"
#include "plain_forces.hpp"

using namespace acctsne;

namespace {

template <int Dims, typename Real>
RepulsiveForces<Real> barnes_hut(const std::vector<Real>& points, double angle, int threads = 2) {
  TreeRepulsion<Real, Dims> tree(angle, 1);
  return forces_by<Dims>(tree, points, threads);
}

// Sums of a thousand terms in Real.
template <typename Real>
inline constexpr double kRounding = sizeof(Real) == 4 ? 2e-5 : 1e-12;

template <typename Real>
void check_repulsion(const RepulsiveForces<Real>& result, const RepulsiveForces<double>& expected,
                     Cloud cloud) {
  CHECK(all_finite(std::span<const Real>(result.force)));
  if (sizeof(Real) == 4 && cloud == Cloud::huge) {
    // Squared distances overflow float: what is left of the forces and of Z is 0.
    CHECK_NEAR(relative_error(result.force, std::vector<double>(result.force.size(), 0.0)), 0,
               1e-30);
    CHECK_NEAR(result.z, 0, 1e-30);
  } else {
    CHECK_NEAR(relative_error(result, expected), 0, kRounding<Real>);
    CHECK_NEAR(result.z, expected.z, kRounding<Real> * expected.z);
  }
}

} // namespace

TEST(attractive_forces_match_a_double_loop) {
  constexpr Size kRows = 700;
  for_levels([] {
    for_reals_and_any_dims([]<typename Real, int Dims>() {
      const Csr<Real> P = make_joint<Real>(kRows, 15);
      for (const Cloud cloud : kClouds) {
        const check::Scope scope(name_of(cloud));
        const std::vector<Real> points = make_cloud<Real>(cloud, kRows, Dims);
        std::vector<double> expected(points.size(), 0.0);
        for (Size i = 0; i < kRows; ++i) {
          for (EdgeId e = P.offsets[at(i)]; e < P.offsets[at(i + 1)]; ++e) {
            const Real* y = points.data() + i * Dims;
            const Real* other = points.data() + Size{P.columns[at(e)]} * Dims;
            const double w = static_cast<double>(P.values[at(e)]) / (1 + squared(y, other, Dims));
            for (int axis = 0; axis < Dims; ++axis) {
              expected[at(i * Dims + axis)] +=
                  w * (static_cast<double>(y[axis]) - static_cast<double>(other[axis]));
            }
          }
        }
        std::vector<Real> first;
        for (const int threads : kThreadCounts) {
          ThreadTeam team(threads);
          std::vector<Real> force(points.size());
          attractive_forces(edges_of(P), points.data(), Dims, {0, P.view().rows()}, force.data(),
                            team);
          if (threads == 1) {
            first = force;
            if (sizeof(Real) == 4 && cloud == Cloud::huge) {
              // Squared distances overflow float: no force is left.
              CHECK(std::all_of(force.begin(), force.end(),
                                [](Real f) { return std::abs(f) < 1e-6f; }));
            } else {
              CHECK_NEAR(relative_error(force, expected), 0, kRounding<Real>);
            }
          }
          CHECK(same_bytes(force, first));
        }
      }
    });
  });
}

TEST(half_precision_of_P_changes_forces_by_its_rounding) {
  for_levels([] {
    for (const int dims : {2, 5}) {
      const Csr<float> P = make_joint<float>(700, 15);
      const std::vector<float> points = make_cloud<float>(Cloud::clustered, 700, dims);
      ThreadTeam team(2);
      std::vector<float> full(points.size());
      std::vector<float> half(points.size());
      attractive_forces(edges_of(P, false), points.data(), dims, {0, 700}, full.data(), team);
      attractive_forces(edges_of(P, true), points.data(), dims, {0, 700}, half.data(), team);
      const std::vector<double> expected(full.begin(), full.end());
      CHECK_NEAR(relative_error(half, expected), 0, 0x1p-11);
      RowSums sums;
      cross_entropy(edges_of(P, false), points.data(), dims, {0, 700}, sums, team);
      const double in_full = sums.total();
      cross_entropy(edges_of(P, true), points.data(), dims, {0, 700}, sums, team);
      const double in_half = sums.total();
      CHECK_NEAR(in_half, in_full, 1e-4 * in_full);
    }
  });
}

// Row kHub has very many edges: of the columns beside it, which are stored in 16 bits, and of the
// last ones, which are not. The rows about it have a few.
TEST(a_point_of_very_many_edges_loses_none_of_them) {
  constexpr Size kRows = 70'000;
  constexpr Size kHub = 5;
  constexpr Size kHubEdges = 600'000;
  constexpr Size kOthers = 40;
  for_levels([] {
    for_reals_in<1, 2, 3, 4, 11>([]<typename Real, int Dims>() {
      // Few positions, so that the terms of a sum are alike and its roundings go the same way.
      std::vector<Real> points(at(kRows * Dims));
      for (std::size_t i = 0; i < points.size(); ++i) {
        points[i] = static_cast<Real>(i % 3) + Real(0.3);
      }
      std::fill_n(points.begin() + kHub * Dims, Dims, Real(-0.8));
      const auto make = [&](Size hub_edges) {
        Csr<Real> P;
        P.offsets.push_back(0);
        for (Size i = 0; i < kRows; ++i) {
          const Size edges = i == kHub ? hub_edges : (i < kOthers ? i : 0);
          for (Size e = 0; e < edges; ++e) {
            const Size column = e % 2 == 0 ? 50 + e % 1000 : kRows - 1 - e % 1000;
            P.columns.push_back(static_cast<PointId>(column));
            P.values.push_back(static_cast<Real>(0.1 / kHubEdges));
          }
          P.offsets.push_back(static_cast<EdgeId>(P.columns.size()));
        }
        return P;
      };
      const Csr<Real> P = make(kHubEdges);
      const Csr<Real> without = make(0);
      long double expected[Dims] = {};
      long double expected_cross = 0;
      for (Size i = 0; i < kRows; ++i) {
        for (EdgeId e = P.offsets[at(i)]; e < P.offsets[at(i + 1)]; ++e) {
          const Real* y = points.data() + i * Dims;
          const Real* other = points.data() + Size{P.columns[at(e)]} * Dims;
          const auto p = static_cast<double>(P.values[at(e)]);
          const double d2 = squared(y, other, Dims);
          expected_cross += p * std::log1p(d2);
          for (int axis = 0; axis < Dims && i == kHub; ++axis) {
            expected[axis] +=
                p / (1 + d2) * (static_cast<double>(y[axis]) - static_cast<double>(other[axis]));
          }
        }
      }
      for (const bool half : {false, true}) {
        const check::Scope scope(half ? "half" : "full");
        // The roundings of a part's sum, and that of p in half precision.
        const double tolerance =
            2e-5 / (sizeof(Real) == 4 ? 1 : 1e8) + (half && sizeof(Real) == 4 ? 0x1p-11 : 0);
        const Edges<Real> edges = edges_of(P, half);
        const Edges<Real> edges_without = edges_of(without, half);
        std::vector<Real> first;
        double first_cross = 0;
        for (const int threads : kThreadCounts) {
          ThreadTeam team(threads);
          std::vector<Real> force(points.size());
          RowSums sums;
          attractive_forces(edges, points.data(), Dims, {0, kRows}, force.data(), team);
          cross_entropy(edges, points.data(), Dims, {0, kRows}, sums, team);
          if (threads == 1) {
            first = force;
            first_cross = sums.total();
            for (int axis = 0; axis < Dims; ++axis) {
              CHECK_NEAR(force[at(kHub * Dims + axis)], expected[axis],
                         tolerance * std::abs(expected[axis]));
            }
            CHECK_NEAR(first_cross, expected_cross, tolerance * expected_cross);
          }
          CHECK(same_bytes(force, first));
          CHECK_EQUAL(sums.total(), first_cross);
        }
        // A row's sums are the same beside a long one.
        ThreadTeam team(1);
        std::vector<Real> force(points.size());
        attractive_forces(edges_without, points.data(), Dims, {0, kRows}, force.data(), team);
        std::copy_n(first.begin() + kHub * Dims, Dims, force.begin() + kHub * Dims);
        CHECK(same_bytes(force, first));
      }
    });
  });
}

TEST(entropies_match_a_double_loop) {
  constexpr Size kRows = 700;
  for_levels([] {
    for_reals_and_any_dims([]<typename Real, int Dims>() {
      Csr<Real> P = make_joint<Real>(kRows, 15);
      P.values[3] = 0; // 0 log 0 counts as 0
      const std::vector<Real> points = make_cloud<Real>(Cloud::clustered, kRows, Dims);
      double expected_negative = 0;
      double expected_cross = 0;
      for (Size i = 0; i < kRows; ++i) {
        for (EdgeId e = P.offsets[at(i)]; e < P.offsets[at(i + 1)]; ++e) {
          const auto p = static_cast<double>(P.values[at(e)]);
          expected_negative += p > 0 ? p * std::log(p) : 0.0;
          expected_cross +=
              p * std::log1p(squared(points.data() + i * Dims,
                                     points.data() + Size{P.columns[at(e)]} * Dims, Dims));
        }
      }
      RowSums sums;
      std::vector<double> crosses;
      for (const int threads : kThreadCounts) {
        ThreadTeam team(threads);
        CHECK_NEAR(edges_of(P).negative_entropy(), expected_negative, 1e-11);
        cross_entropy(edges_of(P), points.data(), Dims, {0, kRows}, sums, team);
        crosses.push_back(sums.total());
        CHECK_NEAR(crosses.back(), expected_cross, kRounding<Real> * expected_cross);
        CHECK_EQUAL(crosses.back(), crosses.front());
      }
    });
  });
}

TEST(exact_repulsion_matches_a_double_loop) {
  for_levels([] {
    for_reals_and_any_dims([]<typename Real, int Dims>() {
      constexpr Size kCount = 601;
      for (const Cloud cloud : kClouds) {
        const check::Scope scope(name_of(cloud));
        const std::vector<Real> points = make_cloud<Real>(cloud, kCount, Dims);
        const RepulsiveForces<double> expected = plain_repulsion<Dims>(points);
        const RepulsiveForces<Real> result = all_pairs<Dims>(points, 1);
        check_repulsion(result, expected, cloud);
        for (const int threads : kThreadCounts) {
          const RepulsiveForces<Real> again = all_pairs<Dims>(points, threads);
          CHECK(same_bytes(again.force, result.force));
          CHECK_EQUAL(again.z, result.z);
        }
      }
    });
  });
}

TEST(exact_repulsion_of_chosen_rows) {
  for_reals_and_any_dims([]<typename Real, int Dims>() {
    const std::vector<Real> points = make_cloud<Real>(Cloud::clustered, 300, Dims);
    const RepulsiveForces<Real> all = all_pairs<Dims>(points);
    const std::vector<PointId> rows = {299, 0, 17, 17, 150};
    std::vector<Real> force(rows.size() * Dims);
    std::vector<double> z(rows.size());
    ThreadTeam team(3);
    ExactRepulsion<Real> repulsion(Dims);
    repulsion.forces(points.data(), 300, rows, force.data(), z.data(), team);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      double expected = 0;
      for (Size j = 0; j < 300; ++j) {
        expected += j == rows[r] ? 0.0
                                 : 1 / (1 + squared(points.data() + Size{rows[r]} * Dims,
                                                    points.data() + j * Dims, Dims));
      }
      CHECK_NEAR(z[r], expected, kRounding<Real> * expected);
      for (int axis = 0; axis < Dims; ++axis) {
        CHECK_EQUAL(force[r * Dims + at(axis)], all.force[at(Size{rows[r]} * Dims + axis)]);
      }
    }
  });
}

TEST(no_self_term_drowns_a_small_z) {
  // Z = 2 / (1 + d^2) is far below the rounding of 2, the sum of the self terms.
  for_reals_and_dims([]<typename Real, int Dims>() {
    for (const double distance : {1e3, 1e6, 1e9}) {
      std::vector<Real> points(2 * Dims, Real(0));
      points[Dims] = static_cast<Real>(distance);
      const double expected = 2 / (1 + distance * distance);
      for (const RepulsiveForces<Real>& result :
           {all_pairs<Dims>(points), barnes_hut<Dims>(points, 0.5), barnes_hut<Dims>(points, 0)}) {
        CHECK_NEAR(result.z, expected, kRounding<Real> * expected);
        CHECK(result.force[0] < 0 && result.force[Dims] > 0);
      }
    }
  });
}

TEST(an_angle_of_zero_is_exact) {
  for_reals_and_dims([]<typename Real, int Dims>() {
    for (const Cloud cloud : kClouds) {
      for (const Size count : {1, 2, 9, 1000}) {
        const check::Scope scope(std::string(name_of(cloud)) + ", " + std::to_string(count));
        const std::vector<Real> points = make_cloud<Real>(cloud, count, Dims);
        const RepulsiveForces<double> expected = plain_repulsion<Dims>(points);
        check_repulsion(barnes_hut<Dims>(points, 0), expected, cloud);
      }
    }
  });
}

TEST(one_far_point_does_not_merge_the_others) {
  // The smallest cells are now as large as the rest of the cloud, whose points are as distinct as
  // ever.
  for_reals_and_dims([]<typename Real, int Dims>() {
    std::vector<Real> points = make_cloud<Real>(Cloud::uniform, 300, Dims);
    std::fill_n(points.begin() + 7 * Dims, Dims, Real(1e12));
    const RepulsiveForces<double> expected = plain_repulsion<Dims>(points);
    check_repulsion(barnes_hut<Dims>(points, 0), expected, Cloud::outlier);
  });
}

// A cell's action is expanded to second order: halving the angle must divide the error by about
// eight.
TEST(barnes_hut_converges_with_the_third_power_of_the_angle) {
  const auto run = []<int Dims>() {
    const check::Scope scope(std::to_string(Dims) + "-D");
    const std::vector<double> points = make_cloud<double>(Cloud::clustered, 3000, Dims);
    const RepulsiveForces<double> expected = all_pairs<Dims>(points);
    const double coarse = relative_error(barnes_hut<Dims>(points, 0.4), expected);
    const double fine = relative_error(barnes_hut<Dims>(points, 0.2), expected);
    CHECK(fine < coarse / 5);
    CHECK(fine < 1e-3);
  };
  run.operator()<1>();
  run.operator()<2>();
  run.operator()<3>();
}

TEST(barnes_hut_is_close_and_closer_with_a_smaller_angle) {
  for_reals_and_dims([]<typename Real, int Dims>() {
    constexpr Size kCount = 5000;
    // On an evenly filled line the pushes from left and right cancel, and the error is measured
    // against the little that remains.
    constexpr double kBound = Dims == 1 ? 0.07 : 0.03;
    for (const Cloud cloud : {Cloud::uniform, Cloud::clustered, Cloud::grid}) {
      for (const double span : {60.0, 100.0, 300.0}) {
        // On a wide lattice the pushes of all sides cancel: scikit-learn is at 5.3 % there.
        const double bound = cloud == Cloud::grid && span == 300 ? 0.05 : kBound;
        const check::Scope scope(std::string(name_of(cloud)) + ", span " + std::to_string(span));
        std::vector<Real> points = make_cloud<Real>(cloud, kCount, Dims);
        for (Real& value : points) {
          value *= static_cast<Real>(span / 100);
        }
        const std::vector<double> in_double(points.begin(), points.end());
        const RepulsiveForces<double> expected = all_pairs<Dims>(in_double);
        double last_error = 0;
        for (const double angle : {0.1, 0.25, 0.5}) {
          const check::Scope angle_scope("angle " + std::to_string(angle));
          const RepulsiveForces<Real> result = barnes_hut<Dims>(points, angle);
          const double error = relative_error(result, expected);
          CHECK(error > last_error);
          last_error = error;
          if (angle == 0.5) {
            CHECK_NEAR(error, 0, Dims == 1 ? kBound : bound);
            CHECK_NEAR(result.z, expected.z, 0.02 * expected.z);
          }
        }
      }
    }
  });
}

TEST(threads_do_not_change_barnes_hut) {
  for_reals_and_dims([]<typename Real, int Dims>() {
    for (const Cloud cloud : kClouds) {
      const check::Scope scope(name_of(cloud));
      const std::vector<Real> points = make_cloud<Real>(cloud, 1500, Dims);
      const RepulsiveForces<Real> expected = barnes_hut<Dims>(points, 0.5, 1);
      CHECK(all_finite(std::span<const Real>(expected.force)));
      CHECK(std::isfinite(expected.z) && expected.z >= 0);
      for (const int threads : kThreadCounts) {
        const RepulsiveForces<Real> result = barnes_hut<Dims>(points, 0.5, threads);
        CHECK(same_bytes(result.force, expected.force));
        CHECK_EQUAL(result.z, expected.z);
      }
    }
  });
}

// Points that have moved by up to `most` along each axis, as a part of the distance between
// neighbours on a lattice, after a common scaling and shift.
template <typename Real, int Dims>
std::vector<Real> moved(const std::vector<Real>& points, double most, double scale, double shift) {
  const Bounds<Real> bounds = map_of<Dims>(points);
  const double count = static_cast<double>(points.size()) / Dims;
  const double spacing = static_cast<double>(bounds.map().upper[0] - bounds.map().lower[0]) *
                         std::pow(count, -1.0 / Dims);
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> step(-most * spacing, most * spacing);
  std::vector<Real> result(points);
  for (Real& value : result) {
    value = static_cast<Real>(scale * (static_cast<double>(value) + step(random)) + shift);
  }
  return result;
}

TEST(a_kept_tree_gives_forces_of_the_present_positions) {
  for_levels([] {
    for_reals_and_dims([]<typename Real, int Dims>() {
      for (const Cloud cloud : {Cloud::uniform, Cloud::clustered, Cloud::grid}) {
        const check::Scope scope(name_of(cloud));
        const std::vector<Real> points = make_cloud<Real>(cloud, 1000, Dims);
        TreeRepulsion<Real, Dims> kept(0.5, 1);
        TreeRepulsion<Real, Dims> opened(0, 1);
        forces_by<Dims>(kept, points, 2);
        forces_by<Dims>(opened, points, 2);
        for (const double scale : {0.7, 1.0, 3.0}) {
          const std::vector<Real> now = moved<Real, Dims>(points, 0.03, scale, 20);
          const RepulsiveForces<double> expected = plain_repulsion<Dims>(now);
          const RepulsiveForces<Real> found = forces_by<Dims>(kept, now, 1);
          CHECK(std::ranges::equal(kept.kept(), points));
          const double error = relative_error(found, expected);
          const double fresh = relative_error(barnes_hut<Dims>(now, 0.5), expected);
          // The lists hold for all that points may do, so they open more cells than a fresh walk.
          CHECK(error < 1.2 * fresh);
          CHECK_NEAR(found.z, expected.z, 0.01 * expected.z);
          for (const int threads : kThreadCounts) {
            const RepulsiveForces<Real> again = forces_by<Dims>(kept, now, threads);
            CHECK(same_bytes(again.force, found.force));
            CHECK_EQUAL(again.z, found.z);
          }
          check_repulsion(forces_by<Dims>(opened, now, 3), expected, cloud);
        }
      }
    });
  });
}

TEST(a_tree_is_built_anew_when_a_point_has_moved_too_far) {
  for_reals_and_dims([]<typename Real, int Dims>() {
    const std::vector<Real> points = make_cloud<Real>(Cloud::clustered, 1000, Dims);
    const auto check_new = [&](const std::vector<Real>& now) {
      TreeRepulsion<Real, Dims> tree(0.5, 1);
      forces_by<Dims>(tree, points, 2);
      CHECK(std::ranges::equal(tree.kept(), points));
      const RepulsiveForces<Real> found = forces_by<Dims>(tree, now, 2);
      CHECK(std::ranges::equal(tree.kept(), now));
      CHECK(same_bytes(found.force, barnes_hut<Dims>(now, 0.5).force));
    };
    check_new(moved<Real, Dims>(points, 0.5, 1, 0));
    check_new(make_cloud<Real>(Cloud::uniform, 1000, Dims));
    check_new(make_cloud<Real>(Cloud::clustered, 900, Dims));
    std::vector<Real> one_moved(points);
    std::copy_n(points.begin() + 3 * Dims, Dims, one_moved.begin() + 500 * Dims);
    check_new(one_moved);
  });
}

TEST(a_tree_built_from_kept_positions_goes_on_to_the_same_bits) {
  for_reals_and_dims([]<typename Real, int Dims>() {
    const std::vector<Real> points = make_cloud<Real>(Cloud::clustered, 1000, Dims);
    const std::vector<Real> now = moved<Real, Dims>(points, 0.03, 1.1, 0);
    TreeRepulsion<Real, Dims> first(0.5, 1);
    forces_by<Dims>(first, points, 2);
    TreeRepulsion<Real, Dims> second(0.5, 1);
    ThreadTeam team(1);
    second.keep(first.kept(), team);
    const RepulsiveForces<Real> expected = forces_by<Dims>(first, now, 2);
    const RepulsiveForces<Real> found = forces_by<Dims>(second, now, 3);
    CHECK(same_bytes(found.force, expected.force));
    CHECK_EQUAL(found.z, expected.z);
    second.keep({}, team);
    CHECK(second.kept().empty());
  });
}

TEST(trees_that_may_not_serve_again_are_not_kept) {
  for_reals_and_dims([]<typename Real, int Dims>() {
    // Points in one place, which may part.
    const std::vector<Real> equal = make_cloud<Real>(Cloud::all_equal, 1000, Dims);
    TreeRepulsion<Real, Dims> tree(0.5, 1);
    forces_by<Dims>(tree, equal, 2);
    CHECK(tree.kept().empty());
    const std::vector<Real> parted =
        moved<Real, Dims>(make_cloud<Real>(Cloud::two_point, 1000, Dims), 1e-3, 1, 0);
    const RepulsiveForces<double> expected = plain_repulsion<Dims>(parted);
    CHECK_NEAR(relative_error(forces_by<Dims>(tree, parted, 2), expected), 0, 0.03);
    // Lists too long for their room, which a small angle makes.
    const std::vector<Real> spread = make_cloud<Real>(Cloud::uniform, 5000, Dims);
    TreeRepulsion<Real, Dims> fine(0.1, 1);
    forces_by<Dims>(fine, spread, 2);
    CHECK_EQUAL(fine.kept().empty(), Dims > 1);
    // More points than pay.
    const std::vector<Real> many = make_cloud<Real>(Cloud::uniform, 5001, Dims);
    TreeRepulsion<Real, Dims> large(0.5, 1);
    forces_by<Dims>(large, many, 2);
    CHECK(large.kept().empty());
  });
}

TEST(coincident_points_push_nowhere) {
  for_reals_and_dims([]<typename Real, int Dims>() {
    constexpr Size kCount = 3000;
    const std::vector<Real> points = make_cloud<Real>(Cloud::all_equal, kCount, Dims);
    for (const RepulsiveForces<Real>& result :
         {all_pairs<Dims>(points), barnes_hut<Dims>(points, 0.5), barnes_hut<Dims>(points, 0)}) {
      CHECK_EQUAL(result.z, static_cast<double>(kCount * (kCount - 1)));
      CHECK(std::all_of(result.force.begin(), result.force.end(), [](Real f) { return f == 0; }));
    }
  });
}

int main() {
  return check::run_tests();
}
