// One thread at a time on an object of Python's that is being worked on without Python's lock.
#pragma once

#include <atomic>
#include <stdexcept>
#include <thread>

namespace acctsne {

// The thread that works on an optimiser, if one does.
struct Owner {
  std::atomic<std::thread::id> thread{};
  bool in_callback = false; // between two iterations, with nothing half done
};

// Keeps other threads out while one works on an optimiser. What that thread does itself is let in
// where it is harmless: in a callback, or in the handler of a signal, which may come in the middle
// of an iteration.
class Exclusive {
public:
  enum class Nested { refused, in_callback, allowed };

  Exclusive(Owner& owner, Nested nested) {
    std::thread::id found{};
    const std::thread::id self = std::this_thread::get_id();
    if (owner.thread.compare_exchange_strong(found, self)) {
      owner_ = &owner;
    } else if (found != self) {
      throw std::runtime_error("this embedding is being optimised by another thread; wait for it, "
                               "or work on a copy()");
    } else if (nested == Nested::refused) {
      throw std::runtime_error("this embedding is being optimised; a callback cannot do so too");
    } else if (nested == Nested::in_callback && !owner.in_callback) {
      throw std::runtime_error(
          "this embedding is in the middle of an iteration; ask in a callback");
    }
  }
  ~Exclusive() {
    if (owner_ != nullptr) {
      owner_->thread.store({});
    }
  }
  Exclusive(const Exclusive&) = delete;
  Exclusive& operator=(const Exclusive&) = delete;

private:
  Owner* owner_ = nullptr;
};

} // namespace acctsne
