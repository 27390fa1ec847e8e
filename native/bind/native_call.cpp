// The way from Python into the core and back.
#include "bind/native_call.hpp"

namespace acctsne {

void run_native(int threads, PythonPoll& poll, const Work& work) {
  {
    const CallUnderWay counted;
    const LockReleased unlocked;
    ThreadTeam team(threads, [&poll] { return poll(); });
    try {
      work(team);
    } catch (const Cancelled&) {
      // The reason is in the poll.
    }
  }
  poll.rethrow();
}

void run_native(int threads, const Work& work) {
  PythonPoll poll({}, {});
  run_native(threads, poll, work);
}

} // namespace acctsne
