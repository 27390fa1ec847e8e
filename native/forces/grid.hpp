// A grid of cubic B-spline coefficients, for step 6 on a grid.
#pragma once

#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"

#include <algorithm>
#include <vector>

namespace acctsne {

// [x][y], y contiguous: charges, then their potential.
template <typename Real>
class Grid {
public:
  // What it holds is undefined afterwards. Only more room than before is allocated.
  void resize(const Size (&nodes)[2], Size stride) {
    nodes_[0] = nodes[0];
    nodes_[1] = nodes[1];
    stride_ = stride;
    values_.resize(std::max(values_.size(), at(nodes[0] * stride)));
  }

  Size nodes(int axis) const { return nodes_[axis]; }
  Size stride() const { return stride_; } // from one x to the next, a multiple of the lanes
  Real* column(Size x) { return values_.data() + x * stride_; }
  const Real* column(Size x) const { return values_.data() + x * stride_; }

  void clear(ThreadTeam& team) {
    team.for_chunks(clear_chunks(), [&](Size chunk, int) { clear_chunk(chunk); });
  }
  // The same for a loop that has other chunks, too.
  Size clear_chunks() const { return chunk_count(nodes_[0], kColumnsPerChunk); }
  void clear_chunk(Size chunk) {
    const Size first = chunk * kColumnsPerChunk;
    const Size columns = std::min(kColumnsPerChunk, nodes_[0] - first);
    std::fill_n(column(first), columns * stride_, Real(0));
  }

private:
  static constexpr Size kColumnsPerChunk = 4; // few enough for the shares of many to be even

  Size nodes_[2] = {};
  Size stride_ = 0;
  std::vector<Real> values_;
};

} // namespace acctsne
