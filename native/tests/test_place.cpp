// New points in a map: the field that pushes them, their descent, and that they go alone.
#include "forces/repulsive.hpp"
#include "optimize/place.hpp"

#include "check.hpp"
#include "data.hpp"
#include "plain_forces.hpp"

using namespace acctsne;

namespace {

// Positions in the middle of the map, at its border, and far away from it.
template <typename Real, int Dims>
std::vector<Real> positions_near(const std::vector<Real>& map, Size count) {
  std::vector<Real> positions = make_cloud<Real>(Cloud::uniform, count, Dims);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    positions[i] = map[(i * 7) % map.size() / Dims * Dims + i % Dims] + positions[i] / 50;
  }
  std::fill_n(positions.end() - Dims, Dims, Real(1000));
  return positions;
}

// A map, and new points that are drawn to some of its points.
template <typename Real>
struct Placement {
  std::vector<Real> map;
  std::vector<PointId> neighbors;
  std::vector<Real> weights;
  std::vector<Real> initial;
  Size count;
  Size k = 5;

  template <int Dims>
  static Placement make(Size map_points, Size count) {
    Placement made;
    made.count = count;
    made.map = make_cloud<Real>(Cloud::clustered, map_points, Dims);
    std::mt19937_64 random(3);
    for (Size i = 0; i < count; ++i) {
      const Size centre = static_cast<Size>(random() % static_cast<std::uint64_t>(map_points));
      std::vector<std::pair<double, PointId>> by_distance;
      for (Size j = 0; j < map_points; ++j) {
        double d2 = 0;
        for (int axis = 0; axis < Dims; ++axis) {
          const double apart = static_cast<double>(made.map[at(j * Dims + axis)]) -
                               static_cast<double>(made.map[at(centre * Dims + axis)]);
          d2 += apart * apart;
        }
        by_distance.emplace_back(d2, static_cast<PointId>(j));
      }
      std::sort(by_distance.begin(), by_distance.end());
      for (Size e = 0; e < made.k; ++e) {
        made.neighbors.push_back(by_distance[at(e)].second);
        made.weights.push_back(Real(1) / static_cast<Real>(made.k));
      }
      for (int axis = 0; axis < Dims; ++axis) {
        made.initial.push_back(made.map[at(centre * Dims + axis)] + Real(0.5));
      }
    }
    return made;
  }

  // The points [begin, end) as a batch of their own.
  std::vector<Real> place(int dims, const RepulsionOptions& options, Size iterations, Size begin,
                          Size end, int threads) const {
    std::vector<Real> positions(initial.begin() + begin * dims, initial.begin() + end * dims);
    Phase phase;
    phase.iterations = iterations;
    phase.learning_rate = 0.1;
    phase.momentum = 0.8;
    phase.max_step = 0.25;
    ThreadTeam team(threads);
    place_points<Real>({map.data(), static_cast<Size>(map.size()) / dims, dims,
                        neighbors.data() + begin * k, weights.data() + begin * k, end - begin, k,
                        positions.data(), options, phase},
                       team);
    return positions;
  }
};

// KL of one new point, up to a constant: -sum_j p_j log q_j with q normalised over the map.
template <typename Real>
double plain_kl(const Placement<Real>& placement, int dims, Size point, const Real* y) {
  double z = 0;
  std::vector<double> log_q;
  for (std::size_t j = 0; j < placement.map.size(); j += at(dims)) {
    double d2 = 0;
    for (int axis = 0; axis < dims; ++axis) {
      const double apart =
          static_cast<double>(y[axis]) - static_cast<double>(placement.map[j + at(axis)]);
      d2 += apart * apart;
    }
    z += 1 / (1 + d2);
    log_q.push_back(-std::log1p(d2));
  }
  double kl = 0;
  for (Size e = 0; e < placement.k; ++e) {
    const auto neighbor = at(placement.neighbors[at(point * placement.k + e)]);
    kl -= static_cast<double>(placement.weights[at(point * placement.k + e)]) *
          (log_q[neighbor] - std::log(z));
  }
  return kl;
}

} // namespace

TEST(field_matches_a_loop_over_the_map) {
  for_levels([] {
    for_reals_and_dims([]<typename Real, int Dims>() {
      const std::vector<Real> map = make_cloud<Real>(Cloud::clustered, 2000, Dims);
      const std::vector<Real> positions = positions_near<Real, Dims>(map, 200);
      for (const Method method : {Method::automatic, Method::barnes_hut, Method::exact}) {
        for (const double exponent : {1.0, 0.5, 2.0}) {
          RepulsionOptions options;
          options.method = method;
          options.output_kernel.exponent = exponent;
          ThreadTeam team(2);
          const auto field = make_field(Dims, map_of<Dims>(map).map(), options, team);
          double error2 = 0;
          double size2 = 0;
          double z_error2 = 0;
          double z_size2 = 0;
          for (std::size_t i = 0; i < positions.size(); i += Dims) {
            Real force[Dims];
            double expected[Dims];
            const double z = field->at(positions.data() + i, force);
            const double expected_z =
                plain_push<Dims>(map, positions.data() + i, exponent, expected);
            z_error2 += (z - expected_z) * (z - expected_z);
            z_size2 += expected_z * expected_z;
            for (std::size_t axis = 0; axis < Dims; ++axis) {
              const double error = static_cast<double>(force[axis]) - expected[axis];
              error2 += error * error;
              size2 += expected[axis] * expected[axis];
            }
          }
          CHECK(std::sqrt(z_error2 / z_size2) < (method == Method::exact ? 1e-4 : 0.02));
          CHECK(std::sqrt(error2 / size2) < (method == Method::exact ? 1e-4 : 0.03));
        }
      }
    });
  });
}

