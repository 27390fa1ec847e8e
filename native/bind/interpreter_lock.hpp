// Python's lock, let go of for native work and taken again.
//
// Before Python 3.14, a thread that asks for the lock while the interpreter shuts down is ended by
// unwinding its stack: a daemon thread in the middle of a fit, say. nanobind's own guards do not
// let that pass, and the process aborts. Here such a thread waits for the process to end, as later
// Pythons have it: nothing of Python's is there any more to go back to.
#pragma once

#include <Python.h>

#include <chrono>
#include <exception>
#include <thread>

namespace acctsne {

[[noreturn]] inline void wait_for_the_end() {
  for (;;) {
    std::this_thread::sleep_for(std::chrono::hours(1));
  }
}

// Calls what may end its thread. What else it throws are errors, which go on.
template <typename Function>
auto unless_it_ends(Function&& function) {
  try {
    return function();
  } catch (const std::exception&) {
    throw;
  } catch (...) {
    wait_for_the_end();
  }
}

class LockReleased {
public:
  LockReleased() : state_(PyEval_SaveThread()) {}
  ~LockReleased() {
    unless_it_ends([this] { PyEval_RestoreThread(state_); });
  }
  LockReleased(const LockReleased&) = delete;
  LockReleased& operator=(const LockReleased&) = delete;

private:
  PyThreadState* state_;
};

class LockTaken {
public:
  LockTaken() : state_(unless_it_ends([] { return PyGILState_Ensure(); })) {}
  ~LockTaken() { PyGILState_Release(state_); }
  LockTaken(const LockTaken&) = delete;
  LockTaken& operator=(const LockTaken&) = delete;

private:
  PyGILState_STATE state_;
};

} // namespace acctsne
