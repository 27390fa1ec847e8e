// Distances over all features, for the pairs that the filter leaves.
#include "neighbors/full_distances.hpp"

#include <algorithm>
#include <bit>

namespace acctsne {
namespace {

constexpr Size kLineBytes = sizeof(CacheLine);

// Rows of no more lines are copied: to fetch them from all over memory would take longer than to
// compute with them (benchmarks/neighbors.py, docs/tuning.md).
constexpr Size kNarrowLines = 4;

} // namespace

template <typename Data>
FullRows<Data>::FullRows(const PointSet<Data>& points_, const Cells& cells_, bool as_bytes,
                         ThreadTeam& team)
    : points(points_), cells(cells_),
      lines(chunk_count(points.features * Size{sizeof(Data)}, kLineBytes)) {
  if (as_bytes) {
    bytes = ByteRows::of(points, cells, team);
  }
  if (!bytes && lines <= kNarrowLines) {
    filled = make_large_array<CacheLine>(at(points.rows * lines), team.size());
    team.for_chunks(cells.count(), [&](Size cell, int) {
      for (Size place = cells.begin(cell); place < cells.end(cell); ++place) {
        fill(place, filled.get() + place * lines);
      }
    });
  }
}

template <typename Data>
void FullRows<Data>::fill(Size place, CacheLine* to) const {
  auto* numbers = reinterpret_cast<Data*>(to);
  const Size features = points.features;
  points.read(cells.row(place), numbers);
  if (points.projection.scale != 1) {
    for (Size f = 0; f < features; ++f) {
      numbers[f] *= static_cast<Data>(points.projection.scale);
    }
  }
  std::fill(numbers + features, reinterpret_cast<Data*>(to + lines), Data(0));
}

template <typename Data>
void FullDistances<Data>::start(const FullRows<Data>& points, const FullRows<Data>& queries,
                                Size first, Size count) {
  points_ = &points;
  as_bytes_ = points.bytes && queries.bytes;
  row_lines_ = as_bytes_
                   ? chunk_count(points.bytes->length() * Size{sizeof(RowInteger)}, kLineBytes)
                   : points.lines;
  point_.resize(at(row_lines_));
  distances_.resize(at(count));
  if (queries.filled) {
    queries_ = queries.filled.get() + first * row_lines_;
    return;
  }
  copies_.resize(at(count * row_lines_));
  for (Size q = 0; q < count; ++q) {
    copy_row(queries, first + q, copies_.data() + q * row_lines_);
  }
  queries_ = copies_.data();
}

template <typename Data>
void FullDistances<Data>::ask(Size query, Size place, std::uint64_t bits) {
  for (; bits != 0; bits &= bits - 1) {
    const int p = std::countr_zero(bits);
    if (asking_[p].empty()) {
      prefetch(place + p); // there is time until the panel is done
    }
    asking_[p].push_back(static_cast<PointId>(query));
  }
}

template <typename Data>
void FullDistances<Data>::prefetch(Size place) const {
  if (points_->filled) {
    return; // those of a panel lie one after the other
  }
  const auto* row = as_bytes_ ? reinterpret_cast<const std::byte*>(points_->bytes->row(place))
                              : points_->points.stored_row(points_->cells.row(place));
  const Size bytes = as_bytes_ ? points_->bytes->length()
                               : points_->points.features * points_->points.number_bytes();
  for (Size at = 0; at < bytes; at += kLineBytes) {
    __builtin_prefetch(row + at, 0, 2);
  }
}

template <typename Data>
void FullDistances<Data>::measure(Size place, int p) {
  const CacheLine* point = point_.data();
  if (points_->filled) {
    point = points_->filled.get() + (place + p) * row_lines_;
  } else {
    copy_row(*points_, place + p, point_.data());
  }
  const auto count = static_cast<Size>(asking_[p].size());
  const auto measure_as = [&]<typename Number>(const auto& kernel) {
    kernel(reinterpret_cast<const Number*>(point), reinterpret_cast<const Number*>(queries_),
           asking_[p].data(), count, row_lines_ * kLineBytes / Size{sizeof(Number)},
           distances_.data());
  };
  if (as_bytes_) {
    measure_as.template operator()<RowInteger>(distance_kernels_.squared_distances_of_integers);
  } else {
    measure_as.template operator()<Data>(distance_kernels_.squared_distances_to);
  }
}

template <typename Data>
void FullDistances<Data>::copy_row(const FullRows<Data>& from, Size place, CacheLine* to) const {
  if (as_bytes_) {
    search_kernels_.bytes_to_integers(from.bytes->row(place), from.bytes->length(),
                                      reinterpret_cast<RowInteger*>(to));
  } else {
    from.fill(place, to);
  }
}

template struct FullRows<float>;
template struct FullRows<double>;
template class FullDistances<float>;
template class FullDistances<double>;

} // namespace acctsne
