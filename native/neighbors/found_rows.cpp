// What a search has found, on its way to the arrays that are wanted.
#include "neighbors/found_rows.hpp"

#include <algorithm>

namespace acctsne {

void FoundRows::hold(Rows cells) {
  held_ = places_of(cells, cells_);
  if (alone()) {
    return;
  }
  const std::size_t stored = at((held_.end - held_.begin) * neighbors_);
  indices_.resize(stored);
  std::visit([&]<typename Real>(Real*) { std::get<std::vector<Real>>(distances_).resize(stored); },
             wanted_.squared_distances);
}

template <typename Distance>
void FoundRows::write(Size place, const std::vector<Candidate<Distance>>& found) {
  const auto put = [&]<typename Real>(Real* wanted) {
    PointId* indices = alone() ? wanted_.indices : indices_.data();
    Real* distances = alone() ? wanted : std::get<std::vector<Real>>(distances_).data();
    write_nearest(found, neighbors_, indices + start(place), distances + start(place));
  };
  std::visit(put, wanted_.squared_distances);
}

void FoundRows::send_home(Size parts) {
  if (alone()) {
    return;
  }
  const Size count = held_.end - held_.begin;
  for (Size part = 0; part < parts; ++part) {
    const Rows places{held_.begin + count * part / parts, held_.begin + count * (part + 1) / parts};
    std::visit([&](auto* wanted) { send_home(places, wanted); }, wanted_.squared_distances);
  }
}

template <typename Real>
void FoundRows::send_home(Rows places, Real* wanted) {
  const Size k = neighbors_;
  const Owners owners(processes_.size(), cells_.rows());
  std::vector<std::vector<Size>> to(at(processes_.size()));
  for (Size place = places.begin; place < places.end; ++place) {
    to[owners.of(cells_.row(place))].push_back(place);
  }
  std::vector<PointId> rows;
  std::vector<PointId> indices;
  std::vector<Real> distances;
  std::vector<Size> row_ends;
  std::vector<Size> entry_ends;
  for (const std::vector<Size>& theirs : to) {
    for (const Size place : theirs) {
      rows.push_back(cells_.row(place));
      const auto held_indices = indices_.begin() + start(place);
      indices.insert(indices.end(), held_indices, held_indices + k);
      const auto held_distances = std::get<std::vector<Real>>(distances_).begin() + start(place);
      distances.insert(distances.end(), held_distances, held_distances + k);
    }
    row_ends.push_back(static_cast<Size>(rows.size()));
    entry_ends.push_back(static_cast<Size>(indices.size()));
  }
  rows = deliver(processes_, rows, row_ends);
  indices = deliver(processes_, indices, entry_ends);
  distances = deliver(processes_, distances, entry_ends);
  const Rows own = rows_of(processes_.rank(), processes_.size(), cells_.rows());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const Size from = static_cast<Size>(r) * k;
    const Size row = (rows[r] - own.begin) * k;
    std::copy_n(indices.begin() + from, k, wanted_.indices + row);
    std::copy_n(distances.begin() + from, k, wanted + row);
  }
}

template void FoundRows::write(Size, const std::vector<Candidate<float>>&);
template void FoundRows::write(Size, const std::vector<Candidate<double>>&);

} // namespace acctsne
