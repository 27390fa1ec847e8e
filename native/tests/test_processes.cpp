// A run by several processes against the same run by one.
#include "acctsne/communicator.hpp"
#include "affinities/joint_rows.hpp"
#include "optimize/loop.hpp"

#include "check.hpp"
#include "data.hpp"
#include "processes.hpp"

#include <mutex>

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
  MatrixRows<Real> rows(P.view());
  RepulsionOptions options;
  options.method = method;
  const auto optimizer = make_optimizer<Real>(rows, initial.data(), dims, options, processes, team);
  Phase phase;
  phase.iterations = 12;
  phase.exaggeration = {4, 4};
  phase.learning_rate = {500, 500};
  phase.report_every = {5};
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
    for (const int dims : {2, 3}) {
      const std::vector<Real> initial = make_cloud<Real>(Cloud::clustered, kPoints, dims);
      for (const Method method : {Method::exact, Method::barnes_hut, Method::fft}) {
        if (!kMethodTable[static_cast<int>(method)].serves(dims) ||
            (method == Method::exact && dims == 3)) {
          continue;
        }
        const check::Scope scope(kMethodTable[static_cast<int>(method)].name);
        OneProcess one;
        const Outcome<Real> expected = run(P, initial, dims, method, one, 2);
        for (const int count : {2, 3, 4}) {
          std::mutex mutex;
          ThreadProcesses(count).run([&](Communicator& processes) {
            const Outcome<Real> found = run(P, initial, dims, method, processes, 1 + count % 2);
            const std::lock_guard lock(mutex);
            CHECK(same_bytes(found.state.points, expected.state.points));
            CHECK(same_bytes(found.state.updates, expected.state.updates));
            CHECK(same_bytes(found.state.gains, expected.state.gains));
            CHECK(same_bytes(found.state.mean, expected.state.mean));
            CHECK(found.state.order == expected.state.order);
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

int main() {
  return check::run_tests();
}
