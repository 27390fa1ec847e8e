// What processes send each other in an iteration: the same bits as from one that has all points,
// and as many bytes as the lists say.
#include "forces/halo.hpp"
#include "forces/repulsive_fft.hpp"
#include "forces/shared_charges.hpp"
#include "optimize/loop.hpp"
#include "optimize/relabel.hpp"
#include "tree/morton.hpp"

#include "check.hpp"
#include "data.hpp"
#include "processes.hpp"

#include <mutex>
#include <random>
#include <set>

using namespace acctsne;

namespace {

constexpr int kDims = 2;

// Clusters that are small beside what a process owns, and edges within them only.
constexpr Size kClusters = 200;
constexpr Size kClusteredPoints = 5 * kBlockRows + 300;

Csr<float> clustered_joint() {
  Csr<float> P;
  P.offsets.push_back(0);
  for (Size i = 0; i < kClusteredPoints; ++i) {
    for (const Size j : {i - 2 * kClusters, i - kClusters, i + kClusters, i + 2 * kClusters}) {
      if (j >= 0 && j < kClusteredPoints) {
        P.columns.push_back(static_cast<PointId>(j));
        P.values.push_back(0.25f / static_cast<float>(kClusteredPoints));
      }
    }
    P.offsets.push_back(static_cast<EdgeId>(P.columns.size()));
  }
  return P;
}

std::vector<float> clustered_map() {
  std::mt19937_64 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> points = make_cloud<float>(Cloud::uniform, kClusters, kDims);
  for (Size i = kClusters; i < kClusteredPoints; ++i) {
    for (int axis = 0; axis < kDims; ++axis) {
      points.push_back(points[at(i % kClusters * kDims + axis)] + 0.3f * normal(random));
    }
  }
  return points;
}

// Positions that a process knows: its own, and no others.
template <typename Real>
std::vector<Real> own_of(const std::vector<Real>& points, int dims, const Communicator& processes) {
  const Rows own = rows_of(processes, static_cast<Size>(points.size()) / dims);
  std::vector<Real> known(points.size(), std::numeric_limits<Real>::quiet_NaN());
  std::copy(points.begin() + own.begin * dims, points.begin() + own.end * dims,
            known.begin() + own.begin * dims);
  return known;
}

Size total(const SentBytes& sent) {
  return sent.relabel + sent.halo + sent.charges + sent.positions + sent.sums;
}

// Bytes that each of the processes has to send for one grid of these points, by plain counting.
std::vector<Size> charges_sent(const std::vector<float>& points, int processes) {
  const Size count = static_cast<Size>(points.size()) / kDims;
  const Bounds<float> bounds = map_of<kDims>(points);
  const float* lower = bounds.map().lower;
  const auto per_unit = static_cast<float>(1 / grid_step_for_error(0.02));
  const auto node = [&](const float* point, int axis) {
    return static_cast<Size>((point[axis] - lower[axis]) * per_unit);
  };
  const Size nodes[2] = {node(bounds.map().upper, 0) + 4, node(bounds.map().upper, 1) + 4};
  CHECK(nodes[0] > 100 && nodes[1] > 100); // or the step would be another
  const GridTiles tiles(nodes);
  const auto tiles_of = [&](Size i) {
    std::set<Size> reached;
    for (Size x = 0; x < 4; ++x) {
      for (Size y = 0; y < 4; ++y) {
        const float* point = points.data() + i * kDims;
        reached.insert((node(point, 0) + x) / kStripColumns * tiles.a_strip +
                       (node(point, 1) + y) / tiles.rows);
      }
    }
    return reached;
  };
  const Owners owner_of(processes, count);
  std::vector<std::vector<Size>> counts(at(tiles.count()), std::vector<Size>(at(processes)));
  for (Size i = 0; i < count; ++i) {
    for (const Size tile : tiles_of(i)) {
      ++counts[at(tile)][owner_of.of(i)];
    }
  }
  std::vector<Size> bytes(at(processes), 0);
  std::vector<std::size_t> charging(at(tiles.count()));
  for (Size tile = 0; tile < tiles.count(); ++tile) {
    const std::vector<Size>& theirs = counts[at(tile)];
    charging[at(tile)] = at(std::ranges::max_element(theirs) - theirs.begin());
    if (std::ranges::max(theirs) > 0) {
      const Size segments = kStripColumns * tiles.rows / kSegmentNodes;
      bytes[charging[at(tile)]] += (processes - 1) * chunk_count(segments, 64) * 8;
    }
  }
  // Segments with charges, by their column and place in it.
  std::set<std::pair<Size, Size>> segments;
  for (Size i = 0; i < count; ++i) {
    const float* point = points.data() + i * kDims;
    // A point on a node has no charge for the last of its four.
    const auto last = [&](int axis) {
      const float place = (point[axis] - lower[axis]) * per_unit;
      return place > static_cast<float>(node(point, axis)) ? 3 : 2;
    };
    for (Size x = 0; x <= last(0); ++x) {
      for (Size y = 0; y <= last(1); ++y) {
        segments.insert({node(point, 0) + x, (node(point, 1) + y) / kSegmentNodes});
      }
    }
  }
  CHECK(static_cast<Size>(segments.size()) * kSegmentNodes < nodes[0] * nodes[1] / 2);
  for (const auto& [x, segment] : segments) {
    const Size tile = x / kStripColumns * tiles.a_strip + segment * kSegmentNodes / tiles.rows;
    bytes[charging[at(tile)]] += (processes - 1) * kSegmentNodes * Size{sizeof(float)};
  }
  for (Size i = 0; i < count; ++i) {
    std::set<std::size_t> to;
    for (const Size tile : tiles_of(i)) {
      to.insert(charging[at(tile)]);
    }
    to.erase(owner_of.of(i));
    bytes[owner_of.of(i)] += static_cast<Size>(to.size() * kDims * sizeof(float));
  }
  for (int rank = 0; rank < processes; ++rank) {
    const Rows own = rows_of(rank, processes, count);
    const Size parts = chunk_count(own.end, kPointsPerSum) - own.begin / kPointsPerSum;
    const Size numbers = tiles.count() + tiles.strips;
    bytes[at(rank)] += (processes - 1) * (4 * numbers + 8 * parts);
  }
  return bytes;
}

} // namespace

