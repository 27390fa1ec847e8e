// What a thread's work consists of: named steps, their parallel loops chunk by chunk, and the
// serial stretches in between. benchmarks/simulate.py replays a recording on more workers.
#pragma once

#include "acctsne/types.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace acctsne {

// Loops in the order in which they ran. All seconds together are those of the recorder's life.
struct Recording {
  std::vector<std::string> steps;
  // Of each loop. A stretch of a step that no loop of its own follows is a loop without chunks.
  std::vector<std::int32_t> step;     // index into steps
  std::vector<double> serial_seconds; // from the end of the loop before to the start of this one
  std::vector<double> loop_seconds;   // from start to end
  std::vector<Size> chunk_count;      // how many chunks the loop has
  std::vector<Size> chunk_ends;       // where its chunks end in chunk_seconds
  // In the order of chunks, for loops that ran on one thread: on more, chunks say less about the
  // code than about the neighbours of the core.
  std::vector<float> chunk_seconds;
};

// While one lives, the loops of all teams that its thread owns are recorded.
class LoopRecorder {
public:
  using Clock = std::chrono::steady_clock;

  // Loops and chunks that a recording has room for: 256 MB.
  static constexpr Size kMostChunks = Size{1} << 26;

  explicit LoopRecorder(Size most_chunks = kMostChunks);
  ~LoopRecorder();
  LoopRecorder(const LoopRecorder&) = delete;
  LoopRecorder& operator=(const LoopRecorder&) = delete;

  // Of the calling thread; null if nothing is recorded.
  static LoopRecorder* current() { return current_; }

  // Ends the recording.
  Recording take();

  // One loop, from its construction to its destruction. Throws std::length_error if the recording
  // has no room for it.
  class Loop {
  public:
    Loop(LoopRecorder& recorder, Size chunks, int threads);
    ~Loop();
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;

    bool times_chunks() const { return times_chunks_; }
    // What has passed since the chunk before, or the start, was the next chunk's.
    void chunk_done();

  private:
    LoopRecorder& recorder_;
    bool times_chunks_;
    Clock::time_point start_;
    Clock::time_point last_;
  };

private:
  friend class Step;

  // Ends the step at hand, if any of its time has not been recorded, and begins another one.
  const char* change_step(const char* name);
  // A loop that begins now; returns when that is.
  Clock::time_point add_loop(Size chunks);
  std::int32_t index_of(const char* name);

  static thread_local LoopRecorder* current_;

  LoopRecorder* before_;
  Size room_;
  const char* step_ = nullptr;
  Clock::time_point recorded_until_;
  Recording recording_;
};

// Names a step of the algorithm for as long as it lives; the innermost name counts. `seconds`, if
// given, is a counter to which its time is added.
class Step {
public:
  explicit Step(const char* name) : Step(name, nullptr) {}
  Step(const char* name, double& seconds) : Step(name, &seconds) {}
  ~Step();
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

private:
  using Clock = LoopRecorder::Clock;
  Step(const char* name, double* seconds);

  double* seconds_;
  Clock::time_point start_;
  LoopRecorder* recorder_;
  const char* before_ = nullptr;
};

} // namespace acctsne
