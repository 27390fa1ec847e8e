// What processes send each other in an iteration: the same bits as from one that has all points,
// and as many bytes as the lists say.
#include "forces/grid_blocks.hpp"
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

// Makes the maps here so wide that their grids are convolved in blocks.
constexpr int kWide = 6;

bool overlap(Rows a, Rows b) {
  return a.begin < b.end && b.begin < a.end;
}

// For each process and block of a wide grid: whether the process needs the block's potential,
// because its points reach into a tile that has nodes in the block or not further than 12 from it.
std::vector<std::vector<Size>> points_of_blocks(const GridBlocks& blocks, const GridTiles& tiles,
                                                const std::vector<std::vector<Size>>& counts) {
  std::vector<std::vector<Size>> points;
  for (Size block = 0; block < blocks.total(); ++block) {
    const Rows x = blocks.columns_of(block);
    const Rows y = blocks.rows_of(block);
    std::vector<Size>& of_block = points.emplace_back(counts[0].size());
    for (Size tile = 0; tile < tiles.count(); ++tile) {
      if (overlap(tiles.columns_of(tile), {x.begin - 12, x.end + 12}) &&
          overlap(tiles.rows_of(tile), {y.begin - 12, y.end + 12})) {
        for (std::size_t process = 0; process < of_block.size(); ++process) {
          of_block[process] += counts[at(tile)][process];
        }
      }
    }
  }
  return points;
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
        reached.insert((node(point, 0) + x) / kStripColumns * tiles.per_strip +
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
  }
  const GridBlocks blocks(nodes, grid_step_for_error(0.02));
  const bool in_blocks = std::min(blocks.count[0], blocks.count[1]) >= 6;
  const std::vector<std::vector<Size>> points_of = points_of_blocks(blocks, tiles, counts);
  // To how many processes a tile is sent.
  const auto receivers = [&](Size tile) {
    Size receiving = processes - 1;
    for (std::size_t process = 0; in_blocks && process < at(processes); ++process) {
      bool needs = false;
      for (Size block = 0; block < blocks.total(); ++block) {
        const Rows x = blocks.columns_of(block);
        const Rows y = blocks.rows_of(block);
        needs =
            needs ||
            (points_of[at(block)][process] > 0 &&
             overlap(tiles.columns_of(tile), {x.begin - blocks.margin, x.end + blocks.margin}) &&
             overlap(tiles.rows_of(tile), {y.begin - blocks.margin, y.end + blocks.margin}));
      }
      receiving -= process != charging[at(tile)] && !needs ? 1 : 0;
    }
    return receiving;
  };
  for (Size tile = 0; tile < tiles.count(); ++tile) {
    if (std::ranges::max(counts[at(tile)]) > 0) {
      const Size segments = kStripColumns * tiles.rows / kSegmentNodes;
      bytes[charging[at(tile)]] += receivers(tile) * chunk_count(segments, 64) * 8;
    }
  }
  const Size coarse_nodes[2] = {chunk_count(nodes[0], 4) + 3, chunk_count(nodes[1], 4) + 3};
  for (Size block = 0; in_blocks && block < blocks.total(); ++block) {
    const std::vector<Size>& theirs = points_of[at(block)];
    if (std::ranges::max(theirs) > 0) {
      const Rows x = blocks.coarse_columns_of(block, coarse_nodes[0]);
      const Rows y = blocks.coarse_rows_of(block, coarse_nodes[1]);
      bytes[at(std::ranges::max_element(theirs) - theirs.begin())] +=
          (processes - 1) * (x.end - x.begin) * (y.end - y.begin) * Size{sizeof(float)};
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
    const Size tile = x / kStripColumns * tiles.per_strip + segment * kSegmentNodes / tiles.rows;
    bytes[charging[at(tile)]] += receivers(tile) * kSegmentNodes * Size{sizeof(float)};
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

// On a map that has a strip with more points than are summed at once, on one that has none, and on
// one so wide that its grid is convolved in blocks.
TEST(a_grid_needs_to_know_own_points_only) {
  for_reals_in<1, 2>([]<typename Real, int Dims>() {
    for (const std::string kind : {"a full strip", "none", "wide"}) {
      const check::Scope scope(kind);
      const bool full = kind == "a full strip";
      const Size count = (full ? 9 : 4) * kBlockRows + 77;
      std::vector<Real> points = make_cloud<Real>(Cloud::clustered, count, Dims);
      for (Size i = 0; full && i < count; ++i) {
        points[at(i * Dims)] *= i % 20 == 0 ? Real(1) : Real(0.001);
      }
      for (Real& value : points) {
        value *= static_cast<Real>(kind == "wide" ? kWide : 1);
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

void check_sent_bytes(const std::vector<float>& initial) {
  const Csr<float> P = clustered_joint();
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
      const Rows own = rows_of(process, kClusteredPoints);
      std::vector<PointId> order(at(kClusteredPoints));
      std::ranges::copy(optimizer->state().order, order.begin() + own.begin);
      gather_rows(process, order.data(), kClusteredPoints, 1);

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

TEST(an_iteration_sends_what_the_lists_say) {
  check_sent_bytes(clustered_map());
}

TEST(an_iteration_sends_what_the_blocks_of_a_wide_map_take) {
  std::vector<float> map = clustered_map();
  for (float& value : map) {
    value *= kWide;
  }
  check_sent_bytes(map);
}

int main() {
  return check::run_tests();
}
