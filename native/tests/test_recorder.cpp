// Recordings: all loops with all their chunks, all time, and the same bits as without.
#include "acctsne/recorder.hpp"

#include "acctsne/parallel.hpp"
#include "acctsne/team_costs.hpp"
#include "check.hpp"
#include "data.hpp"
#include "optimizer.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <thread>

using namespace acctsne;
using namespace std::chrono_literals;

namespace {

struct Loop {
  std::string step;
  Size chunks;
  bool operator==(const Loop&) const = default;
};

// Those that have chunks.
std::vector<Loop> loops_of(const Recording& recording) {
  std::vector<Loop> loops;
  for (std::size_t loop = 0; loop < recording.step.size(); ++loop) {
    if (recording.chunk_count[loop] > 0) {
      loops.push_back({recording.steps[at(recording.step[loop])], recording.chunk_count[loop]});
    }
  }
  return loops;
}

double total(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

double serial_of(const Recording& recording, const std::string& step) {
  double sum = 0;
  for (std::size_t loop = 0; loop < recording.step.size(); ++loop) {
    if (recording.steps[at(recording.step[loop])] == step) {
      sum += recording.serial_seconds[loop];
    }
  }
  return sum;
}

template <typename Real>
std::vector<Real> descend(Method method, int threads) {
  constexpr Size kPoints = 6000;
  const Csr<Real> P = make_joint<Real>(kPoints, 6);
  const std::vector<Real> initial = make_cloud<Real>(Cloud::clustered, kPoints, 2);
  const auto optimizer = make_optimizer<Real>(P.view(), initial.data(), 2, {.method = method});
  ThreadTeam team(threads);
  Phase phase;
  phase.iterations = 4;
  phase.report_every = {2};
  optimizer->run(phase, team, [](const Report&) { return false; });
  return optimizer->points();
}

} // namespace

TEST(every_loop_is_recorded_under_its_step) {
  LoopRecorder recorder;
  ThreadTeam team(1);
  const auto run = [&](Size chunks) { team.for_chunks(chunks, [](Size, int) {}); };
  run(3);
  {
    const Step outer("outer");
    run(1);
    {
      const Step inner("inner");
      run(1000);
      run(0);
    }
    run(2);
  }
  run(4);
  const Recording recording = recorder.take();
  const std::vector<Loop> expected = {
      {"other", 3}, {"outer", 1}, {"inner", 1000}, {"outer", 2}, {"other", 4}};
  CHECK(loops_of(recording) == expected);
  CHECK_EQUAL(recording.chunk_seconds.size(), std::size_t{1010});
}

TEST(chunks_and_serial_stretches_have_their_time) {
  double counted = 0;
  LoopRecorder recorder;
  const auto start = LoopRecorder::Clock::now();
  {
    const Step step("step", counted);
    std::this_thread::sleep_for(20ms);
    ThreadTeam team(1);
    team.for_chunks(3, [](Size chunk, int) { std::this_thread::sleep_for(chunk * 10ms); });
    std::this_thread::sleep_for(30ms);
  }
  const double wall = std::chrono::duration<double>(LoopRecorder::Clock::now() - start).count();
  const Recording recording = recorder.take();
  CHECK_EQUAL(recording.chunk_seconds.size(), std::size_t{3});
  for (const int chunk : {1, 2}) {
    CHECK(recording.chunk_seconds[at(chunk)] >= 0.01f * static_cast<float>(chunk));
  }
  CHECK(serial_of(recording, "step") >= 0.05);
  CHECK(counted >= 0.08 && counted <= wall);
  // Nothing is lost, nothing counted twice.
  const double recorded = total(recording.serial_seconds) + total(recording.loop_seconds);
  CHECK(recorded >= wall);
  const double chunks =
      std::accumulate(recording.chunk_seconds.begin(), recording.chunk_seconds.end(), 0.0);
  CHECK_NEAR(chunks, total(recording.loop_seconds), 1e-6);
  CHECK(recorded - serial_of(recording, "other") <= wall);
}

TEST(several_threads_have_loops_without_chunks) {
  LoopRecorder recorder;
  ThreadTeam team(3);
  std::vector<int> runs(100);
  team.for_chunks(100, [&](Size chunk, int) { ++runs[at(chunk)]; });
  CHECK(std::ranges::all_of(runs, [](int count) { return count == 1; }));
  const Recording recording = recorder.take();
  CHECK(loops_of(recording) == (std::vector<Loop>{{"other", 100}}));
  CHECK(recording.chunk_seconds.empty());
}

TEST(a_recorder_sees_its_own_thread_and_life_only) {
  ThreadTeam team(1);
  const auto run = [&] { team.for_chunks(5, [](Size, int) {}); };
  run();
  {
    const Step around("around");
    LoopRecorder recorder;
    std::thread([&] {
      ThreadTeam other(1);
      other.for_chunks(7, [](Size, int) {});
    }).join();
    run();
    {
      LoopRecorder within;
      run();
      run();
      CHECK_EQUAL(loops_of(within.take()).size(), std::size_t{2});
    }
    run();
    CHECK_EQUAL(loops_of(recorder.take()).size(), std::size_t{2});
  }
  CHECK(LoopRecorder::current() == nullptr);
  run();
}

TEST(a_full_recording_is_an_error) {
  LoopRecorder recorder(10);
  ThreadTeam team(1);
  team.for_chunks(5, [](Size, int) {});
  CHECK(check::throws<std::length_error>([&] { team.for_chunks(5, [](Size, int) {}); }));
}

TEST(an_exception_leaves_a_sound_recording) {
  LoopRecorder recorder;
  ThreadTeam team(1);
  try {
    const Step step("failing");
    team.for_chunks(5, [](Size chunk, int) {
      if (chunk == 2) {
        throw std::runtime_error("chunk failed");
      }
    });
  } catch (const std::runtime_error&) {
  }
  team.for_chunks(4, [](Size, int) {});
  const Recording recording = recorder.take();
  CHECK(loops_of(recording) == (std::vector<Loop>{{"failing", 5}, {"other", 4}}));
  CHECK_EQUAL(recording.chunk_ends.back(), static_cast<Size>(recording.chunk_seconds.size()));
}

template <typename Real>
void check_that_recording_changes_nothing() {
  for (const Method method : {Method::barnes_hut, Method::fft}) {
    const std::vector<Real> expected = descend<Real>(method, 1);
    for (const int threads : {1, 2}) {
      const check::Scope scope(std::to_string(threads) + " threads");
      LoopRecorder recorder;
      CHECK(same_bytes(descend<Real>(method, threads), expected));
      const Recording recording = recorder.take();
      const auto ran = [&](const char* step) {
        return std::ranges::any_of(loops_of(recording),
                                   [&](const Loop& loop) { return loop.step == step; });
      };
      for (const char* step : {"attractive", "update", "KL divergence", "relabelling", "edges"}) {
        const check::Scope at_step(step);
        CHECK(ran(step));
      }
      const bool tree = method == Method::barnes_hut;
      for (const char* step : {"tree building", "summarisation", "repulsive"}) {
        const check::Scope at_step(step);
        CHECK_EQUAL(ran(step), tree);
      }
      for (const char* step : {"repulsive: spectrum", "repulsive: spread", "repulsive: transform",
                               "repulsive: gather"}) {
        const check::Scope at_step(step);
        CHECK_EQUAL(ran(step), !tree);
      }
    }
  }
}

TEST(recording_does_not_change_bits) {
  check_that_recording_changes_nothing<float>();
  check_that_recording_changes_nothing<double>();
}

TEST(team_costs_are_parts_of_a_loop) {
  for (const int threads : {1, 2}) {
    const TeamCosts costs = measure_team_costs(threads, false, 5);
    CHECK(costs.open > 0 && costs.close > 0);
    CHECK(threads > 1 || costs.wake == 0);
  }
}

int main() {
  return check::run_tests();
}
