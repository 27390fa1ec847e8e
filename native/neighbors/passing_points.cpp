// Sends rows as they are stored, their coordinates and their norms, a block of rows at a time.
#include "neighbors/passing_points.hpp"

#include <algorithm>
#include <vector>

namespace acctsne {

template <typename Data>
PassingPoints<Data>::PassingPoints(const PointSet<Data>& own, Size rows, Communicator& processes)
    : own_(own), rows_(rows), processes_(processes),
      there_{nullptr,
             0,
             own.features,
             {nullptr, own.projection.dims, nullptr, own.projection.scale},
             {}} {
  there_.layout.stored = own.layout.stored;
  Size most = 0;
  for (int rank = 0; rank < processes.size(); ++rank) {
    const Rows theirs = rows_of_rank(rank);
    most = std::max(most, rank == processes.rank() ? 0 : theirs.end - theirs.begin);
  }
  data_.reset(new std::byte[at(most * own.features * own.number_bytes())]);
  coordinates_.reset(new float[at(most * own.projection.dims)]);
  squared_norms_.reset(new double[at(most)]);
  there_.data = data_.get();
  there_.projection.coordinates = coordinates_.get();
  there_.projection.squared_norms = squared_norms_.get();
}

template <typename Data>
Rows PassingPoints<Data>::receive(int step) {
  const int processes = processes_.size();
  const Rows theirs = rows_of_rank((processes_.rank() + step) % processes);
  there_.rows = theirs.end - theirs.begin;
  Size blocks = 0; // of the process that has most, for all send as often
  for (int rank = 0; rank < processes; ++rank) {
    const Rows rows = rows_of_rank(rank);
    blocks = std::max(blocks, chunk_count(rows.end - rows.begin, kBlockRows));
  }
  const Size row_bytes = own_.features * own_.number_bytes();
  const Size dims = own_.projection.dims;
  std::vector<std::byte> leaving;
  for (Size block = 0; block < blocks; ++block) {
    const auto rows_in = [&](Size rows) {
      return Rows{std::min(block * kBlockRows, rows), std::min((block + 1) * kBlockRows, rows)};
    };
    const Rows from = rows_in(own_.rows);
    const Rows to = rows_in(there_.rows);
    const Size sent = from.end - from.begin;
    const Size received = to.end - to.begin;
    leaving.resize(at(sent * row_bytes));
    for (Size r = 0; r < sent; ++r) {
      own_.copy_stored(static_cast<PointId>(from.begin + r), leaving.data() + r * row_bytes);
    }
    pass(step, leaving.data(), sent * row_bytes, data_.get() + to.begin * row_bytes,
         received * row_bytes);
    const auto pass_numbers = [&]<typename Number>(const Number* own, Number* there, Size width) {
      const Size bytes = width * Size{sizeof(Number)};
      pass(step, reinterpret_cast<const std::byte*>(own + from.begin * width), sent * bytes,
           reinterpret_cast<std::byte*>(there + to.begin * width), received * bytes);
    };
    pass_numbers(own_.projection.coordinates, coordinates_.get(), dims);
    pass_numbers(own_.projection.squared_norms, squared_norms_.get(), 1);
  }
  return theirs;
}

template <typename Data>
void PassingPoints<Data>::pass(int step, const std::byte* leaving, Size leaving_bytes,
                               std::byte* arriving, Size arriving_bytes) {
  const int processes = processes_.size();
  // One message to a process, and one from another; all others are empty.
  const auto ends_of = [&](int rank, Size bytes) {
    std::vector<Size> ends(at(processes), 0);
    std::fill(ends.begin() + rank, ends.end(), bytes);
    return ends;
  };
  processes_.exchange(leaving,
                      ends_of((processes_.rank() - step + processes) % processes, leaving_bytes),
                      arriving, ends_of((processes_.rank() + step) % processes, arriving_bytes));
}

template class PassingPoints<float>;
template class PassingPoints<double>;

} // namespace acctsne
