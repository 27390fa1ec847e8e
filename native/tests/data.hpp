// What several test programs share: clouds of points, joint probabilities, and loops over the
// settings a test must cover.
#pragma once

#include "acctsne/csr.hpp"
#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "check.hpp"
#include "forces/edges.hpp"
#include "forces/map_view.hpp"
#include "kernels/dispatch.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace acctsne {

// Under the thread sanitizer, which looks for races and takes its time, only what can have some:
// many threads beside the one they are compared to, one number of processes, and the kernels of one
// level, which share nothing that those of another do not.
#ifdef __SANITIZE_THREAD__
inline constexpr bool kRacesOnly = true;
inline constexpr int kThreadCounts[] = {1, 8};
inline constexpr int kProcessCounts[] = {3};
#else
inline constexpr bool kRacesOnly = false;
inline constexpr int kThreadCounts[] = {1, 2, 3, 8};
inline constexpr int kProcessCounts[] = {2, 3, 4};
#endif

template <typename Real>
inline constexpr Real kEpsilon = std::numeric_limits<Real>::epsilon();

// Runs body() at every SIMD level of this machine, then returns to the level that was in use.
template <typename Body>
void for_levels(Body&& body) {
  const std::string before = kernels().level;
  for (const std::string& level : usable_levels()) {
    if (!kRacesOnly || level == before) {
      use_level(level);
      const check::Scope scope(level);
      body();
    }
  }
  use_level(before);
}

// Calls body.template operator()<Real>() for float and double.
template <typename Body>
void for_reals(Body&& body) {
  {
    const check::Scope scope("float");
    body.template operator()<float>();
  }
  const check::Scope scope("double");
  body.template operator()<double>();
}

// Calls body.template operator()<Real, Dims>() for float and double in each of the dimensions.
template <int... Dims, typename Body>
void for_reals_in(Body&& body) {
  for_reals([&]<typename Real>() {
    const auto run = [&]<int D>() {
      const check::Scope scope(std::to_string(D) + "-D");
      body.template operator()<Real, D>();
    };
    (run.template operator()<Dims>(), ...);
  });
}

// In those that the tree has.
template <typename Body>
void for_reals_and_dims(Body&& body) {
  for_reals_in<1, 2, 3>(body);
}

// In those and in more: some that fill no vector of any width, one that needs several.
template <typename Body>
void for_reals_and_any_dims(Body&& body) {
  for_reals_in<1, 2, 3, 4, 5, 10, 37>(body);
}

template <typename T>
bool same_bytes(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}
template <typename T>
bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
  return same_bytes(std::span<const T>(a), std::span<const T>(b));
}

template <typename T>
bool all_finite(std::span<const T> values) {
  return std::all_of(values.begin(), values.end(), [](T value) { return std::isfinite(value); });
}

enum class Cloud {
  uniform,
  clustered,
  all_equal,
  two_point,
  collinear,
  half_duplicated,
  outlier,
  huge,
  tiny,
  grid
};

inline constexpr Cloud kClouds[] = {
    Cloud::uniform,         Cloud::clustered, Cloud::all_equal, Cloud::two_point, Cloud::collinear,
    Cloud::half_duplicated, Cloud::outlier,   Cloud::huge,      Cloud::tiny,      Cloud::grid};

inline const char* name_of(Cloud cloud) {
  constexpr const char* kNames[] = {
      "uniform",         "clustered", "all equal", "two points", "collinear",
      "half duplicated", "outlier",   "huge",      "tiny",       "grid"};
  return kNames[static_cast<std::size_t>(cloud)];
}

