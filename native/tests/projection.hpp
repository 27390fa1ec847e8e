// What tests of the neighbour searches share: data, and its projection as the caller of a search is
// to provide it.
#pragma once

#include "data.hpp"
#include "neighbors/points.hpp"

#include <numeric>
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

// Scale and centre of data, and random orthonormal axes, a third as many as there are features if
// those are many.
struct Frame {
  Size dims;
  double scale;
  std::vector<double> center;
  std::vector<double> axes; // one after the other
};

inline std::vector<double> random_axes(Size features, Size dims) {
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal;
  std::vector<double> axes(at(features * dims)); // one after the other
  for (Size d = 0; d < dims; ++d) {
    double* axis = axes.data() + d * features;
    std::generate_n(axis, features, [&] { return normal(random); });
    for (Size e = 0; e < d; ++e) {
      const double* other = axes.data() + e * features;
      const double along = std::inner_product(axis, axis + features, other, 0.0);
      std::transform(axis, axis + features, other, axis,
                     [along](double a, double b) { return a - along * b; });
    }
    const double norm = std::sqrt(std::inner_product(axis, axis + features, axis, 0.0));
    std::transform(axis, axis + features, axis, [norm](double a) { return a / norm; });
  }
  return axes;
}

template <typename Data>
Frame frame_of(const std::vector<Data>& data, Size features) {
  const Size rows = static_cast<Size>(data.size()) / features;
  double largest = 0;
  for (const Data value : data) {
    largest = std::max(largest, std::abs(static_cast<double>(value)));
  }
  Frame frame;
  const bool ordinary = largest == 0 || (largest >= 1e-12 && largest <= 1e12);
  const double most = std::numeric_limits<Data>::max_exponent - 2;
  frame.scale = ordinary ? 1 : std::exp2(std::min(-std::floor(std::log2(largest)), most));
  frame.center.assign(at(features), 0.0);
  for (std::size_t i = 0; i < data.size(); ++i) {
    frame.center[i % at(features)] +=
        static_cast<double>(data[i]) * frame.scale / static_cast<double>(rows);
  }
  frame.dims = features > 24 ? features / 3 : features;
  frame.axes = random_axes(features, frame.dims);
  return frame;
}

// Rows in a frame.
template <typename Data>
struct Projected {
  Projected(const std::vector<Data>& data, Size features, const Frame& frame)
      : data_(data), features_(features), dims_(frame.dims), scale_(frame.scale) {
    for (Size i = 0; i < rows(); ++i) {
      std::vector<double> moved(at(features));
      for (Size f = 0; f < features; ++f) {
        moved[at(f)] =
            static_cast<double>(data[at(i * features + f)]) * frame.scale - frame.center[at(f)];
      }
      squared_norms_.push_back(std::inner_product(moved.begin(), moved.end(), moved.begin(), 0.0));
      for (Size d = 0; d < dims_; ++d) {
        coordinates_.push_back(static_cast<float>(
            dims_ == features ? moved[at(d)]
                              : std::inner_product(moved.begin(), moved.end(),
                                                   frame.axes.begin() + d * features, 0.0)));
      }
    }
  }
  Size rows() const { return static_cast<Size>(data_.size()) / features_; }
  PointSet<Data> points() const {
    return {data_.data(),
            rows(),
            features_,
            {coordinates_.data(), dims_, squared_norms_.data(), scale_}};
  }

private:
  const std::vector<Data>& data_;
  Size features_;
  Size dims_;
  double scale_;
  std::vector<float> coordinates_;
  std::vector<double> squared_norms_;
};

} // namespace acctsne
