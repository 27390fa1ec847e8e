// One row of P = (C + C^T) / sum, from a row of C and one of C^T.
#pragma once

#include "acctsne/types.hpp"
#include "affinities/conditional.hpp"
#include "affinities/joint_rows.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace acctsne {

// The sum of C is kept for so many edges at a time.
inline constexpr Size kSummedEdges = 65536;

// An edge of C^T: its column there, and its value.
template <typename Real>
struct TransposedEdge {
  PointId column;
  Real value;
};

template <typename Real>
class MergedRow {
public:
  // Adds row `own` of C and the given one of C^T, whose columns ascend, times scale; it is row
  // `row` of P, for as long as this is not asked for another. Without a branch on which of them is
  // next, which nothing could predict.
  JointRow<Real> merge(const Conditional<Real>& C, Size own, Size row,
                       std::span<const TransposedEdge<Real>> others, double scale) {
    const PointId* mine = C.columns_of(own);
    const PointId* mine_end = mine + C.neighbors;
    const Real* value = C.values_of(own);
    const TransposedEdge<Real>* other = others.data();
    const TransposedEdge<Real>* other_end = other + others.size();
    const std::size_t most = at(C.neighbors) + others.size();
    if (columns_.size() < most) {
      columns_.resize(most);
      values_.resize(most);
    }
    PointId* columns = columns_.data();
    Real* values = values_.data();
    std::size_t count = 0;
    while (mine != mine_end && other != other_end) {
      const bool is_mine = *mine <= other->column;
      const bool is_theirs = other->column <= *mine;
      columns[count] = std::min(*mine, other->column);
      values[count] = value_if(is_mine, *value) + value_if(is_theirs, other->value);
      ++count;
      mine += is_mine;
      value += is_mine;
      other += is_theirs;
    }
    for (; mine != mine_end; ++mine, ++value, ++count) {
      columns[count] = *mine;
      values[count] = *value;
    }
    for (; other != other_end; ++other, ++count) {
      columns[count] = other->column;
      values[count] = other->value;
    }
    for (std::size_t e = 0; e < count; ++e) {
      values[e] = static_cast<Real>((C.equal ? 1.0 : static_cast<double>(values[e])) * scale);
    }
    return {row, {columns, count}, {values, count}};
  }

private:
  // The value, or zero. By its bits: compilers would branch.
  static Real value_if(bool condition, Real value) {
    using Bits = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
    return std::bit_cast<Real>(std::bit_cast<Bits>(value) & (Bits{0} - Bits{condition}));
  }

  std::vector<PointId> columns_;
  std::vector<Real> values_;
};

} // namespace acctsne
