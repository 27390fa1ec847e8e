// New points into a map. Every new point runs through all its iterations by itself: nothing is
// shared but the map, its field of repulsion and the neighbours' places.
#include "optimize/place.hpp"

#include "forces/repulsive.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace acctsne {
namespace {

// New points of one task: a millisecond or so of work.
constexpr Size kPointsPerChunk = 32;

// A point has arrived after so many steps in a row, in units of the map, that are shorter than
// this: what is left of its way cannot be seen (benchmarks/new_points.py, docs/tuning.md).
constexpr int kShortSteps = 5;
constexpr double kShort = 1e-4;

// The pull of so many neighbours is summed in Real; such sums are added in double, lest millions
// of neighbours lose what comes last.
constexpr Size kPartNeighbors = 4096;

#include "kernels/step_rule-inl.hpp"

// Zeros, one an axis.
template <typename Real, int Dims>
auto zeros([[maybe_unused]] int dims) {
  if constexpr (Dims == kAnyDims) {
    return std::vector<Real>(at(dims));
  } else {
    return std::array<Real, Dims>{};
  }
}

template <typename Real, int Dims>
void place_point(const PlacementRequest<Real>& request, const RepulsiveField<Real>& field,
                 const std::vector<Real>& map, Size point) {
  const OutputKernel& output_kernel = request.options.output_kernel;
  const Phase& phase = request.phase;
  const double unit = output_kernel.unit();
  const auto factor = static_cast<Real>(4 * output_kernel.gradient_scale() / unit);
  const auto max_step = static_cast<Real>(phase.max_step / unit);
  const auto shortest = static_cast<Real>(kShort / unit);
  const auto rate = static_cast<Real>(phase.learning_rate.first);
  const auto momentum = static_cast<Real>(phase.momentum.value());
  const auto exaggeration = static_cast<Real>(phase.exaggeration.first);
  const PointId* neighbors = request.neighbors + point * request.k;
  const Real* weights = request.weights + point * request.k;

  const int dims = Dims == kAnyDims ? request.dims : Dims;
  Real* position = request.positions + point * dims;
  const auto axes = static_cast<std::size_t>(dims);
  auto u = zeros<Real, Dims>(dims);
  auto update = u;
  auto difference = u;
  auto part = u;
  auto push = u;
  auto pull = zeros<double, Dims>(dims);
  for (std::size_t axis = 0; axis < axes; ++axis) {
    u[axis] = static_cast<Real>(static_cast<double>(position[axis]) / unit);
  }
  int short_steps = 0;
  Real gain = 1;
  for (Size iteration = 0; iteration < phase.iterations; ++iteration) {
    std::fill(pull.begin(), pull.end(), 0.0);
    for (Size begin = 0; begin < request.k; begin += kPartNeighbors) {
      std::fill(part.begin(), part.end(), Real(0));
      const Size end = std::min(begin + kPartNeighbors, request.k);
      for (Size e = begin; e < end; ++e) {
        const Real* other = map.data() + Size{neighbors[e]} * dims;
        Real one_plus_d2 = 1;
        for (std::size_t axis = 0; axis < axes; ++axis) {
          difference[axis] = u[axis] - other[axis];
          one_plus_d2 += difference[axis] * difference[axis];
        }
        const Real weight = weights[e] / one_plus_d2;
        for (std::size_t axis = 0; axis < axes; ++axis) {
          part[axis] += weight * difference[axis];
        }
      }
      for (std::size_t axis = 0; axis < axes; ++axis) {
        pull[axis] += static_cast<double>(part[axis]);
      }
    }
    const double z = std::max(field.at(u.data(), push.data()), 1e-30);
    Real length2 = 0;
    Real turn = 0;
    Real growth = 0;
    for (std::size_t axis = 0; axis < axes; ++axis) {
      const Real gradient = factor * (exaggeration * static_cast<Real>(pull[axis]) -
                                      static_cast<Real>(static_cast<double>(push[axis]) / z));
      const Real last = update[axis];
      update[axis] = next_step(momentum, last, rate, gain * gradient);
      turn += update[axis] * last;
      growth += update[axis] * update[axis] - last * last;
      length2 += update[axis] * update[axis];
    }
    gain = HeavyBall<Real>::gain(gain, turn, growth);
    const Real shorter = shortened(length2, max_step);
    for (std::size_t axis = 0; axis < axes; ++axis) {
      update[axis] *= shorter;
      u[axis] += update[axis];
    }
    short_steps = length2 < shortest * shortest ? short_steps + 1 : 0;
    if (short_steps == kShortSteps) {
      break;
    }
  }
  for (std::size_t axis = 0; axis < axes; ++axis) {
    position[axis] = static_cast<Real>(static_cast<double>(u[axis]) * unit);
  }
}

template <typename Real, int Dims>
void place_in(const PlacementRequest<Real>& request, ThreadTeam& team) {
  std::vector<Real> map(request.map, request.map + request.map_points * request.dims);
  const double unit = request.options.output_kernel.unit();
  for (Real& value : map) {
    value = static_cast<Real>(static_cast<double>(value) / unit);
  }
  const Bounds<Real> bounds(map.data(), request.map_points, request.dims);
  const auto field = make_field(request.dims, bounds.map(), request.options, team);
  parallel_for(team, request.count, kPointsPerChunk, [&](Size begin, Size end, int worker) {
    for (Size point = begin; point < end && !team.should_stop(worker); ++point) {
      place_point<Real, Dims>(request, *field, map, point);
    }
    if (request.done != nullptr) {
      request.done->fetch_add(end - begin, std::memory_order_relaxed);
    }
  });
}

} // namespace

template <typename Real>
void place_points(const PlacementRequest<Real>& request, ThreadTeam& team) {
  if (request.dims > kCompiledDims) {
    return place_in<Real, kAnyDims>(request, team);
  }
  with_dims(request.dims, [&](auto d) { place_in<Real, d()>(request, team); });
}

template void place_points(const PlacementRequest<float>&, ThreadTeam&);
template void place_points(const PlacementRequest<double>&, ThreadTeam&);

} // namespace acctsne