// On a map that has a strip with more points than are summed at once, and on one that has none.
TEST(a_grid_needs_to_know_own_points_only) {
  for_reals_in<1, 2>([]<typename Real, int Dims>() {
    for (const bool full : {true, false}) {
      const check::Scope scope(full ? "a full strip" : "none");
      const Size count = (full ? 9 : 4) * kBlockRows + 77;
      std::vector<Real> points = make_cloud<Real>(Cloud::clustered, count, Dims);
      for (Size i = 0; full && i < count; ++i) {
        points[at(i * Dims)] *= i % 20 == 0 ? Real(1) : Real(0.001);
      }
      const Bounds<Real> bounds = map_of<Dims>(points);
      const auto forces = [&](const std::vector<Real>& known, Communicator& processes,
                              int threads) {
        ThreadTeam team(threads);
        FftRepulsion<Real, Dims> repulsion(grid_step_for_error(0.02));
        MapView<Real> map = bounds.map();
        map.points = known.data();
        std::pair result{std::vector<Real>(known.size()), 0.0};
        RowSums z;
        z.start(count, kBlockRows);
        StepSeconds seconds;
        repulsion.forces(map, processes, result.first.data(), z, seconds, team);
        z.gather(processes);
        gather_rows(processes, result.first.data(), count, Dims);
        result.second = z.total();
        return result;
      };
      const auto [expected, expected_z] = forces(points, one_process, 2);
      CHECK(all_finite(std::span<const Real>(expected)));
      for (const int processes : {2, 3, 4, 6}) {
        std::mutex mutex;
        ThreadProcesses(processes).run([&](Communicator& process) {
          const auto [found, z] = forces(own_of(points, Dims, process), process, 1 + processes % 2);
          const std::lock_guard lock(mutex);
          CHECK(same_bytes(found, expected));
          CHECK_EQUAL(z, expected_z);
        });
      }
    }
  });
}

