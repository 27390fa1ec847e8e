// Recordings of loops, and what a team costs, for benchmarks.
#include "acctsne/recorder.hpp"

#include "acctsne/team_costs.hpp"
#include "bind/native_call.hpp"

namespace acctsne {
namespace {

// Calls body() and returns what the loops that it ran on this thread consist of.
Dict<nb::any> record_loops(const nb::typed<nb::callable, nb::object()>& body) {
  LoopRecorder recorder;
  body();
  Recording recording = recorder.take();
  const std::size_t loops = recording.step.size();
  const std::size_t chunks = recording.chunk_seconds.size();
  Dict<nb::any> result;
  result["steps"] = nb::cast(recording.steps);
  result["step"] = to_numpy(std::move(recording.step), {loops});
  result["serial_seconds"] = to_numpy(std::move(recording.serial_seconds), {loops});
  result["loop_seconds"] = to_numpy(std::move(recording.loop_seconds), {loops});
  result["chunk_count"] = to_numpy(std::move(recording.chunk_count), {loops});
  result["chunk_ends"] = to_numpy(std::move(recording.chunk_ends), {loops});
  result["chunk_seconds"] = to_numpy(std::move(recording.chunk_seconds), {chunks});
  return result;
}

Dict<double> team_costs(int threads, bool asleep, int loops) {
  require(threads >= 1 && threads <= 1024 && loops >= 1, "no such team");
  TeamCosts costs{};
  {
    const LockReleased unlocked;
    costs = measure_team_costs(threads, asleep, loops);
  }
  Dict<double> result;
  result["open"] = costs.open;
  result["wake"] = costs.wake;
  result["close"] = costs.close;
  return result;
}

} // namespace

void bind_recording(nb::module_& m) {
  m.def("record_loops", &record_loops, "body"_a);
  m.def("team_costs", &team_costs, "threads"_a, "asleep"_a, "loops"_a);
  m.def("line_transfer_seconds", &line_transfer_seconds, nb::call_guard<LockReleased>());
}

} // namespace acctsne
