// Pairs of different cells. Each belongs to one of its two cells, whose worker is to visit it and
// keeps other workers from both meanwhile.
#pragma once

#include "acctsne/types.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

namespace acctsne {

class CellPairs {
public:
  explicit CellPairs(Size cells)
      : cells_(cells), words_((cells + 63) / 64), locked_(at(cells), false),
        settled_(at(cells * words_)) {}

  // Half of the others, give or take one, for every cell.
  bool belongs_to(Size cell, Size other) const {
    const Size ahead = (other - cell + cells_) % cells_;
    return ahead != 0 && (2 * ahead < cells_ || (2 * ahead == cells_ && cell < other));
  }

  // Two cells that nobody else is at.
  class Lock {
  public:
    // Waits for the cell, which others are at for a moment only, and takes the first of the others
    // that is free, which then leaves them. Takes nothing if there is none: their workers would
    // come back to them again and again.
    Lock(CellPairs& pairs, Size cell, std::vector<Size>& others)
        : pairs_(pairs), cell_(cell), other_(pairs.take(cell, others)) {}
    ~Lock() {
      if (*this) {
        pairs_.release(cell_, other_);
      }
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

    explicit operator bool() const { return other_ != kNone; }
    Size other() const { return other_; }
    // Notes that the pair need not be visited any more.
    void settle() {
      pairs_.settled_[pairs_.word(cell_, other_)] |= bit(other_);
      pairs_.settled_[pairs_.word(other_, cell_)] |= bit(cell_);
    }

  private:
    CellPairs& pairs_;
    Size cell_;
    Size other_;
  };

  bool settled(Size cell, Size other) const {
    return (settled_[word(cell, other)] & bit(other)) != 0;
  }

private:
  static constexpr Size kNone = -1;

  Size take(Size cell, std::vector<Size>& others) {
    const auto is_free = [&](Size c) { return !locked_[at(c)]; };
    std::unique_lock lock(mutex_);
    released_.wait(lock, [&] { return is_free(cell); });
    const auto chosen = std::find_if(others.begin(), others.end(), is_free);
    if (chosen == others.end()) {
      return kNone;
    }
    const Size other = *chosen;
    others.erase(chosen);
    set_locked(cell, other, true);
    return other;
  }

  void release(Size cell, Size other) {
    {
      const std::lock_guard lock(mutex_);
      set_locked(cell, other, false);
    }
    released_.notify_all();
  }

  void set_locked(Size cell, Size other, bool locked) {
    locked_[at(cell)] = locked;
    locked_[at(other)] = locked;
  }

  std::size_t word(Size cell, Size other) const { return at(cell * words_ + other / 64); }
  static std::uint64_t bit(Size other) { return std::uint64_t{1} << other % 64; }

  Size cells_;
  Size words_; // for a cell's bits
  std::mutex mutex_;
  std::condition_variable released_;
  std::vector<bool> locked_;
  std::vector<std::uint64_t> settled_;
};

} // namespace acctsne
