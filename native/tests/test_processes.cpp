// A run by several processes against the same run by one.
#include "acctsne/communicator.hpp"
#include "affinities/exchanged_rows.hpp"
#include "affinities/joint_rows.hpp"
#include "affinities/symmetrize.hpp"
#include "neighbors/approximate.hpp"
#include "optimize/loop.hpp"

#include "check.hpp"
#include "data.hpp"
#include "processes.hpp"
#include "projection.hpp"

#include <limits>
#include <mutex>
#include <random>
#include <set>
#include <tuple>

using namespace acctsne;

namespace {

// More than three blocks of rows, the last of them not full.
constexpr Size kPoints = 3 * kBlockRows + 1000;

template <typename Real>
struct Outcome {
  OptimizerState<Real> state;
  std::vector<Real> attractive;
  std::vector<Real> repulsive;
  std::vector<double> divergences;
  double z = 0;
};

template <typename Real>
Outcome<Real> run(const Csr<Real>& P, const std::vector<Real>& initial, int dims, Method method,
                  Communicator& processes, int threads) {
  ThreadTeam team(threads);
  MatrixRows<Real> rows(P.view(), processes);
  RepulsionOptions options;
  options.method = method;
  const auto optimizer = make_optimizer<Real>(rows, initial.data(), dims, options, processes, team);
  Phase phase;
  // Once until points are numbered anew; all pairs take long.
  const bool long_run = method == Method::fft && dims == 2 && std::is_same_v<Real, float>;
  phase.iterations = long_run ? 52 : (method == Method::exact ? 3 : 9);
  phase.exaggeration = {4, 4};
  phase.learning_rate = {500, 500};
  phase.report_every = {3};
  Outcome<Real> outcome;
  optimizer->run(phase, team, [&](const Report& report) {
    outcome.divergences.push_back(report.kl_divergence);
    return false;
  });
  // Goes on from its own state, which numbers the points anew.
  optimizer->restore(optimizer->state());
  phase.rule = StepRule::delta_bar_delta;
  phase.momentum = 0.5;
  phase.iterations = 3;
  optimizer->run(phase, team, {});
  outcome.divergences.push_back(optimizer->kl_divergence(team));
  outcome.attractive = optimizer->attractive();
  outcome.repulsive = optimizer->repulsive();
  outcome.state = optimizer->state();
  outcome.z = optimizer->z();
  return outcome;
}

// Of values of all points, as many of each, those of some.
template <typename Value>
std::vector<Value> part(const std::vector<Value>& values, Rows rows) {
  const Size width = static_cast<Size>(values.size()) / kPoints;
  return {values.begin() + rows.begin * width, values.begin() + rows.end * width};
}

} // namespace

TEST(every_row_has_one_owner_and_blocks_stay_whole) {
  for (const Size rows : {Size{1}, kBlockRows - 1, kBlockRows, 5 * kBlockRows + 7}) {
    for (const int processes : {1, 2, 3, 4, 64}) {
      Size next = 0;
      for (int rank = 0; rank < processes; ++rank) {
        const Rows own = rows_of(rank, processes, rows);
        CHECK_EQUAL(own.begin, next);
        CHECK(own.begin <= own.end);
        CHECK(own.begin % kBlockRows == 0 || own.begin == rows);
        next = own.end;
      }
      CHECK_EQUAL(next, rows);
    }
  }
}

TEST(sums_over_rows_do_not_depend_on_their_owners) {
  std::vector<double> numbers(at(kPoints));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = 1 / (1.0 + static_cast<double>(i));
  }
  const auto total = [&](Communicator& processes, ThreadTeam& team) {
    RowSums sums;
    sums.start(kPoints, 256);
    add_rows(sums, numbers.data(), rows_of(processes.rank(), processes.size(), kPoints), team);
    sums.gather(processes);
    return sums.total();
  };
  OneProcess one;
  ThreadTeam alone(1);
  const double expected = total(one, alone);
  CHECK_NEAR(expected, std::accumulate(numbers.begin(), numbers.end(), 0.0), 1e-12);
  for (const int count : {2, 3, 4, 6}) {
    std::mutex mutex;
    ThreadProcesses(count).run([&](Communicator& processes) {
      ThreadTeam team(2);
      const double found = total(processes, team);
      const std::lock_guard lock(mutex);
      CHECK_EQUAL(found, expected);
    });
  }
}

