// The thread team: how a loop is opened to helpers, worked through, closed and waited for.
#include "acctsne/parallel.hpp"

#include "acctsne/platform.hpp"

#include <algorithm>

namespace acctsne {
namespace {

constexpr std::uint32_t kGateOpen = 1u << 31;

// How long an idle thread spins before it sleeps. Passes of an iteration follow each other within
// microseconds, less than a wake-up through the kernel takes; spinning longer only takes time from
// others on a shared machine.
constexpr std::chrono::microseconds kSpinTime{40};

// Spins for a bounded time, then sleeps, until `value` satisfies `done`; returns the value that
// did.
template <typename Done>
std::uint32_t wait_until(std::atomic<std::uint32_t>& value, Done done) {
  const auto deadline = std::chrono::steady_clock::now() + kSpinTime;
  for (;;) {
    for (int spin = 0; spin < 64; ++spin) {
      const std::uint32_t seen = value.load(std::memory_order_acquire);
      if (done(seen)) {
        return seen;
      }
      relax_cpu();
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      break;
    }
  }
  for (;;) {
    const std::uint32_t seen = value.load(std::memory_order_acquire);
    if (done(seen)) {
      return seen;
    }
    value.wait(seen, std::memory_order_acquire);
  }
}

} // namespace

ThreadTeam::ThreadTeam(int threads, Poll poll) : poll_(std::move(poll)) {
  const int helpers = std::max(threads, 1) - 1;
  shares_ = std::make_unique<Share[]>(at(helpers) + 1);
  helpers_.reserve(at(helpers));
  for (int worker = 1; worker <= helpers; ++worker) {
    try {
      helpers_.emplace_back([this, worker] { helper_main(worker); });
    } catch (const std::exception&) {
      break; // no room for more threads or their stacks: fewer give the same result, later
    }
  }
}

ThreadTeam::~ThreadTeam() {
  quit_.store(true, std::memory_order_release);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (std::thread& helper : helpers_) {
    helper.join();
  }
}

void ThreadTeam::run(Size chunks, void* callable, Call call) {
  if (chunks <= 0) {
    return;
  }
  if (LoopRecorder* recorder = LoopRecorder::current(); recorder != nullptr) [[unlikely]] {
    run_recorded(*recorder, chunks, callable, call);
  } else {
    run_unrecorded(chunks, callable, call);
  }
}

void ThreadTeam::run_recorded(LoopRecorder& recorder, Size chunks, void* callable, Call call) {
  LoopRecorder::Loop loop(recorder, chunks, size());
  if (!loop.times_chunks()) {
    run_unrecorded(chunks, callable, call);
    return;
  }
  const auto timed = [&](Size chunk, int worker) {
    call(callable, chunk, worker);
    loop.chunk_done();
  };
  run_unrecorded(chunks, const_cast<void*>(static_cast<const void*>(&timed)),
                 [](void* body, Size chunk, int worker) {
                   (*static_cast<decltype(timed)*>(body))(chunk, worker);
                 });
}

void ThreadTeam::run_unrecorded(Size chunks, void* callable, Call call) {
  callable_ = callable;
  call_ = call;
  abandoned_.store(false, std::memory_order_relaxed);
  failure_ = nullptr;

  const bool shared = !helpers_.empty() && chunks > 1;
  const Size workers = shared ? size() : 1;
  for (Size worker = 0; worker < size(); ++worker) {
    Share& share = shares_[at(worker)];
    share.next.store(chunks * std::min(worker, workers) / workers, std::memory_order_relaxed);
    share.end = chunks * std::min(worker + 1, workers) / workers;
  }
  if (shared) {
    gate_.store(kGateOpen, std::memory_order_release);
    epoch_.fetch_add(1, std::memory_order_release);
    epoch_.notify_all();
  }
  work_through(0);
  if (shared) {
    gate_.fetch_and(~kGateOpen, std::memory_order_acq_rel);
    wait_for_helpers();
  }

  if (failure_) {
    std::rethrow_exception(std::exchange(failure_, nullptr));
  }
  if (cancelled_) {
    throw Cancelled();
  }
}

void ThreadTeam::wait_for_helpers() {
  const auto left = [this] { return gate_.load(std::memory_order_acquire) == 0; };
  const auto deadline = Clock::now() + kSpinTime;
  do {
    for (int spin = 0; spin < 64; ++spin) {
      if (left()) {
        return;
      }
      relax_cpu();
    }
  } while (Clock::now() < deadline);
  std::unique_lock lock(left_mutex_);
  while (!left_.wait_for(lock, kPollInterval, left)) {
    poll_if_due();
  }
}

void ThreadTeam::work_through(int worker) {
  const int workers = size();
  for (int offset = 0; offset < workers; ++offset) {
    Share& share = shares_[at((worker + offset) % workers)];
    for (;;) {
      if (worker == 0) {
        poll_if_due();
      }
      if (abandoned_.load(std::memory_order_relaxed)) {
        return;
      }
      // A share that is used up is only looked at: writing would take its cache line from others.
      if (share.next.load(std::memory_order_relaxed) >= share.end) {
        break;
      }
      const Size chunk = share.next.fetch_add(1, std::memory_order_relaxed);
      if (chunk >= share.end) {
        break;
      }
      try {
        call_(callable_, chunk, worker);
      } catch (...) {
        const std::lock_guard lock(failure_mutex_);
        if (!failure_) {
          failure_ = std::current_exception();
        }
        abandoned_.store(true, std::memory_order_relaxed);
      }
    }
  }
}

void ThreadTeam::helper_main(int worker) {
  std::uint32_t seen = 0;
  for (;;) {
    seen = wait_until(epoch_, [seen](std::uint32_t epoch) { return epoch != seen; });
    if (quit_.load(std::memory_order_acquire)) {
      return;
    }
    std::uint32_t gate = gate_.load(std::memory_order_acquire);
    while ((gate & kGateOpen) != 0) {
      if (gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acq_rel)) {
        work_through(worker);
        if (gate_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
          const std::lock_guard lock(left_mutex_);
          left_.notify_one();
        }
        break;
      }
    }
  }
}

void ThreadTeam::poll_if_due() {
  if (!poll_ || !polling_ || cancelled_) {
    return;
  }
  const Clock::time_point now = Clock::now();
  if (now - last_poll_ < kPollInterval) {
    return;
  }
  last_poll_ = now;
  if (poll_()) {
    cancelled_ = true;
    abandoned_.store(true, std::memory_order_relaxed);
  }
}

bool ThreadTeam::should_stop(int worker) {
  if (worker == 0) {
    poll_if_due();
  }
  return abandoned_.load(std::memory_order_relaxed);
}

bool ThreadTeam::wants_to_stop() {
  poll_if_due();
  return cancelled_;
}

void ThreadTeam::check() {
  if (wants_to_stop()) {
    throw Cancelled();
  }
}

} // namespace acctsne
