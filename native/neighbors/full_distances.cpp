// Distances over all features, for the pairs that the filter leaves.
#include "neighbors/full_distances.hpp"

#include <algorithm>
#include <bit>

namespace acctsne {

template <typename Data>
void FullDistances<Data>::start(const FullRows<Data>& points, const FullRows<Data>& queries,
                                Size first, Size count) {
  points_ = &points;
  as_bytes_ = points.bytes && queries.bytes;
  row_lines_ = as_bytes_ ? chunk_count(points.bytes->length() * Size{sizeof(RowInteger)}, 64)
                         : chunk_count(points.points.features * Size{sizeof(Data)}, 64);
  queries_.resize(at(count * row_lines_));
  point_.resize(at(row_lines_));
  distances_.resize(at(count));
  for (Size q = 0; q < count; ++q) {
    copy_row(queries, first + q, queries_.data() + q * row_lines_);
  }
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
  const auto* row = as_bytes_ ? reinterpret_cast<const std::byte*>(points_->bytes->row(place))
                              : points_->points.stored_row(points_->cells.row(place));
  const Size bytes = as_bytes_ ? points_->bytes->length()
                               : points_->points.features * points_->points.number_bytes();
  for (Size at = 0; at < bytes; at += 64) {
    __builtin_prefetch(row + at, 0, 2);
  }
}

template <typename Data>
void FullDistances<Data>::measure(Size place, int p) {
  copy_row(*points_, place, point_.data());
  const auto count = static_cast<Size>(asking_[p].size());
  const auto measure_as = [&]<typename Number>(const auto& kernel) {
    kernel(reinterpret_cast<const Number*>(point_.data()),
           reinterpret_cast<const Number*>(queries_.data()), asking_[p].data(), count,
           row_lines_ * 64 / Size{sizeof(Number)}, distances_.data());
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
    return;
  }
  auto* numbers = reinterpret_cast<Data*>(to);
  const Size features = from.points.features;
  from.points.read(from.cells.row(place), numbers);
  if (from.points.projection.scale != 1) {
    for (Size f = 0; f < features; ++f) {
      numbers[f] *= static_cast<Data>(from.points.projection.scale);
    }
  }
  std::fill(numbers + features, reinterpret_cast<Data*>(to + row_lines_), Data(0));
}

template class FullDistances<float>;
template class FullDistances<double>;

} // namespace acctsne
