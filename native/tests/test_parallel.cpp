// The thread team: every chunk once, sums that do not depend on the threads, exceptions,
// cancellation, stress.
#include "acctsne/parallel.hpp"

#include "check.hpp"
#include "data.hpp"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

using namespace acctsne;
using namespace std::chrono_literals;

namespace {

// Whether a chunk that works on and on is told to stop. How soon is measured by
// benchmarks/interrupt.py; here it only must not take forever.
bool is_told_to_stop(ThreadTeam& team, int worker) {
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (!team.should_stop(worker)) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

template <typename Body>
void for_thread_counts(Body&& body) {
  for (const int threads : kThreadCounts) {
    const check::Scope scope(std::to_string(threads) + " threads");
    body(threads);
  }
}

} // namespace

TEST(every_chunk_runs_exactly_once) {
  for_thread_counts([](int threads) {
    ThreadTeam team(threads);
    CHECK_EQUAL(team.size(), threads);
    for (const Size chunks : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> runs(at(chunks));
      std::atomic<int> wrong_workers{0};
      team.for_chunks(chunks, [&](Size chunk, int worker) {
        ++runs[at(chunk)];
        wrong_workers += worker < 0 || worker >= threads ? 1 : 0;
      });
      CHECK_EQUAL(wrong_workers.load(), 0);
      for (const std::atomic<int>& count : runs) {
        CHECK_EQUAL(count.load(), 1);
      }
    }
  });
}

TEST(a_team_has_at_least_its_owner) {
  ThreadTeam team(0);
  CHECK_EQUAL(team.size(), 1);
  int runs = 0;
  team.for_chunks(3, [&](Size, int) { ++runs; });
  CHECK_EQUAL(runs, 3);
}

TEST(parallel_for_covers_the_range) {
  for_thread_counts([](int threads) {
    ThreadTeam team(threads);
    for (const Size n : {0, 1, 9, 10, 11, 1234}) {
      std::vector<int> visits(at(n));
      parallel_for(team, n, 10, [&](Size begin, Size end) {
        for (Size i = begin; i < end; ++i) {
          ++visits[at(i)];
        }
      });
      CHECK(std::all_of(visits.begin(), visits.end(), [](int count) { return count == 1; }));
    }
  });
}

TEST(sums_do_not_depend_on_the_threads) {
  constexpr Size kCount = 100'000;
  std::vector<double> partials;
  std::vector<double> sums;
  double expected = 0;
  for (Size i = 0; i < kCount; ++i) {
    expected += 1.0 / static_cast<double>(i + 1);
  }
  for_thread_counts([&](int threads) {
    ThreadTeam team(threads);
    sums.push_back(parallel_sum(team, kCount, 777, partials, [](Size begin, Size end) {
      double part = 0;
      for (Size i = begin; i < end; ++i) {
        part += 1.0 / static_cast<double>(i + 1);
      }
      return part;
    }));
    CHECK_EQUAL(sums.back(), sums.front());
    CHECK_NEAR(sums.back(), expected, 1e-11);
    CHECK_EQUAL(parallel_sum(team, 0, 10, partials, [](Size, Size) { return 1.0; }), 0.0);
  });
}

TEST(an_exception_reaches_the_caller) {
  for_thread_counts([](int threads) {
    ThreadTeam team(threads);
    for (int round = 0; round < 20; ++round) {
      std::string caught;
      try {
        team.for_chunks(100, [&](Size chunk, int) {
          // One failing chunk, and in every other round all of them at once.
          if (chunk == 5 || round % 2 == 1) {
            throw std::runtime_error("chunk failed");
          }
        });
      } catch (const std::runtime_error& error) {
        caught = error.what();
      }
      CHECK_EQUAL(caught, "chunk failed");

      std::atomic<int> runs{0};
      team.for_chunks(100, [&](Size, int) { ++runs; });
      CHECK_EQUAL(runs.load(), 100);
    }
  });
}

TEST(the_poll_cancels_a_long_loop) {
  for_thread_counts([](int threads) {
    const auto owner = std::this_thread::get_id();
    bool asked_elsewhere = false;
    ThreadTeam team(threads, [&] {
      asked_elsewhere = asked_elsewhere || std::this_thread::get_id() != owner;
      return true;
    });
    std::atomic<int> runs{0};
    CHECK(check::throws<Cancelled>([&] {
      team.for_chunks(20'000, [&](Size, int) {
        ++runs;
        std::this_thread::sleep_for(1ms);
      });
    }));
    CHECK(!asked_elsewhere);
    CHECK(runs.load() < 20'000);
  });
}

TEST(a_long_chunk_learns_that_it_should_stop) {
  for_thread_counts([](int threads) {
    ThreadTeam team(threads, [] { return true; });
    std::atomic<int> waited_in_vain{0};
    CHECK(check::throws<Cancelled>([&] {
      team.for_chunks(threads,
                      [&](Size, int worker) { waited_in_vain += !is_told_to_stop(team, worker); });
    }));
    CHECK_EQUAL(waited_in_vain.load(), 0);
  });
}

// The owner has nothing left to do, a helper is deep in its last chunk: Ctrl-C must still work.
TEST(the_poll_is_asked_while_the_owner_waits_for_a_helper) {
  ThreadTeam team(2, [] { return true; });
  std::atomic<bool> helper_started{false};
  std::atomic<bool> helper_told{false};
  CHECK(check::throws<Cancelled>([&] {
    team.for_chunks(2, [&](Size, int worker) {
      if (worker == 0) {
        while (!helper_started) {
          std::this_thread::yield();
        }
        return;
      }
      helper_started = true;
      helper_told = is_told_to_stop(team, worker);
    });
  }));
  CHECK(helper_told.load());
}

TEST(a_poll_that_declines_is_asked_again) {
  int asked = 0;
  ThreadTeam team(2, [&] {
    ++asked;
    return false;
  });
  std::atomic<int> runs{0};
  team.for_chunks(300, [&](Size, int) {
    ++runs;
    std::this_thread::sleep_for(1ms);
  });
  CHECK_EQUAL(runs.load(), 300);
  CHECK(asked >= 2);
}

TEST(uninterrupted_loops_run_to_their_end) {
  for_thread_counts([](int threads) {
    std::atomic<int> asked{0};
    ThreadTeam team(threads, [&] {
      ++asked;
      return true;
    });
    std::atomic<int> runs{0};
    auto work = [&](Size, int) {
      ++runs;
      std::this_thread::sleep_for(1ms);
    };
    const Size chunks = 100 * threads;
    {
      const ThreadTeam::Uninterrupted to_the_end(team);
      team.for_chunks(chunks, work);
    }
    CHECK_EQUAL(runs.load(), chunks);
    CHECK_EQUAL(asked.load(), 0);

    CHECK(check::throws<Cancelled>([&] { team.for_chunks(chunks, work); }));
  });
}

TEST(check_asks_between_loops) {
  bool stop = false;
  ThreadTeam team(2, [&] { return stop; });
  std::this_thread::sleep_for(60ms);
  team.check();
  stop = true;
  std::this_thread::sleep_for(60ms);
  CHECK(check::throws<Cancelled>([&] { team.check(); }));
}

TEST(many_tiny_loops_in_a_row) {
  ThreadTeam team(8);
  std::vector<Size> counts(16);
  Size expected = 0;
  for (Size loop = 0; loop < 20'000; ++loop) {
    const Size chunks = loop % 16 + 1;
    team.for_chunks(chunks, [&](Size chunk, int) { ++counts[at(chunk)]; });
    expected += chunks;
  }
  Size total = 0;
  for (const Size count : counts) {
    total += count;
  }
  CHECK_EQUAL(total, expected);
}

TEST(teams_come_and_go) {
  std::atomic<int> runs{0};
  for (int round = 0; round < 200; ++round) {
    ThreadTeam team(4);
    if (round % 2 == 0) {
      team.for_chunks(4, [&](Size, int) { ++runs; });
    }
  }
  CHECK_EQUAL(runs.load(), 400);
}

TEST(two_teams_at_once) {
  Size totals[2] = {};
  const auto work = [&totals](int which) {
    ThreadTeam team(3);
    std::vector<Size> partials;
    for (int loop = 0; loop < 3000; ++loop) {
      totals[which] += parallel_sum(team, 100, 10, partials, [](Size begin, Size end) {
        Size part = 0;
        for (Size i = begin; i < end; ++i) {
          part += i;
        }
        return part;
      });
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  CHECK_EQUAL(totals[0], 3000 * 4950);
  CHECK_EQUAL(totals[1], 3000 * 4950);
}

int main() {
  return check::run_tests();
}
