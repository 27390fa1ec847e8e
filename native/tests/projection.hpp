// What tests of the neighbour searches share: data, and its projection on poor axes.
#pragma once

#include "data.hpp"
#include "linear/subspace.hpp"
#include "neighbors/frame.hpp"

#include <optional>
#include <random>

namespace acctsne {

template <typename Data>
std::vector<Data> normal_data(Size rows, Size features, double scale = 1, double offset = 0,
                              std::uint64_t seed = 11) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<Data> data(at(rows * features));
  for (Data& value : data) {
    value = static_cast<Data>(offset + scale * normal(random));
  }
  return data;
}

template <typename Data>
PointSet<Data> rows_of_data(const std::vector<Data>& data, Size features) {
  return {data.data(), static_cast<Size>(data.size()) / features, features, {}};
}

// The frame of data with axes that say nothing of it, a third as many as there are features if
// those are many: results must not depend on them.
template <typename Data>
Frame poor_frame(const std::vector<Data>& data, Size features) {
  ThreadTeam team(1);
  Frame frame = find_frame(rows_of_data(data, features), 1, {}, team);
  frame.axes = features > 24 ? features / 3 : 0;
  frame.columns.resize(at(features * frame.axes));
  const std::vector<double> axes = random_basis(frame.axes, features, team);
  for (Size a = 0; a < frame.axes; ++a) {
    for (Size f = 0; f < features; ++f) {
      frame.columns[at(f * frame.axes + a)] = static_cast<float>(axes[at(a * features + f)]);
    }
  }
  return frame;
}

// Rows in a frame.
template <typename Data>
class Projected {
public:
  Projected(const std::vector<Data>& data, Size features, const Frame& frame)
      : points_(rows_of_data(data, features)) {
    ThreadTeam team(1);
    projected_.emplace(points_, frame, team);
    points_.projection = projected_->view();
  }
  Size rows() const { return points_.rows; }
  const PointSet<Data>& points() const { return points_; }

private:
  PointSet<Data> points_;
  std::optional<ProjectedRows> projected_;
};

} // namespace acctsne