TEST(several_processes_give_the_bits_of_one) {
  for_reals([]<typename Real>() {
    const Csr<Real> P = make_joint<Real>(kPoints, 8);
    for (const int dims : {1, 2, 3}) {
      const std::vector<Real> initial = make_cloud<Real>(Cloud::clustered, kPoints, dims);
      for (const Method method : {Method::exact, Method::barnes_hut, Method::fft}) {
        // All pairs take long, and share what the others do.
        if (!entry_of(method).serves(dims) || (method != Method::fft && dims == 1) ||
            (method == Method::exact && (dims == 3 || kRacesOnly))) {
          continue;
        }
        const check::Scope scope(entry_of(method).name);
        OneProcess one;
        const Outcome<Real> expected = run(P, initial, dims, method, one, 2);
        for (const int count : kProcessCounts) {
          std::mutex mutex;
          ThreadProcesses(count).run([&](Communicator& processes) {
            const Outcome<Real> found = run(P, initial, dims, method, processes, 1 + count % 2);
            const Rows own = rows_of(processes, kPoints);
            const std::lock_guard lock(mutex);
            CHECK(same_bytes(found.state.points, part(expected.state.points, own)));
            CHECK(same_bytes(found.state.updates, part(expected.state.updates, own)));
            CHECK(same_bytes(found.state.gains, part(expected.state.gains, own)));
            CHECK(same_bytes(found.state.kept, part(expected.state.kept, own)));
            CHECK(same_bytes(found.state.mean, expected.state.mean));
            CHECK(found.state.order == part(expected.state.order, own));
            CHECK(same_bytes(found.attractive, expected.attractive));
            CHECK(same_bytes(found.repulsive, expected.repulsive));
            CHECK(same_bytes(found.divergences, expected.divergences));
            CHECK_EQUAL(found.z, expected.z);
          });
        }
      }
    }
  });
}

TEST(a_state_that_is_none_in_one_process_is_refused_in_all) {
  const Csr<float> P = make_joint<float>(kPoints, 3);
  const std::vector<float> initial = make_cloud<float>(Cloud::uniform, kPoints, 2);
  ThreadProcesses(3).run([&](Communicator& processes) {
    ThreadTeam team(1);
    MatrixRows<float> rows(P.view(), processes);
    const auto optimizer = make_optimizer<float>(rows, initial.data(), 2, {}, processes, team);
    const OptimizerState<float> good = optimizer->state();
    const bool last = processes.rank() == processes.size() - 1;
    const auto is_refused = [&](auto&& damage) {
      OptimizerState<float> state = good;
      if (last) {
        damage(state);
      }
      return check::throws<std::invalid_argument>([&] { optimizer->restore(state); });
    };
    CHECK(!is_refused([](auto&) {}));
    CHECK(is_refused([](auto& state) { state.points.pop_back(); }));
    CHECK(is_refused([](auto& state) { state.gains[1] = 1e30f; }));
    CHECK(is_refused([](auto& state) { state.kept = state.points; }));
    CHECK(is_refused([](auto& state) { state.order[0] = state.order[1]; }));
    CHECK(is_refused(
        [](auto& state) { state.friction.work = std::numeric_limits<double>::infinity(); }));
    CHECK(same_bytes(optimizer->state().points, good.points));
  });
}

