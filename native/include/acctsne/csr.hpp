// A sparse matrix in compressed sparse row form: row i holds edges [offsets[i], offsets[i + 1]).
#pragma once

#include "acctsne/require.hpp"
#include "acctsne/types.hpp"

#include <algorithm>
#include <span>
#include <vector>

namespace acctsne {

template <typename Real>
struct CsrView {
  std::span<const EdgeId> offsets; // rows() + 1
  std::span<const PointId> columns;
  std::span<const Real> values;

  Size rows() const { return static_cast<Size>(offsets.size()) - 1; }
};

template <typename Real>
struct Csr {
  std::vector<EdgeId> offsets;
  std::vector<PointId> columns;
  std::vector<Real> values;

  CsrView<Real> view() const { return {offsets, columns, values}; }
};

// Refuses a matrix that is not square, or whose parts do not fit each other.
template <typename Real>
void require_sound(const CsrView<Real>& P) {
  const auto& [offsets, columns, values] = P;
  require(!offsets.empty() && offsets.front() == 0 &&
              offsets.back() == static_cast<EdgeId>(columns.size()) &&
              values.size() == columns.size() && std::ranges::is_sorted(offsets),
          "P's offsets do not fit its columns");
  require(std::ranges::all_of(columns, [&P](PointId j) { return j >= 0 && j < P.rows(); }),
          "a column of P is out of range");
}

} // namespace acctsne
