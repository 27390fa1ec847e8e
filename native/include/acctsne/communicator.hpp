// The processes that share one run: which rows each of them owns, and how they learn of each
// other's.
//
// Results do not depend on the number of processes, for the same reason that they do not depend on
// the number of threads: rows are cut into blocks by the problem alone, a process owns whole
// blocks, and sums are kept by block and added in the order of blocks.
#pragma once

#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace acctsne {

// A run of rows.
struct Rows {
  Size begin;
  Size end;

  bool has(Size row) const { return begin <= row && row < end; }
};

// Rows that are never divided between processes: a multiple of the chunks of every pass over rows.
inline constexpr Size kBlockRows = 4096;
// Rows whose sums are one number: few, so that many threads have even shares.
inline constexpr Size kSumRows = 512;
static_assert(kBlockRows % kSumRows == 0);

class Communicator {
public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0; // of this process, from 0
  virtual int size() const = 0; // how many there are

  // Each process has filled its part of the array; afterwards every one has all of it. The part of
  // process r ends at byte ends[r] and begins where the one before ends.
  void gather(std::byte* array, std::span<const Size> ends) {
    if (size() > 1) {
      bytes_sent_ += own_part(ends) * (size() - 1);
    }
    do_gather(array, ends);
  }

  // Each process has written a message to every one, itself among them; afterwards it has those
  // that were written to it. The one to or from process r ends at byte ends[r] and begins where the
  // one before ends.
  void exchange(const std::byte* sent, std::span<const Size> sent_ends, std::byte* received,
                std::span<const Size> received_ends) {
    if (size() > 1) {
      bytes_sent_ += sent_ends.back() - own_part(sent_ends);
    }
    do_exchange(sent, sent_ends, received, received_ends);
  }

  // Bytes that had to leave this process, counted as often as they had to.
  Size bytes_sent() const { return bytes_sent_; }

protected:
  virtual void do_gather(std::byte* array, std::span<const Size> ends) = 0;
  virtual void do_exchange(const std::byte* sent, std::span<const Size> sent_ends,
                           std::byte* received, std::span<const Size> received_ends) = 0;

private:
  // The length of this process's part.
  Size own_part(std::span<const Size> ends) const {
    const auto self = static_cast<std::size_t>(rank());
    return ends[self] - (self > 0 ? ends[self - 1] : 0);
  }

  Size bytes_sent_ = 0;
};

// The trivial case: one process, which owns all.
class OneProcess final : public Communicator {
public:
  int rank() const override { return 0; }
  int size() const override { return 1; }

private:
  void do_gather(std::byte*, std::span<const Size>) override {}
  void do_exchange(const std::byte* sent, std::span<const Size> sent_ends, std::byte* received,
                   std::span<const Size>) override {
    std::copy_n(sent, sent_ends.front(), received);
  }
};

// For whatever is not told of any others.
inline OneProcess one_process;

// Ends in bytes, for ends that count items of `width` values each.
template <typename Value>
std::vector<Size> byte_ends(std::span<const Size> ends, Size width = 1) {
  static_assert(std::is_trivially_copyable_v<Value>);
  std::vector<Size> bytes(ends.size());
  std::ranges::transform(ends, bytes.begin(),
                         [width](Size end) { return end * width * Size{sizeof(Value)}; });
  return bytes;
}

// As Communicator has them, of items, of which those of process r end at item ends[r].
template <typename Value>
void gather_items(Communicator& processes, Value* array, std::span<const Size> ends) {
  processes.gather(reinterpret_cast<std::byte*>(array), byte_ends<Value>(ends));
}
template <typename Value>
void exchange_items(Communicator& processes, const Value* sent, std::span<const Size> sent_ends,
                    Value* received, std::span<const Size> received_ends, Size width = 1) {
  processes.exchange(reinterpret_cast<const std::byte*>(sent), byte_ends<Value>(sent_ends, width),
                     reinterpret_cast<std::byte*>(received),
                     byte_ends<Value>(received_ends, width));
}