// Neighbours of own rows, of data in several forms.
template <typename Data, typename Real>
void check_search(bool exact, const std::vector<Data>& data, Size features, Size k) {
  const Projected<Data> projected(data, features, poor_frame(data, features));
  const PointSet<Data> points = projected.points();
  std::vector<PointId> sample(at(points.rows));
  std::iota(sample.begin(), sample.end(), PointId{0});
  const check::Scope scope(exact ? "exact" : "approximate");
  const auto search = [&](Communicator& processes, int threads) {
    const Rows own = rows_of(processes.rank(), processes.size(), points.rows);
    const auto stored = at((own.end - own.begin) * k);
    std::tuple found{std::vector<PointId>(stored), std::vector<Real>(stored), 1.0};
    auto& [indices, distances, recall] = found;
    PointSet<Data> here = points;
    here.data = static_cast<const Data*>(points.data) + own.begin * features;
    here.rows = own.end - own.begin;
    here.projection.coordinates += own.begin * points.projection.dims;
    here.projection.squared_norms += own.begin;
    const NeighborsRequest<Data> request{here,    k,         indices.data(), distances.data(),
                                         nullptr, &processes};
    ThreadTeam team(threads);
    if (exact) {
      exact_neighbors(request, team);
    } else {
      ApproximateEffort effort;
      effort.cells_at_once = 4; // several times for each process
      recall = approximate_neighbors(request, effort, sample, team);
    }
    return found;
  };
  OneProcess one;
  const auto [indices, distances, recall] = search(one, 2);
  for (const int count : kProcessCounts) {
    std::mutex mutex;
    ThreadProcesses(count).run([&](Communicator& processes) {
      const Rows own = rows_of(processes.rank(), count, points.rows);
      const auto found = search(processes, 1 + count % 2);
      const std::lock_guard lock(mutex);
      const auto part = [&](const auto& all) {
        return std::vector(all.begin() + own.begin * k, all.begin() + own.end * k);
      };
      CHECK(std::get<0>(found) == part(indices));
      CHECK(same_bytes(std::get<1>(found), part(distances)));
      CHECK_EQUAL(std::get<2>(found), recall);
    });
  }
}

template <typename Data, typename Real>
void check_neighbors(const std::vector<Data>& data, Size features, Size k) {
  for (const bool exact : {true, false}) {
    check_search<Data, Real>(exact, data, features, k);
  }
}

TEST(several_processes_find_the_neighbours_of_one) {
  constexpr Size kRows = 2 * kBlockRows + 77;
  check_neighbors<float, float>(normal_data<float>(kRows, 8), 8, 15);
  check_neighbors<float, double>(normal_data<float>(kRows, 8), 8, 15);
  check_neighbors<double, double>(normal_data<double>(kRows, 30), 30, 15);
  check_neighbors<double, float>(normal_data<double>(kRows, 4), 4, 5);
  // Bytes, close to either end: even the nearest are so far apart that floats, added up by the
  // lanes of a vector, are rounded more than once.
  constexpr Size kFeatures = 1500;
  std::vector<float> bytes = normal_data<float>(kBlockRows + 77, kFeatures, 10);
  for (float& value : bytes) {
    value = std::round(std::clamp(value < 0 ? -value : 255 - value, 0.0f, 255.0f));
  }
  check_neighbors<float, float>(bytes, kFeatures, 15);
  // Of one process alone a number is none: all must compare them as floats.
  bytes.back() = 0.5f;
  check_search<float, float>(true, bytes, kFeatures, 15);
  // Duplicates, and fewer cells than processes.
  std::vector<float> few = normal_data<float>(500, 5);
  std::copy_n(few.begin(), 1000, few.begin() + 1000);
  check_neighbors<float, float>(few, 5, 20);
  check_neighbors<float, float>(normal_data<float>(20, 5), 5, 19);
}

// What an exact search has to get right where the points of others pass by one after the other.
TEST(several_processes_break_ties_and_finish_lists_as_one) {
  constexpr Size kRows = kBlockRows + 100; // the second block has fewer points than are wanted
  // Whole numbers on a line: many points for each distance, and of every process.
  std::vector<float> line = normal_data<float>(kRows, 1, 40);
  for (float& value : line) {
    value = std::round(value);
  }
  check_search<float, float>(true, line, 1, 150);
  check_search<float, double>(true, line, 1, 150); // ties beyond the list, which prove nothing
  // Squares that float loses, of some points in every block.
  std::vector<float> tiny = normal_data<float>(kRows, 3, 1e-22);
  for (Size i = 0; i < kRows; i += 2) {
    for (Size f = 0; f < 3; ++f) {
      tiny[at(i * 3 + f)] = (i % 4 == 0 ? 1.0f : -1.0f) * static_cast<float>(1 + i % 512);
    }
  }
  check_search<float, float>(true, tiny, 3, 10);
}

