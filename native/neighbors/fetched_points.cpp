// Asks other processes for the points that this one looks at and does not own. The owner of a point
// sends its row as it is stored and its coordinates with the residual norm.
#include "neighbors/fetched_points.hpp"

#include <algorithm>
#include <numeric>

namespace acctsne {

template <typename Data>
FetchedPoints<Data>::FetchedPoints(const PointSet<Data>& own, Size rows, Communicator& processes)
    : own_(own), rows_(rows), processes_(processes), slots_(at(rows), -1),
      points_{nullptr, 0, own.features, {nullptr, 0, nullptr, own.projection.scale}, {}} {
  points_.layout.stored = own.layout.stored;
}

template <typename Data>
void FetchedPoints<Data>::fetch() {
  // By owner, as messages are.
  const Owners owners(processes_.size(), rows_);
  std::vector<Size> ends(at(processes_.size()), 0);
  for (const PointId id : ids_) {
    ++ends[owners.of(id)];
  }
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  std::vector<Size> next(ends.size(), 0);
  std::copy(ends.begin(), ends.end() - 1, next.begin() + 1);
  std::vector<PointId> asked(ids_.size());
  std::vector<std::size_t> slot_of_answer(ids_.size());
  for (std::size_t slot = 0; slot < ids_.size(); ++slot) {
    const auto at = static_cast<std::size_t>(next[owners.of(ids_[slot])]++);
    asked[at] = ids_[slot];
    slot_of_answer[at] = slot;
  }

  std::vector<Size> wanted_ends;
  const std::vector<PointId> wanted = deliver(processes_, asked, ends, &wanted_ends);
  const Size first = rows_of(processes_.rank(), processes_.size(), rows_).begin;
  const auto times = [](std::vector<Size> counts, Size factor) {
    for (Size& count : counts) {
      count *= factor;
    }
    return counts;
  };

  const Size row_bytes = own_.features * own_.number_bytes();
  {
    std::vector<std::byte> leaving(wanted.size() * at(row_bytes));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      own_.copy_stored(static_cast<PointId>(wanted[i] - first),
                       leaving.data() + static_cast<Size>(i) * row_bytes);
    }
    const std::vector<std::byte> arrived =
        deliver(processes_, leaving, times(wanted_ends, row_bytes));
    data_.resize(arrived.size());
    for (std::size_t i = 0; i < slot_of_answer.size(); ++i) {
      std::copy_n(arrived.data() + static_cast<Size>(i) * row_bytes, row_bytes,
                  data_.data() + static_cast<Size>(slot_of_answer[i]) * row_bytes);
    }
  }
  points_.data = data_.data();
  points_.rows = static_cast<Size>(ids_.size());

  const Size sent_floats = own_.projection.dims + 1;
  const Size length = own_.coordinate_row();
  std::vector<float> leaving(wanted.size() * at(sent_floats));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    own_.lay_out_coordinates(static_cast<PointId>(wanted[i] - first),
                             leaving.data() + static_cast<Size>(i) * sent_floats, sent_floats);
  }
  const std::vector<float> arrived = deliver(processes_, leaving, times(wanted_ends, sent_floats));
  coordinates_.assign(ids_.size() * at(length), 0.0f);
  for (std::size_t i = 0; i < slot_of_answer.size(); ++i) {
    std::copy_n(arrived.data() + static_cast<Size>(i) * sent_floats, sent_floats,
                coordinates_.data() + static_cast<Size>(slot_of_answer[i]) * length);
  }
}

template <typename Data>
void FetchedPoints<Data>::clear() {
  for (const PointId id : ids_) {
    slots_[at(id)] = -1;
  }
  ids_.clear();
}

template class FetchedPoints<float>;
template class FetchedPoints<double>;

} // namespace acctsne
