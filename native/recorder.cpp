// The recorder of loops: one clock reading a chunk, so that nothing between two chunks is lost.
#include "acctsne/recorder.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace acctsne {
namespace {

// The step of whatever is in no other.
constexpr const char* kOther = "other";

double seconds(LoopRecorder::Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

} // namespace

thread_local LoopRecorder* LoopRecorder::current_ = nullptr;

LoopRecorder::LoopRecorder(Size most_chunks)
    : before_(std::exchange(current_, this)), room_(most_chunks), step_(kOther),
      recorded_until_(Clock::now()) {}

LoopRecorder::~LoopRecorder() {
  current_ = before_;
}

Recording LoopRecorder::take() {
  change_step(kOther);
  return std::move(recording_);
}

const char* LoopRecorder::change_step(const char* name) {
  add_loop(0);
  return std::exchange(step_, name);
}

LoopRecorder::Clock::time_point LoopRecorder::add_loop(Size chunks) {
  const Clock::time_point now = Clock::now();
  recording_.step.push_back(index_of(step_));
  recording_.serial_seconds.push_back(seconds(now - recorded_until_));
  recording_.loop_seconds.push_back(0);
  recording_.chunk_count.push_back(chunks);
  recording_.chunk_ends.push_back(static_cast<Size>(recording_.chunk_seconds.size()));
  recorded_until_ = now;
  return now;
}

std::int32_t LoopRecorder::index_of(const char* name) {
  std::vector<std::string>& steps = recording_.steps;
  const auto found = std::ranges::find(steps, name);
  const auto index = static_cast<std::int32_t>(found - steps.begin());
  if (found == steps.end()) {
    steps.emplace_back(name);
  }
  return index;
}

LoopRecorder::Loop::Loop(LoopRecorder& recorder, Size chunks, int threads)
    : recorder_(recorder), times_chunks_(threads == 1) {
  recorder.room_ -= 1 + (times_chunks_ ? chunks : 0);
  if (recorder.room_ < 0) {
    throw std::length_error("the recording is full; record fewer iterations");
  }
  start_ = last_ = recorder.add_loop(chunks);
}

LoopRecorder::Loop::~Loop() {
  Recording& recording = recorder_.recording_;
  const Clock::time_point now = times_chunks_ ? last_ : Clock::now();
  recording.loop_seconds.back() = seconds(now - start_);
  recording.chunk_ends.back() = static_cast<Size>(recording.chunk_seconds.size());
  recorder_.recorded_until_ = now;
}

void LoopRecorder::Loop::chunk_done() {
  const Clock::time_point now = Clock::now();
  recorder_.recording_.chunk_seconds.push_back(static_cast<float>(seconds(now - last_)));
  last_ = now;
}

Step::Step(const char* name, double* seconds)
    : seconds_(seconds), start_(seconds != nullptr ? Clock::now() : Clock::time_point{}),
      recorder_(LoopRecorder::current()) {
  if (recorder_ != nullptr) {
    before_ = recorder_->change_step(name);
  }
}

Step::~Step() {
  if (seconds_ != nullptr) {
    *seconds_ += acctsne::seconds(Clock::now() - start_);
  }
  // Not if the recording has ended meanwhile.
  if (recorder_ != nullptr && recorder_ == LoopRecorder::current()) {
    recorder_->change_step(before_);
  }
}

} // namespace acctsne