// Rows of P that processes make of their own rows of C, against those of one that has all.
TEST(several_processes_make_the_p_of_one) {
  for_reals([]<typename Real>() {
    // So few neighbours that a chunk of the sum spans processes, and more than a chunk has rows.
    for (const Size neighbors : {Size{3}, Size{17}}) {
      std::mt19937_64 random(7);
      std::uniform_real_distribution<double> weight(0, 1);
      std::vector<PointId> indices;
      std::vector<Real> values;
      for (Size i = 0; i < kPoints; ++i) {
        std::set<PointId> columns;
        while (static_cast<Size>(columns.size()) < neighbors) {
          // Some near, some anywhere, and one that nearly all have.
          const Size any = static_cast<Size>(random() % at(kPoints));
          const Size near = (i + 1 + any % 50) % kPoints;
          const Size column = columns.empty() ? 4095 : columns.size() % 2 == 0 ? near : any;
          columns.insert(static_cast<PointId>(column == i ? (i + 1) % kPoints : column));
        }
        for (const PointId column : columns) {
          indices.push_back(column);
          values.push_back(static_cast<Real>(weight(random)));
        }
      }
      for (const bool equal : {false, true}) {
        ThreadTeam team(2);
        SymmetrizedRows<Real> all({indices.data(), values.data(), kPoints, neighbors, equal}, team);
        const Csr<Real> expected = collect<Real>(all, team);
        for (const int count : kRacesOnly ? std::vector{3} : std::vector{1, 2, 3, 4, 6}) {
          std::mutex mutex;
          std::vector<int> seen(at(kPoints), 0);
          ThreadProcesses(count).run([&](Communicator& processes) {
            const Rows own = rows_of(processes.rank(), count, kPoints);
            ThreadTeam threads(1 + count % 2);
            const Conditional<Real> C{indices.data() + own.begin * neighbors,
                                      values.data() + own.begin * neighbors, own.end - own.begin,
                                      neighbors, equal};
            ExchangedRows<Real> P(C, kPoints, processes, threads);
            P.for_rows(threads, [&](const JointRow<Real>& row, int) {
              const auto first = at(expected.offsets[at(row.row)]);
              const auto last = at(expected.offsets[at(row.row + 1)]);
              const std::lock_guard lock(mutex);
              ++seen[at(row.row)];
              CHECK_EQUAL(row.columns.size(), last - first);
              CHECK(std::ranges::equal(
                  row.columns, std::span(expected.columns).subspan(first, row.columns.size())));
              CHECK(std::ranges::equal(
                  row.values, std::span(expected.values).subspan(first, row.values.size())));
            });
          });
          CHECK(seen == std::vector<int>(at(kPoints), 1));
        }
      }
    }
  });
}

// Whoever is asked to stop, all do, after the same iteration.
TEST(processes_stop_together) {
  const Csr<float> P = make_joint<float>(kPoints, 4);
  const std::vector<float> initial = make_cloud<float>(Cloud::clustered, kPoints, 2);
  std::vector<Size> iterations(3, -1);
  ThreadProcesses(3).run([&](Communicator& processes) {
    const Optimizer<float>* running = nullptr;
    ThreadTeam team(1, [&] {
      return processes.rank() == 1 && running != nullptr && running->iterations() > 0;
    });
    MatrixRows<float> rows(P.view(), processes);
    const auto optimizer =
        make_optimizer<float>(rows, initial.data(), 2, {Method::fft}, processes, team);
    running = optimizer.get();
    Phase phase;
    phase.iterations = 1'000'000;
    CHECK(check::throws<Cancelled>([&] { optimizer->run(phase, team, {}); }));
    iterations[at(processes.rank())] = optimizer->iterations();
  });
  CHECK(iterations[0] > 0);
  CHECK_EQUAL(iterations[0], iterations[1]);
  CHECK_EQUAL(iterations[0], iterations[2]);
}

int main() {
  return check::run_tests();
}
