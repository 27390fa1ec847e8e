// What the attraction asks of the kernels: P as forces/edges.cpp stores it, and passes over it.
#pragma once

#include "acctsne/types.hpp"
#include "kernels/variants.hpp"

namespace acctsne {

// Rows that share a window of near columns (forces/edges.cpp).
inline constexpr Size kEdgeBlockRows = 256;
inline constexpr Size kEdgeWindow = 65536;

// The first column of the window of the block that begins at `first_row`. Each file has a function
// of its own, as kernels may share none (docs/developing.md).
static constexpr Size edge_window(Size first_row, Size rows) {
  const Size centred = first_row - (kEdgeWindow - kEdgeBlockRows) / 2;
  const Size last = rows - kEdgeWindow;
  const Size window = centred < last ? centred : last;
  return window > 0 ? window : 0;
}

// P as forces/edges.cpp stores it. Values are half-precision numbers, to be divided by half_scale,
// if that is not zero, and Real otherwise.
template <typename Real>
struct EdgeView {
  Size rows;
  Real half_scale;
  const EdgeId* near_offsets;        // rows + 1, multiples of edge_lanes
  const std::uint16_t* near_columns; // counted from the window of the row's block
  const void* near_values;
  const EdgeId* far_offsets; // rows + 1, multiples of edge_lanes
  const PointId* far_columns;
  const void* far_values;
};

template <typename Real>
struct AttractiveKernels {
  // forces/attractive.cpp: force[i] = sum_j p_ij (y_i - y_j) / (1 + d^2) for the rows [begin, end)
  // of one block.
  using AttractiveRows = void (*)(int dims, const EdgeView<Real>& edges, const Real* points,
                                  Size begin, Size end, Real* force);
  ByDims<AttractiveRows> attractive_rows;

  // forces/attractive.cpp: sum_ij p_ij log(1 + d^2) over the rows [begin, end) of one block, the
  // part of KL that moves with Y.
  using CrossEntropyRows = double (*)(int dims, const EdgeView<Real>& edges, const Real* points,
                                      Size begin, Size end);
  ByDims<CrossEntropyRows> cross_entropy_rows;

  // forces/edges.cpp: values times scale as half-precision numbers; null where the instruction set
  // does not convert them. `count` is a multiple of edge_lanes.
  void (*to_half)(const Real* values, Size count, Real scale, std::uint16_t* halves);
  int edge_lanes; // of the vectors of the three above

  // forces/edges.cpp: the sum of p log p, where p > 0.
  double (*negative_entropy)(const Real* probabilities, Size count);
};

} // namespace acctsne
