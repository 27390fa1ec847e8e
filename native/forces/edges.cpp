// P in the form that the attraction reads.
//
// Rows come in blocks of kEdgeBlockRows. A block has a window of 65536 columns around it; edges
// into the window ("near") store their column in 16 bits, counted from the window's start, the rest
// ("far") in 32. After relabelling by Morton order nearly all edges are near. Each row's part is
// padded with edges of weight zero to a whole number of vectors.
//
// Half precision keeps 11 bits of each p, scaled so that the largest is near the format's upper
// end: p down to 1e-9 of the largest keeps them all. MNIST-70k: see docs/performance.md for time
// and exact KL with and without.
//
// 1. Count each row's near and far edges; running sums give the offsets.
// 2. Fill, row by row, in the order of P.
#include "forces/edges.hpp"

#include "kernels/dispatch.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace acctsne {
namespace {

// The power of two that brings the largest value to between 2^14 and 2^15, below half precision's
// 65504.
template <typename Real>
Real half_scale(const CsrView<Real>& P, ThreadTeam& team) {
  constexpr Size kGrain = 65536;
  const Size edges = static_cast<Size>(P.values.size());
  std::vector<Real> largest(static_cast<std::size_t>(chunk_count(edges, kGrain)), Real(0));
  parallel_for(team, edges, kGrain, [&](Size begin, Size end) {
    Real most = 0;
    for (Size e = begin; e < end; ++e) {
      most = std::max(most, P.values[static_cast<std::size_t>(e)]);
    }
    largest[static_cast<std::size_t>(begin / kGrain)] = most;
  });
  Real most = 0;
  for (const Real value : largest) {
    most = std::max(most, value);
  }
  return most > 0 ? std::exp2(14 - std::floor(std::log2(most))) : Real(1);
}

} // namespace

template <typename Real>
void Edges<Real>::build(const CsrView<Real>& P, std::span<const PointId> order, bool half,
                        ThreadTeam& team) {
  rows_ = P.rows();
  const auto n = static_cast<std::size_t>(rows_);
  label_.resize(n);
  parallel_for(team, rows_, 16384, [&](Size begin, Size end) {
    for (Size i = begin; i < end; ++i) {
      label_[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] =
          static_cast<PointId>(i);
    }
  });

  const EdgeId lanes = kernels().of<Real>().lanes;
  const auto padded = [lanes](EdgeId count) { return (count + lanes - 1) / lanes * lanes; };
  // Calls visit(column, value, near) for the edges of new row i.
  const auto visit_row = [&](Size i, auto&& visit) {
    const Size window = edge_window(i / kEdgeBlockRows * kEdgeBlockRows, rows_);
    const auto old_row = static_cast<std::size_t>(order[static_cast<std::size_t>(i)]);
    for (EdgeId e = P.offsets[old_row]; e < P.offsets[old_row + 1]; ++e) {
      const auto edge = static_cast<std::size_t>(e);
      const PointId column = label_[static_cast<std::size_t>(P.columns[edge])];
      const Size offset = column - window;
      visit(column, P.values[edge], offset >= 0 && offset < kEdgeWindow);
    }
  };

  near_offsets_.assign(n + 1, 0);
  far_offsets_.assign(n + 1, 0);
  parallel_for(team, rows_, kEdgeBlockRows, [&](Size begin, Size end) {
    for (Size i = begin; i < end; ++i) {
      EdgeId near = 0;
      EdgeId far = 0;
      visit_row(i, [&](PointId, Real, bool is_near) { ++(is_near ? near : far); });
      near_offsets_[static_cast<std::size_t>(i + 1)] = padded(near);
      far_offsets_[static_cast<std::size_t>(i + 1)] = padded(far);
    }
  });
  for (std::size_t i = 0; i < n; ++i) {
    near_offsets_[i + 1] += near_offsets_[i];
    far_offsets_[i + 1] += far_offsets_[i];
  }
  const auto to_half = half ? kernels().of<Real>().to_half : nullptr;
  half_scale_ = to_half != nullptr ? half_scale(P, team) : Real(0);
  near_columns_.resize(near_offsets_[n]);
  far_columns_.resize(far_offsets_[n]);
  for (auto [values, size] :
       {std::pair{&near_values_, near_offsets_[n]}, std::pair{&far_values_, far_offsets_[n]}}) {
    if (half_scale_ != Real(0)) {
      values->half.resize(size);
    } else {
      values->full.resize(size);
    }
  }

  std::vector<std::vector<Real>> scratch(static_cast<std::size_t>(team.size()));
  team.for_chunks(chunk_count(rows_, kEdgeBlockRows), [&](Size block, int worker) {
    const Size block_begin = block * kEdgeBlockRows;
    const Size block_end = std::min(block_begin + kEdgeBlockRows, rows_);
    const Size window = edge_window(block_begin, rows_);
    std::vector<Real>& row_values = scratch[static_cast<std::size_t>(worker)];
    for (Size i = block_begin; i < block_end; ++i) {
      const auto row = static_cast<std::size_t>(i);
      const auto near_begin = static_cast<std::size_t>(near_offsets_[row]);
      const auto far_begin = static_cast<std::size_t>(far_offsets_[row]);
      const auto near_count = static_cast<std::size_t>(near_offsets_[row + 1]) - near_begin;
      const auto far_count = static_cast<std::size_t>(far_offsets_[row + 1]) - far_begin;
      // Padding: the point itself, with weight zero.
      row_values.assign(near_count + far_count, Real(0));
      std::fill_n(near_columns_.data.get() + near_begin, near_count,
                  static_cast<std::uint16_t>(i - window));
      std::fill_n(far_columns_.data.get() + far_begin, far_count, static_cast<PointId>(i));
      std::size_t near = 0;
      std::size_t far = 0;
      visit_row(i, [&](PointId column, Real value, bool is_near) {
        if (is_near) {
          near_columns_.data[near_begin + near] = static_cast<std::uint16_t>(column - window);
          row_values[near++] = value;
        } else {
          far_columns_.data[far_begin + far] = column;
          row_values[near_count + far++] = value;
        }
      });
      if (half_scale_ != Real(0)) {
        to_half(row_values.data(), static_cast<Size>(near_count), half_scale_,
                near_values_.half.data.get() + near_begin);
        to_half(row_values.data() + near_count, static_cast<Size>(far_count), half_scale_,
                far_values_.half.data.get() + far_begin);
      } else {
        std::copy_n(row_values.data(), near_count, near_values_.full.data.get() + near_begin);
        std::copy_n(row_values.data() + near_count, far_count,
                    far_values_.full.data.get() + far_begin);
      }
    }
  });
}
template <typename Real>
EdgeView<Real> Edges<Real>::view() const {
  const auto pointer = [this](const Values& values) -> const void* {
    return half_scale_ != Real(0) ? static_cast<const void*>(values.half.data.get())
                                  : static_cast<const void*>(values.full.data.get());
  };
  return {rows_,
          half_scale_,
          near_offsets_.data(),
          near_columns_.data.get(),
          pointer(near_values_),
          far_offsets_.data(),
          far_columns_.data.get(),
          pointer(far_values_)};
}

template class Edges<float>;
template class Edges<double>;

} // namespace acctsne
