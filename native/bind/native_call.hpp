// What every binding needs: arrays in and out, the interpreter lock released, Ctrl-C and progress
// polled.
//
// Shapes and values are checked in Python before anything here is called; what is checked again is
// what would crash. Types are as exact as Python can say them: the stub is generated from them.
#pragma once

#include "acctsne/large_array.hpp"
#include "acctsne/parallel.hpp"
#include "acctsne/require.hpp"
#include "acctsne/types.hpp"
#include "bind/interpreter_lock.hpp"

#include <cstdio> // nanobind prints to stderr and does not include it

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;

namespace acctsne {

template <typename T>
using Input1 = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Input2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Changed in place.
template <typename T>
using InOut2 = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <typename T>
using Output = nb::ndarray<nb::numpy, T>;

// In either precision; what is returned has that of what was given.
using InputReals2 = std::variant<Input2<float>, Input2<double>>;
using OutputReals = std::variant<Output<float>, Output<double>>;

template <typename T>
using Dict = nb::typed<nb::dict, nb::str, T>;

// Told now and then how much has been done; there may be none. Not a std::function, whose guard of
// the interpreter lock does not let a thread end with the interpreter.
using Progress = std::optional<nb::typed<nb::callable, nb::object(Size)>>;

template <typename T>
Output<T> to_numpy(std::vector<T>&& values, std::vector<std::size_t> shape) {
  auto* held = new std::vector<T>(std::move(values));
  nb::capsule owner(held, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return Output<T>(held->data(), shape.size(), shape.data(), owner);
}

template <typename T>
Output<T> to_numpy(std::span<const T> values, std::vector<std::size_t> shape) {
  return to_numpy(std::vector<T>(values.begin(), values.end()), std::move(shape));
}

template <typename T>
Output<T> to_numpy(LargeArray<T>&& values, std::vector<std::size_t> shape) {
  auto* held = new LargeArray<T>(std::move(values));
  nb::capsule owner(held, [](void* p) noexcept { delete static_cast<LargeArray<T>*>(p); });
  return Output<T>(held->get(), shape.size(), shape.data(), owner);
}

// Asked by the thread team every 50 ms: takes the interpreter lock, handles signals, reports
// progress. A Python error, such as KeyboardInterrupt, is kept and cancels the work.
class PythonPoll {
public:
  using Count = std::function<Size()>;
  PythonPoll(Progress progress, Count count)
      : progress_(std::move(progress)), count_(std::move(count)) {}

  bool operator()() {
    const LockTaken locked;
    return !guarded([&] {
      if (PyErr_CheckSignals() != 0) {
        nb::raise_python_error();
      }
      if (progress_ && count_) {
        (*progress_)(count_());
      }
    });
  }

  // Runs Python code under the lock; false, with the error kept, if it raised.
  template <typename Body>
  bool guarded(Body&& body) {
    try {
      unless_it_ends(body);
      return true;
    } catch (const std::exception&) {
      failure_ = std::current_exception();
      return false;
    }
  }

  void rethrow() const {
    if (failure_) {
      std::rethrow_exception(failure_);
    }
  }

private:
  Progress progress_;
  Count count_;
  std::exception_ptr failure_;
};

// How many calls are under way in all threads, or -1 while the SIMD level is being changed. It is
// atomic because a free-threaded Python has no lock that would let only one thread at a time come
// here.
inline std::atomic<int> calls_under_way{0};

// A call that begins with one level's tables ends with them.
class CallUnderWay {
public:
  CallUnderWay() {
    int others = calls_under_way;
    while (others < 0 || !calls_under_way.compare_exchange_weak(others, others + 1)) {
      others = calls_under_way; // changing takes no longer than a store
    }
  }
  ~CallUnderWay() { --calls_under_way; }
  CallUnderWay(const CallUnderWay&) = delete;
  CallUnderWay& operator=(const CallUnderWay&) = delete;
};

// Keeps calls from beginning; refused while one is under way.
class LevelChange {
public:
  LevelChange() {
    int others = 0;
    if (!calls_under_way.compare_exchange_strong(others, -1)) {
      throw std::runtime_error("the SIMD level cannot be changed while a call is under way");
    }
  }
  ~LevelChange() { calls_under_way = 0; }
  LevelChange(const LevelChange&) = delete;
  LevelChange& operator=(const LevelChange&) = delete;
};

// Runs work(team) without the interpreter lock on a team of its own.
using Work = std::function<void(ThreadTeam&)>;
void run_native(int threads, PythonPoll& poll, const Work& work);
void run_native(int threads, const Work& work);

// options.cpp: what calls are told. data_rows.cpp: what they are given. frame.cpp, neighbors.cpp
// and steps.cpp: the steps as functions. optimizer.cpp: the gradient descent as a class. place.cpp:
// a map that new points are placed into, as another. quality.cpp: the referee. recording.cpp: what
// the steps' loops consist of.
void bind_options(nb::module_& m);
void bind_quality(nb::module_& m);
void bind_data_rows(nb::module_& m);
void bind_frame(nb::module_& m);
void bind_neighbors(nb::module_& m);
void bind_steps(nb::module_& m);
void bind_optimizers(nb::module_& m);
void bind_maps(nb::module_& m);
void bind_recording(nb::module_& m);

} // namespace acctsne
