// What the neighbour searches share: the points and who is near.
#pragma once

#include "acctsne/types.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

namespace acctsne {

// The data, centred, on its leading axes.
struct Projection {
  const float* coordinates; // rows x dims: V^T (scale * x - centre), V orthonormal
  Size dims;
  const double* squared_norms; // rows: |scale * x - centre|^2
  double scale;                // a power of two

  const float* row(PointId id) const { return coordinates + Size{id} * dims; }
};

// Points to search, or to search the neighbours of. Both sets of one search have their features,
// axes, centre and scale in common.
template <typename Data>
struct PointSet {
  const Data* data; // rows x features, row-major
  Size rows;
  Size features;
  Projection projection;

  const Data* row(PointId id) const { return data + Size{id} * features; }
};

template <typename Distance>
struct Candidate {
  Distance distance; // squared
  PointId id;

  bool operator<(const Candidate& other) const {
    if constexpr (sizeof(Distance) == sizeof(float)) {
      return as_number() < other.as_number();
    } else {
      return distance < other.distance || (distance == other.distance && id < other.id);
    }
  }

private:
  // One to compare instead of two: the bits of positive floats are in the order of the numbers.
  std::uint64_t as_number() const {
    return std::uint64_t{std::bit_cast<std::uint32_t>(distance)} << 32 |
           static_cast<std::uint32_t>(id);
  }
};

// The nearest points of one query so far. New ones are only collected; when their room is full, the
// farthest are dropped. No slower than a heap (docs/tuning.md).
template <typename Distance>
class NearestList {
public:
  void start(Size kept) {
    kept_ = static_cast<std::size_t>(kept);
    items_.clear();
    items_.reserve(room());
    last_ = {std::numeric_limits<Distance>::infinity(), 0};
  }
  // What a point must be nearer than to enter, or as near and of a lower id.
  Distance limit() const { return last_.distance; }
  void add(Candidate<Distance> candidate) {
    if (candidate < last_) {
      items_.push_back(candidate);
      if (items_.size() == room()) {
        drop_farthest();
      }
    }
  }
  // Keeps no more than was asked for, which makes the limit as low as it can be.
  void drop_farthest() {
    if (items_.size() >= kept_) {
      const auto last = items_.begin() + static_cast<std::ptrdiff_t>(kept_ - 1);
      std::nth_element(items_.begin(), last, items_.end());
      last_ = *last;
      items_.resize(kept_);
    }
  }
  // The kept ones, nearest first.
  std::vector<Candidate<Distance>>& sorted() {
    drop_farthest();
    std::sort(items_.begin(), items_.end());
    return items_;
  }

private:
  std::size_t room() const { return kept_ + kept_ / 2 + 1; }

  std::size_t kept_ = 0;
  std::vector<Candidate<Distance>> items_;
  Candidate<Distance> last_{};
};

} // namespace acctsne
