// A communicator that is a Python object.
#pragma once

#include "acctsne/communicator.hpp"
#include "bind/native_call.hpp"

#include <nanobind/stl/optional.h>

#include <optional>

namespace acctsne {

// An object that has what the type of this name asks for.
class CommunicatorObject : public nb::object {
  static bool any(PyObject* /*object*/) { return true; }
  NB_OBJECT(CommunicatorObject, nb::object, "acctsne.runtime.communicator.Communicator", any)
};

// Forwards to such an object, whose methods are handed the bytes as arrays that share them. Holds
// the interpreter lock for the length of a call only.
class PythonProcesses final : public Communicator {
public:
  explicit PythonProcesses(CommunicatorObject processes)
      : processes_(std::move(processes)), rank_(nb::cast<int>(processes_.attr("rank"))),
        size_(nb::cast<int>(processes_.attr("size"))) {
    require(rank_ >= 0 && rank_ < size_, "a rank that is not one of the processes");
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

private:
  void do_gather(std::byte* array, std::span<const Size> ends) override {
    const LockTaken locked;
    unless_it_ends([&] { processes_.attr("gather")(bytes(array, ends.back()), list(ends)); });
  }

  void do_exchange(const std::byte* sent, std::span<const Size> sent_ends, std::byte* received,
                   std::span<const Size> received_ends) override {
    const LockTaken locked;
    // Only read, though the type does not say so.
    auto* from = const_cast<std::byte*>(sent);
    unless_it_ends([&] {
      processes_.attr("exchange")(bytes(from, sent_ends.back()), list(sent_ends),
                                  bytes(received, received_ends.back()), list(received_ends));
    });
  }

  static nb::object bytes(std::byte* data, Size count) {
    // Without an owner the array would be copied; that there is none is right, as it is not kept.
    const auto length = static_cast<std::size_t>(count);
    return nb::cast(nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>(
                        reinterpret_cast<std::uint8_t*>(data), {length}, nb::handle()),
                    nb::rv_policy::reference);
  }
  static std::vector<Size> list(std::span<const Size> ends) { return {ends.begin(), ends.end()}; }

  CommunicatorObject processes_;
  int rank_;
  int size_;
};

// Runs body(communicator) with that of a Python object, or alone with none.
template <typename Body>
auto with_processes(const std::optional<CommunicatorObject>& processes, Body&& body) {
  if (!processes) {
    return body(one_process);
  }
  PythonProcesses others(*processes);
  return body(others);
}

} // namespace acctsne