// `count` points, row-major, about 100 units across unless the cloud's nature says otherwise.
template <typename Real>
std::vector<Real> make_cloud(Cloud cloud, Size count, int dims, std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-50, 50);
  std::normal_distribution<double> normal;
  std::vector<double> points(at(count * dims));
  for (double& value : points) {
    value = uniform(random);
  }
  const auto for_points = [&](auto&& change) {
    for (Size i = 0; i < count; ++i) {
      for (int axis = 0; axis < dims; ++axis) {
        change(i, axis, points[at(i * dims + axis)]);
      }
    }
  };
  switch (cloud) {
  case Cloud::uniform:
    break;
  case Cloud::clustered: {
    constexpr Size kClusters = 10;
    const std::vector<double> centres = make_cloud<double>(Cloud::uniform, kClusters, dims, 99);
    for_points([&](Size i, int axis, double& value) {
      value = centres[at(i % kClusters * dims + axis)] + 2 * normal(random);
    });
    break;
  }
  case Cloud::all_equal:
    for_points([&](Size, int axis, double& value) { value = 3.7 - axis; });
    break;
  case Cloud::two_point:
    for_points([&](Size i, int axis, double& value) { value = i % 2 == 0 ? 1.25 : -7.5 - axis; });
    break;
  case Cloud::collinear:
    for_points([&](Size i, int axis, double& value) {
      value = points[at(i * dims)] * (axis == 0 ? 1.0 : 0.5 * axis);
    });
    break;
  case Cloud::half_duplicated:
    for_points(
        [&](Size i, int axis, double& value) { value = points[at((i - i % 2) * dims + axis)]; });
    break;
  case Cloud::outlier:
    for_points([&](Size i, int, double& value) { value = i == count / 2 ? 1e6 : value; });
    break;
  case Cloud::huge:
    for_points([&](Size, int, double& value) { value *= 1e30; });
    break;
  case Cloud::tiny:
    for_points([&](Size, int, double& value) { value *= 1e-30; });
    break;
  case Cloud::grid: {
    const double side = std::ceil(std::pow(static_cast<double>(count), 1.0 / dims) - 1e-9);
    for_points([&](Size i, int axis, double& value) {
      const double row = std::floor(static_cast<double>(i) / std::pow(side, axis));
      value = std::fmod(row, side) * (100 / side);
    });
    break;
  }
  }
  return {points.begin(), points.end()};
}

// The squared distance of two points, in double.
template <typename Real>
double squared(const Real* a, const Real* b, int dims) {
  double sum = 0;
  for (int axis = 0; axis < dims; ++axis) {
    const double difference = static_cast<double>(a[axis]) - static_cast<double>(b[axis]);
    sum += difference * difference;
  }
  return sum;
}

template <int Dims, typename Real>
Bounds<Real> map_of(const std::vector<Real>& points) {
  return {points.data(), static_cast<Size>(points.size()) / Dims, Dims};
}

// A symmetric matrix that sums to 1: rows in five groups, each naming `neighbors` rows of its own
// group with random weights.
template <typename Real>
Csr<Real> make_joint(Size rows, Size neighbors, std::uint64_t seed = 2) {
  constexpr Size kGroups = 5;
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> weight(0.1, 1);
  std::uniform_int_distribution<Size> member(0, (rows - 1) / kGroups);
  std::vector<std::map<Size, double>> dense(at(rows));
  double sum = 0;
  for (Size i = 0; i < rows; ++i) {
    for (Size e = 0; e < neighbors; ++e) {
      const Size j = member(random) * kGroups + i % kGroups;
      if (j != i && j < rows) {
        const double w = weight(random);
        dense[at(i)][j] += w;
        dense[at(j)][i] += w;
        sum += 2 * w;
      }
    }
  }
  Csr<Real> joint;
  joint.offsets.push_back(0);
  for (const std::map<Size, double>& row : dense) {
    for (const auto& [column, value] : row) {
      joint.columns.push_back(static_cast<PointId>(column));
      joint.values.push_back(static_cast<Real>(value / sum));
    }
    joint.offsets.push_back(static_cast<EdgeId>(joint.columns.size()));
  }
  return joint;
}

// P in the form that the attraction reads, its points in their own order.
template <typename Real>
Edges<Real> edges_of(const Csr<Real>& P, bool half = false) {
  std::vector<PointId> order(at(P.view().rows()));
  std::iota(order.begin(), order.end(), PointId{0});
  Edges<Real> edges;
  ThreadTeam team(1);
  MatrixRows<Real> rows(P.view());
  edges.build(rows, order, half, team);
  return edges;
}

} // namespace acctsne