// Equal terms are the worst: what rounding does to one of them, it does to all.
TEST(a_field_of_many_points_loses_none) {
  constexpr Size kPoints = Size{1} << 21;
  const std::vector<float> map(at(2 * kPoints), 0.0f);
  RepulsionOptions options;
  options.method = Method::barnes_hut;
  options.angle = 0; // every point counts by itself
  ThreadTeam team(2);
  const float position[] = {1.5f, 0.3f};
  const double q = 1 / (1 + squared(position, map.data(), 2));
  for_levels([&] {
    const auto field = make_field(2, map_of<2>(map).map(), options, team);
    float force[2];
    CHECK_NEAR(field->at(position, force) / static_cast<double>(kPoints), q, 1e-4 * q);
    for (std::size_t axis = 0; axis < 2; ++axis) {
      const double expected = q * q * static_cast<double>(position[axis]);
      CHECK_NEAR(static_cast<double>(force[axis]) / static_cast<double>(kPoints), expected,
                 1e-4 * expected);
    }
  });
}

TEST(a_batch_gives_each_point_what_it_gets_alone) {
  for_reals_in<1, 2, 3, 5>([]<typename Real, int Dims>() {
    const auto placement = Placement<Real>::template make<Dims>(500, 70);
    for (const Method method : {Method::automatic, Method::barnes_hut}) {
      if (Dims > kCompiledDims && method == Method::barnes_hut) {
        continue;
      }
      RepulsionOptions options;
      options.method = method;
      const std::vector<Real> together = placement.place(Dims, options, 50, 0, 70, 1);
      for (const int threads : kThreadCounts) {
        CHECK(same_bytes(placement.place(Dims, options, 50, 0, 70, threads), together));
      }
      for (const Size point : {0, 1, 31, 32, 69}) {
        const std::vector<Real> alone = placement.place(Dims, options, 50, point, point + 1, 2);
        CHECK(same_bytes(alone, std::vector<Real>(together.begin() + point * Dims,
                                                  together.begin() + (point + 1) * Dims)));
      }
    }
  });
}

TEST(a_placed_point_ends_at_a_minimum_of_its_divergence) {
  for_reals_in<1, 2, 3, 5>([]<typename Real, int Dims>() {
    const auto placement = Placement<Real>::template make<Dims>(500, 20);
    RepulsionOptions options;
    options.method = Method::exact;
    const std::vector<Real> placed = placement.place(Dims, options, 1000, 0, 20, 2);
    for (Size point = 0; point < 20; ++point) {
      const Real* y = placed.data() + point * Dims;
      const double kl = plain_kl(placement, Dims, point, y);
      CHECK(kl < plain_kl(placement, Dims, point, placement.initial.data() + point * Dims));
      for (int axis = 0; axis < Dims; ++axis) {
        for (const Real moved : {Real(-0.05), Real(0.05)}) {
          std::vector<Real> beside(y, y + Dims);
          beside[at(axis)] += moved;
          CHECK(plain_kl(placement, Dims, point, beside.data()) > kl);
        }
      }
    }
  });
}

// One step, which the pull makes a few hundredths long, in float against double. Few positions, so
// that roundings go the same way.
TEST(a_new_point_of_very_many_neighbors_loses_none_of_them) {
  constexpr Size kNeighbors = 600'000;
  const auto step = []<typename Real>(int dims) {
    Placement<Real> placement;
    placement.count = 1;
    placement.k = kNeighbors;
    for (Size i = 0; i < 3 * dims; ++i) {
      placement.map.push_back(static_cast<Real>(i % 4) + Real(0.25));
    }
    for (Size e = 0; e < kNeighbors; ++e) {
      placement.neighbors.push_back(static_cast<PointId>(e % 3));
      placement.weights.push_back(static_cast<Real>(1.0 / kNeighbors));
    }
    placement.initial.assign(at(dims), Real(0.125));
    RepulsionOptions options;
    options.method = Method::exact;
    return placement.place(dims, options, 1, 0, 1, 1);
  };
  for (const int dims : {1, 2, 3, 5}) {
    const std::vector<float> found = step.operator()<float>(dims);
    const std::vector<double> expected = step.operator()<double>(dims);
    for (std::size_t axis = 0; axis < at(dims); ++axis) {
      CHECK_NEAR(found[axis], expected[axis], 5e-6);
    }
  }
}

int main() {
  return check::run_tests();
}
