// Measures what a thread team costs beside the work, for benchmarks/simulate.py: by loops whose
// chunks do nothing but note when they run.
#include "acctsne/team_costs.hpp"

#include "acctsne/parallel.hpp"
#include "acctsne/platform.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace acctsne {
namespace {

using Clock = std::chrono::steady_clock;

// Chunks of a worker, and how long each takes: a loop lasts longer than any wake-up.
constexpr Size kChunksOfWorker = 16;
constexpr std::chrono::microseconds kChunk{20};
// Longer than idle helpers spin.
constexpr std::chrono::microseconds kUntilAsleep{500};

double seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

void work_for(Clock::duration duration) {
  const Clock::time_point end = Clock::now() + duration;
  while (Clock::now() < end) {
  }
}

double median(std::vector<double>& values) {
  if (values.empty()) {
    return 0;
  }
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

} // namespace

TeamCosts measure_team_costs(int threads, bool asleep, int loops) {
  // A worker's own times, on a cache line of its own.
  struct alignas(64) Times {
    Clock::time_point first;
    Clock::time_point last;
  };
  ThreadTeam team(threads);
  std::vector<Times> times(at(team.size()));
  std::vector<double> opens;
  std::vector<double> wakes;
  std::vector<double> closes;
  for (int loop = 0; loop < loops; ++loop) {
    if (asleep) {
      work_for(kUntilAsleep);
    }
    std::ranges::fill(times, Times{});
    const Clock::time_point start = Clock::now();
    team.for_chunks(kChunksOfWorker * team.size(), [&](Size, int worker) {
      Times& own = times[at(worker)];
      if (own.first == Clock::time_point{}) {
        own.first = Clock::now();
      }
      work_for(kChunk);
      own.last = Clock::now();
    });
    const Clock::time_point end = Clock::now();
    Clock::time_point last = start;
    for (const Times& own : times) {
      if (own.first != Clock::time_point{}) {
        (&own == &times.front() ? opens : wakes).push_back(seconds(own.first - start));
        last = std::max(last, own.last);
      }
    }
    closes.push_back(seconds(end - last));
  }
  return {median(opens), median(wakes), median(closes)};
}

double line_transfer_seconds() {
  constexpr int kBatches = 50;
  constexpr int kRounds = 200; // there and back, in a batch
  std::atomic<int> turn{0};
  std::thread other([&turn] {
    for (int round = 0; round < kBatches * kRounds; ++round) {
      while (turn.load(std::memory_order_acquire) != 2 * round + 1) {
        relax_cpu();
      }
      turn.store(2 * round + 2, std::memory_order_release);
    }
  });
  double best = 1;
  for (int batch = 0; batch < kBatches; ++batch) {
    const Clock::time_point start = Clock::now();
    for (int round = batch * kRounds; round < (batch + 1) * kRounds; ++round) {
      turn.store(2 * round + 1, std::memory_order_release);
      while (turn.load(std::memory_order_acquire) != 2 * round + 2) {
        relax_cpu();
      }
    }
    best = std::min(best, seconds(Clock::now() - start) / (2 * kRounds));
  }
  other.join();
  return best;
}

} // namespace acctsne