// Adds what leaves a process as long as this lives to a number of bytes.
class SentCounter {
public:
  SentCounter(const Communicator& processes, Size& bytes)
      : processes_(processes), bytes_(bytes), before_(processes.bytes_sent()) {}
  SentCounter(const SentCounter&) = delete;
  SentCounter& operator=(const SentCounter&) = delete;
  ~SentCounter() { bytes_ += processes_.bytes_sent() - before_; }

private:
  const Communicator& processes_;
  Size& bytes_;
  Size before_;
};

// What a process owns of so many rows: whole blocks, as many as the others give or take one.
inline Rows rows_of(int rank, int processes, Size rows) {
  const Size blocks = chunk_count(rows, kBlockRows);
  const auto first_row = [&](Size r) {
    return std::min(blocks * r / processes * kBlockRows, rows);
  };
  return {first_row(rank), first_row(rank + 1)};
}

inline Rows rows_of(const Communicator& processes, Size rows) {
  return rows_of(processes.rank(), processes.size(), rows);
}

// Which process owns each of so many rows.
class Owners {
public:
  Owners(int processes, Size rows) {
    for (int rank = 0; rank < processes; ++rank) {
      ends_.push_back(rows_of(rank, processes, rows).end);
    }
  }
  std::size_t of(Size row) const {
    return at(std::ranges::upper_bound(ends_, row) - ends_.begin());
  }

private:
  std::vector<Size> ends_;
};

// Numbers of every process, as many of each, those of the first one first.
inline std::vector<Size> gather_numbers(Communicator& processes, std::span<const Size> mine) {
  std::vector<Size> all(at(processes.size()) * mine.size());
  std::ranges::copy(mine, all.begin() + processes.rank() * static_cast<Size>(mine.size()));
  std::vector<Size> ends;
  for (int rank = 1; rank <= processes.size(); ++rank) {
    ends.push_back(rank * static_cast<Size>(mine.size()));
  }
  gather_items(processes, all.data(), ends);
  return all;
}

// Adds up a number of each process.
inline Size sum(Communicator& processes, Size mine) {
  const std::vector<Size> all = gather_numbers(processes, {&mine, 1});
  return std::accumulate(all.begin(), all.end(), Size{0});
}

// Gives every process numbers that the first one has.
template <typename Number>
void broadcast(Communicator& processes, std::span<Number> numbers) {
  if (processes.size() > 1) {
    const std::vector<Size> ends(at(processes.size()), static_cast<Size>(numbers.size()));
    gather_items(processes, numbers.data(), ends);
  }
}

// Sums up numbers of all processes: add(total) adds those of this one. One process after the other
// does, so that the sum has the bits that one alone would get.
template <typename Add>
void add_in_order(Communicator& processes, std::span<double> total, Add&& add) {
  const auto count = static_cast<std::size_t>(processes.size());
  const auto rank = static_cast<std::size_t>(processes.rank());
  const auto numbers = static_cast<Size>(total.size());
  std::vector<double> before(total.size());
  for (std::size_t adding = 0; adding < count; ++adding) {
    if (adding == rank) {
      add(total);
    }
    if (adding + 1 == count) {
      break;
    }
    std::vector<Size> sent_ends(count, 0);
    std::vector<Size> received_ends(count, 0);
    if (adding == rank) {
      std::fill(sent_ends.begin() + static_cast<std::ptrdiff_t>(adding) + 1, sent_ends.end(),
                numbers);
    }
    if (adding + 1 == rank) {
      std::fill(received_ends.begin() + static_cast<std::ptrdiff_t>(adding), received_ends.end(),
                numbers);
    }
    exchange_items(processes, total.data(), sent_ends, before.data(), received_ends);
    if (adding + 1 == rank) {
      std::copy(before.begin(), before.end(), total.begin());
    }
  }
  if (count > 1) { // the last one has it
    std::vector<Size> ends(count, 0);
    ends.back() = numbers;
    gather_items(processes, total.data(), ends);
  }
}

