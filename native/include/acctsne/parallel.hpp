// Threads: a team of std::thread that one call owns, and loops over fixed chunks.
//
// Results never depend on the number of threads: work is cut into chunks whose borders depend on
// the problem alone, each chunk writes only its own output, and partial sums are kept per chunk and
// added in chunk order.
//
// Why not OpenMP: libgomp hangs in a forked child after its parent has used it, and ThreadSanitizer
// cannot see through it. A team lives as long as one native call, so nothing is left behind for a
// fork.
#pragma once

#include "acctsne/recorder.hpp"
#include "acctsne/types.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace acctsne {

// Thrown out of a parallel loop after the poll has asked to stop.
struct Cancelled : std::exception {
  const char* what() const noexcept override { return "cancelled"; }
};

class ThreadTeam {
public:
  // Asked at least every kPollInterval, on the thread that owns the team, while a loop runs.
  // Returning true cancels.
  using Poll = std::function<bool()>;

  explicit ThreadTeam(int threads, Poll poll = {});
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return static_cast<int>(helpers_.size()) + 1; }

  // Calls body(chunk, worker) once for each chunk in [0, chunks), in any order, worker in [0,
  // size()). The first exception of a body is thrown again here; after a cancellation Cancelled is
  // thrown.
  template <typename Body>
  void for_chunks(Size chunks, Body&& body) {
    using Callable = std::remove_reference_t<Body>;
    run(chunks, &body, [](void* callable, Size chunk, int worker) {
      (*static_cast<Callable*>(callable))(chunk, worker);
    });
  }

  // For bodies that take long: true as soon as the rest of the loop is to be abandoned.
  bool should_stop(int worker);

  // Asks the poll now, between loops, whether to stop.
  bool wants_to_stop();
  // The same; throws Cancelled if it says so.
  void check();

  // While one of these lives, loops run to their end whatever the poll would say: for passes that
  // change state.
  class Uninterrupted {
  public:
    explicit Uninterrupted(ThreadTeam& team)
        : team_(team), before_(std::exchange(team.polling_, false)) {}
    ~Uninterrupted() { team_.polling_ = before_; }
    Uninterrupted(const Uninterrupted&) = delete;
    Uninterrupted& operator=(const Uninterrupted&) = delete;

  private:
    ThreadTeam& team_;
    bool before_;
  };

private:
  using Clock = std::chrono::steady_clock;
  using Call = void (*)(void* callable, Size chunk, int worker);

  // Often enough that Ctrl-C feels immediate (0.2 s is promised), seldom enough to cost nothing.
  static constexpr std::chrono::milliseconds kPollInterval{50};

  void run(Size chunks, void* callable, Call call);
  void run_recorded(LoopRecorder& recorder, Size chunks, void* callable, Call call);
  void run_unrecorded(Size chunks, void* callable, Call call);
  void work_through(int worker);
  void helper_main(int worker);
  void poll_if_due();
  void wait_for_helpers();

  // The chunks that a worker takes first, on a cache line of its own. From loop to loop they are
  // the same ones, so that what a pass writes lies in the cache of the core that the next pass
  // reads it on. A worker that is done takes from the others.
  struct alignas(64) Share {
    std::atomic<Size> next{0};
    Size end = 0;
  };

  // The loop being run. Written before the gate opens, read by helpers after they have passed it.
  void* callable_ = nullptr;
  Call call_ = nullptr;
  std::unique_ptr<Share[]> shares_;
  std::atomic<bool> abandoned_{false};
  std::exception_ptr failure_;
  std::mutex failure_mutex_;
  std::mutex left_mutex_;
  std::condition_variable left_;

  // Helpers sleep on epoch_, which counts loops. They may join a loop while its gate is open; the
  // gate's low bits count those inside. A helper that the system did not schedule in time simply
  // misses the loop, nobody waits for it.
  std::atomic<std::uint32_t> epoch_{0};
  std::atomic<std::uint32_t> gate_{0};
  std::atomic<bool> quit_{false};

  Poll poll_;
  bool polling_ = true;
  bool cancelled_ = false;
  Clock::time_point last_poll_ = Clock::now();
  std::vector<std::thread> helpers_;
};

inline Size chunk_count(Size n, Size grain) {
  return (n + grain - 1) / grain;
}

// Calls body(begin, end, worker), or body(begin, end) if it takes no more.
template <typename Body>
void call_for_chunk(Body& body, Size begin, Size end, [[maybe_unused]] int worker) {
  if constexpr (std::is_invocable_v<Body&, Size, Size, int>) {
    body(begin, end, worker);
  } else {
    body(begin, end);
  }
}

// Calls body(begin, end) or body(begin, end, worker) for [0, n) cut into chunks of `grain`.
template <typename Body>
void parallel_for(ThreadTeam& team, Size n, Size grain, Body&& body) {
  team.for_chunks(chunk_count(n, grain), [&](Size chunk, int worker) {
    const Size begin = chunk * grain;
    call_for_chunk(body, begin, begin + grain < n ? begin + grain : n, worker);
  });
}

// Adds up body(begin, end) over [0, n) cut into chunks of `grain`, in chunk order. `partials` is
// scratch memory that keeps its capacity from call to call.
template <typename T, typename Body>
T parallel_sum(ThreadTeam& team, Size n, Size grain, std::vector<T>& partials, Body&& body) {
  partials.assign(at(chunk_count(n, grain)), T{});
  parallel_for(team, n, grain,
               [&](Size begin, Size end) { partials[at(begin / grain)] = body(begin, end); });
  T total{};
  for (const T& partial : partials) {
    total += partial;
  }
  return total;
}

} // namespace acctsne
