#include "neighbors/full_distances.hpp"

#include <bit>

namespace acctsne {

template <typename Data>
void FullDistances<Data>::start(const PointSet<Data>& points, Size queries) {
  points_ = &points;
  row_lines_ = chunk_count(points.features, CacheLine::kNumbers);
  queries_.resize(static_cast<std::size_t>(queries * row_lines_));
  point_.resize(static_cast<std::size_t>(row_lines_));
  distances_.resize(static_cast<std::size_t>(queries));
}

template <typename Data>
void FullDistances<Data>::set_query(Size query, const Data* row) {
  copy_row(row, queries_.data() + query * row_lines_);
}

template <typename Data>
void FullDistances<Data>::ask(Size query, const Cells& cells, Size place, std::uint64_t bits) {
  for (; bits != 0; bits &= bits - 1) {
    const int p = std::countr_zero(bits);
    if (asking_[p].empty()) {
      // There is time to fetch it until the panel is done.
      const Data* row = points_->row(cells.row(place + p));
      for (Size f = 0; f < points_->features; f += CacheLine::kNumbers) {
        __builtin_prefetch(row + f, 0, 2);
      }
    }
    asking_[p].push_back(static_cast<PointId>(query));
  }
}

template <typename Data>
void FullDistances<Data>::measure(PointId point, int p) {
  copy_row(points_->row(point), point_.data());
  kernels().of<Data>().squared_distances_to(point_.front().numbers, queries_.front().numbers,
                                            asking_[p].data(), static_cast<Size>(asking_[p].size()),
                                            row_lines_ * CacheLine::kNumbers, distances_.data());
}

template <typename Data>
void FullDistances<Data>::copy_row(const Data* from, CacheLine* to) const {
  Data* numbers = to->numbers;
  const Size features = points_->features;
  std::copy_n(from, features, numbers);
  if (points_->projection.scale != 1) {
    for (Size f = 0; f < features; ++f) {
      numbers[f] *= static_cast<Data>(points_->projection.scale);
    }
  }
  std::fill(numbers + features, numbers + row_lines_ * CacheLine::kNumbers, Data(0));
}

template class FullDistances<float>;
template class FullDistances<double>;

} // namespace acctsne
