// What the neighbour searches share: the points and who is near.
#pragma once

#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
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

// How the numbers of the data are stored: as what is computed with, in half precision, or as bytes.
enum class Stored { as_computed, half, byte };

// How rows lie in memory. Numbers that do not lie as a search needs them are read a row at a time
// into its own memory, so that the data is never copied whole.
struct RowLayout {
  Stored stored = Stored::as_computed;
  bool packed = true;     // numbers and rows one after the other; otherwise, from one to the next:
  Size row_stride = 0;    // in bytes, of either sign
  Size number_stride = 0; // likewise
};

// Points to search, or to search the neighbours of. Both sets of one search have their features,
// axes, centre and scale in common.
template <typename Data>
struct PointSet {
  const void* data; // rows x features
  Size rows;
  Size features;
  Projection projection;
  RowLayout layout = {};

  // Whether rows are what a search computes with, where they are.
  bool in_place() const {
    return layout.stored == Stored::as_computed &&
           (layout.packed || layout.number_stride == Size{sizeof(Data)});
  }
  // Where the numbers of a row begin, however they are stored.
  const std::byte* stored_row(PointId id) const {
    const Size stride = layout.packed ? features * number_bytes() : layout.row_stride;
    return static_cast<const std::byte*>(data) + Size{id} * stride;
  }
  Size number_bytes() const {
    return layout.stored == Stored::half   ? 2
           : layout.stored == Stored::byte ? 1
                                           : Size{sizeof(Data)};
  }
  // Copies a row, as numbers to compute with.
  void read(PointId id, Data* to) const;
  // Copies a row as it is stored, its numbers one after the other.
  void copy_stored(PointId id, std::byte* to) const;

  // Writes the coordinates of a point, its residual norm behind them, and zeros up to `length`.
  void lay_out_coordinates(PointId id, float* to, Size length) const;
  // The length that fills whole vectors.
  Size coordinate_row() const {
    constexpr Size kFloats = 16; // of the widest vector
    return chunk_count(projection.dims + 1, kFloats) * kFloats;
  }
  // The row where it is, or read into the scratch memory.
  const Data* row(PointId id, std::vector<Data>& scratch) const {
    if (in_place()) {
      return reinterpret_cast<const Data*>(stored_row(id));
    }
    scratch.resize(at(features));
    read(id, scratch.data());
    return scratch.data();
  }
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
    kept_ = at(kept);
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