// Points with the same code, which are in the order of their numbers, are with several processes.
TEST(processes_number_points_as_one_does) {
  for_reals_and_dims([]<typename Real, int Dims>() {
    constexpr Size kCount = 4 * kBlockRows + 1000;
    for (const Cloud cloud : {Cloud::clustered, Cloud::all_equal}) {
      std::vector<Real> points = make_cloud<Real>(cloud, kCount, Dims);
      for (Real& value : points) {
        value = 8 * std::round(value / 8);
      }
      const auto start = [&](Layout<Real>& layout) {
        start_layout(layout, points.data(), kCount);
        for (std::size_t i = 0; i < points.size(); ++i) {
          layout.updates[i] = static_cast<Real>(i);
          layout.gains[i] = static_cast<Real>(2 * i);
          layout.preconditioner[i] = static_cast<Real>(3 * i);
        }
        layout.fixed.resize(at(kCount));
        for (std::size_t i = 0; i < layout.fixed.size(); ++i) {
          layout.fixed[i] = static_cast<std::uint8_t>(i);
        }
      };
      ThreadTeam alone(1);
      Layout<Real> expected(Dims);
      start(expected);
      const std::vector<PointId> order = morton_order(
          points.data(), kCount, Dims, expected.lower.data(), expected.upper.data(), alone);
      relabel_layout(expected, order, alone);
      for (const int processes : {2, 3, 4, 7}) {
        std::mutex mutex;
        ThreadProcesses(processes).run([&](Communicator& process) {
          ThreadTeam team(1 + processes % 2);
          const Rows own = rows_of(process, kCount);
          Layout<Real> layout(Dims);
          start(layout);
          layout.points = own_of(points, Dims, process);
          relabel_together(layout, process, team);
          const std::lock_guard lock(mutex);
          const auto same = [&](const auto& found, const auto& wanted, Size width) {
            return std::equal(found.begin() + own.begin * width, found.begin() + own.end * width,
                              wanted.begin() + own.begin * width);
          };
          CHECK(layout.order == expected.order);
          CHECK(same(layout.points, expected.points, Dims));
          CHECK(same(layout.updates, expected.updates, Dims));
          CHECK(same(layout.gains, expected.gains, Dims));
          CHECK(same(layout.preconditioner, expected.preconditioner, Dims));
          CHECK(same(layout.fixed, expected.fixed, 1));
        });
      }
    }
  });
}

TEST(an_iteration_sends_what_the_lists_say) {
  const Csr<float> P = clustered_joint();
  const std::vector<float> initial = clustered_map();
  for (const int count : {2, 4}) {
    std::mutex mutex;
    ThreadProcesses(count).run([&](Communicator& process) {
      ThreadTeam team(1);
      MatrixRows<float> rows(P.view(), process);
      const auto optimizer =
          make_optimizer<float>(rows, initial.data(), kDims, {Method::fft}, process, team);
      const Size before = process.bytes_sent() - total(optimizer->sent());
      optimizer->evaluate(team);
      const SentBytes sent = optimizer->sent();
      const Size uncounted = process.bytes_sent() - total(sent) - before;
      const std::vector<PointId> order = optimizer->state().order;

      std::vector<float> points;
      std::vector<std::size_t> owner(at(kClusteredPoints)); // of each row of P
      const Owners owner_of(count, kClusteredPoints);
      for (Size i = 0; i < kClusteredPoints; ++i) {
        const Size row = order[at(i)];
        owner[at(row)] = owner_of.of(i);
        points.insert(points.end(), initial.begin() + row * kDims,
                      initial.begin() + (row + 1) * kDims);
      }
      std::set<std::pair<std::size_t, PointId>> lent;
      for (Size i = 0; i < kClusteredPoints; ++i) {
        for (EdgeId e = P.offsets[at(i)]; e < P.offsets[at(i) + 1]; ++e) {
          const PointId other = P.columns[at(e)];
          if (owner[at(other)] == at(process.rank()) && owner[at(i)] != owner[at(other)]) {
            lent.emplace(owner[at(i)], other);
          }
        }
      }
      const Rows own = rows_of(process, kClusteredPoints);
      const std::lock_guard lock(mutex);
      CHECK(static_cast<Size>(lent.size()) < (own.end - own.begin) / 10);
      CHECK_EQUAL(sent.halo, static_cast<Size>(lent.size() * kDims * sizeof(float)));
      CHECK_EQUAL(sent.charges, charges_sent(points, count)[at(process.rank())]);
      CHECK_EQUAL(sent.sums, (count - 1) * chunk_count(own.end - own.begin, kSumRows) * 8);
      CHECK_EQUAL(sent.positions, 0);
      CHECK_EQUAL(uncounted, 0);
    });
  }
}

int main() {
  return check::run_tests();
}
