// Processes that are threads of this one, for tests of what several have to give as one does.
#pragma once

#include "acctsne/communicator.hpp"

#include "check.hpp"

#include <algorithm>
#include <barrier>
#include <cstring>
#include <thread>
#include <vector>

namespace acctsne {

class ThreadProcesses {
public:
  explicit ThreadProcesses(int count) : arrays_(at(count)), messages_(at(count)), barrier_(count) {}

  // Calls body(communicator) once for each process, all at the same time.
  template <typename Body>
  void run(Body&& body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < static_cast<int>(arrays_.size()); ++rank) {
      threads.emplace_back([&, rank] {
        Member member(*this, rank);
        body(member);
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }

private:
  class Member final : public Communicator {
  public:
    Member(ThreadProcesses& all, int rank) : all_(all), rank_(rank) {}

    int rank() const override { return rank_; }
    int size() const override { return static_cast<int>(all_.arrays_.size()); }

  private:
    void do_gather(std::byte* array, std::span<const Size> ends) override {
      all_.arrays_[at(rank_)] = array;
      all_.barrier_.arrive_and_wait();
      Size begin = 0;
      for (std::size_t r = 0; r < ends.size(); ++r) {
        if (static_cast<int>(r) != rank_) {
          std::memcpy(array + begin, all_.arrays_[r] + begin, at(ends[r] - begin));
        }
        begin = ends[r];
      }
      all_.barrier_.arrive_and_wait();
    }

    void do_exchange(const std::byte* sent, std::span<const Size> sent_ends, std::byte* received,
                     std::span<const Size> received_ends) override {
      const auto self = static_cast<std::size_t>(rank_);
      all_.messages_[self] = {sent, sent_ends};
      all_.barrier_.arrive_and_wait();
      Size to = 0;
      for (std::size_t r = 0; r < received_ends.size(); ++r) {
        const auto& [from, ends] = all_.messages_[r];
        const Size begin = self > 0 ? ends[self - 1] : 0;
        CHECK_EQUAL(ends[self] - begin, received_ends[r] - to);
        std::copy(from + begin, from + ends[self], received + to);
        to = received_ends[r];
      }
      all_.barrier_.arrive_and_wait();
    }

    ThreadProcesses& all_;
    int rank_;
  };
  struct Messages {
    const std::byte* bytes;
    std::span<const Size> ends;
  };

  std::vector<std::byte*> arrays_; // of each process, while they gather
  std::vector<Messages> messages_; // and while they exchange
  std::barrier<> barrier_;
};

} // namespace acctsne
