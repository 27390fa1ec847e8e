// Sizes, ids, dimensions and the counters of seconds that every step shares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

namespace acctsne {

using Size = std::int64_t;    // counts of points, edges and tree nodes
using PointId = std::int32_t; // a point's row number; N < 2^31
using EdgeId = std::int64_t;  // a position in the edge arrays of P; edges can exceed 2^31
using MortonCode = std::uint64_t;

// A tree has up to two nodes a point, and their ids are as wide as the points'.
inline constexpr Size kMostPoints = Size{1} << 30;

// An index as containers take it.
constexpr std::size_t at(Size i) {
  return static_cast<std::size_t>(i);
}

// Embeddings of up to so many dimensions have code compiled for them, the tree among it. Those of
// more have kernels that take any number, and all pairs for their repulsion.
inline constexpr int kCompiledDims = 3;

// Stands for a number of dimensions that is known at run time only.
inline constexpr int kAnyDims = 0;

// Calls a macro with each precision and compiled dimension, for explicit instantiations.
#define ACCTSNE_FOR_REALS_AND_DIMS(Macro)                                                          \
  Macro(float, 1) Macro(float, 2) Macro(float, 3) Macro(double, 1) Macro(double, 2) Macro(double, 3)

// Calls body with the dimension as a compile-time constant.
template <typename Body>
decltype(auto) with_dims(int dims, Body&& body) {
  switch (dims) {
  case 1:
    return body(std::integral_constant<int, 1>{});
  case 2:
    return body(std::integral_constant<int, 2>{});
  case 3:
    return body(std::integral_constant<int, 3>{});
  default:
    throw std::invalid_argument("only 1, 2 and 3 dimensions are compiled");
  }
}

// Bits of a Morton code that each axis gets, which is also the deepest level of the tree: as many
// as fit 64 bits and a conversion to signed 32-bit integers.
template <int Dims>
inline constexpr int kMortonBits = Dims == 3 ? 21 : 31;

// Seconds spent in each step of the gradient loop, under the paper's names.
struct StepSeconds {
  double tree_building = 0;
  double summarization = 0;
  double attractive = 0;
  double repulsive = 0;
  double update = 0;
  double kl_divergence = 0;
  double relabel = 0;
};

} // namespace acctsne