// Sends items, those to process r before ends[r]; returns what comes from each process, in their
// order, and where that ends.
template <typename Item>
std::vector<Item> deliver(Communicator& processes, const std::vector<Item>& items,
                          std::span<const Size> ends, std::vector<Size>* arrived_ends = nullptr) {
  std::vector<Size> counts(ends.size());
  std::adjacent_difference(ends.begin(), ends.end(), counts.begin());
  std::vector<Size> one_each(ends.size());
  std::iota(one_each.begin(), one_each.end(), Size{1});
  std::vector<Size> received(ends.size());
  exchange_items(processes, counts.data(), one_each, received.data(), one_each);
  std::partial_sum(received.begin(), received.end(), received.begin());
  std::vector<Item> arrived(at(received.back()));
  exchange_items(processes, items.data(), ends, arrived.data(), received);
  if (arrived_ends != nullptr) {
    *arrived_ends = std::move(received);
  }
  return arrived;
}

// Makes an array of `width` values a row whole, of which each process has filled its own rows.
template <typename Value>
void gather_rows(Communicator& processes, Value* values, Size rows, Size width) {
  if (processes.size() == 1) {
    return;
  }
  std::vector<Size> ends(at(processes.size()));
  for (int rank = 0; rank < processes.size(); ++rank) {
    ends[at(rank)] = rows_of(rank, processes.size(), rows).end * width;
  }
  gather_items(processes, values, ends);
}

// Calls body(begin, end) or body(begin, end, worker) for the rows cut into chunks of `grain`, which
// divides kBlockRows.
template <typename Body>
void parallel_for(ThreadTeam& team, Rows rows, Size grain, Body&& body) {
  parallel_for(team, rows.end - rows.begin, grain, [&](Size begin, Size end, int worker) {
    call_for_chunk(body, rows.begin + begin, rows.begin + end, worker);
  });
}

// Numbers that a pass sums over all rows, a set for each chunk of them.
class RowSums {
public:
  // Prepares zeros, `width` of them for each chunk of `grain` rows; the grain divides kBlockRows.
  // Memory is kept from call to call.
  void start(Size rows, Size grain, Size width = 1) {
    rows_ = rows;
    grain_ = grain;
    width_ = width;
    numbers_.assign(at(chunk_count(rows, grain) * width), 0.0);
  }

  // The numbers of the chunk that a row belongs to.
  double* of_row(Size row) { return numbers_.data() + row / grain_ * width_; }
  Size grain() const { return grain_; }

  // Fetches the numbers of the chunks that the other processes own, so that each process has all.
  void gather(Communicator& processes) {
    if (processes.size() == 1) {
      return;
    }
    std::vector<Size> ends;
    for (int rank = 0; rank < processes.size(); ++rank) {
      const Rows theirs = rows_of(rank, processes.size(), rows_);
      ends.push_back(chunk_count(theirs.end, grain_) * width_);
    }
    gather_items(processes, numbers_.data(), ends);
  }

  // Calls body(numbers of the chunk) for all chunks, in their order.
  template <typename Body>
  void for_chunks(Body&& body) {
    for (double* numbers = numbers_.data(); numbers < numbers_.data() + numbers_.size();
         numbers += width_) {
      body(numbers);
    }
  }
  // The sum over all chunks, if each has a single number.
  double total() {
    double sum = 0;
    for_chunks([&](const double* number) { sum += *number; });
    return sum;
  }

private:
  Size rows_ = 0;
  Size grain_ = 1;
  Size width_ = 1;
  std::vector<double> numbers_;
};

// Adds numbers of single rows to the sums of the chunks that own rows belong to.
inline void add_rows(RowSums& sums, const double* of_rows, Rows own, ThreadTeam& team) {
  parallel_for(team, own, sums.grain(), [&](Size begin, Size end) {
    double sum = 0;
    for (Size row = begin; row < end; ++row) {
      sum += of_rows[row];
    }
    *sums.of_row(begin) += sum;
  });
}

} // namespace acctsne
