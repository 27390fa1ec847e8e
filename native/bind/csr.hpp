// A sparse matrix from Python's arrays, checked for what would crash.
#pragma once

#include "acctsne/csr.hpp"
#include "bind/native_call.hpp"

#include <algorithm>

namespace acctsne {

// Square, with so many rows.
template <typename Real>
CsrView<Real> csr_of(Input1<EdgeId> offsets, Input1<PointId> columns, Input1<Real> values,
                     std::size_t rows) {
  require(rows >= 1 && offsets.shape(0) == rows + 1, "P and the layout differ in rows");
  const EdgeId* first = offsets.data();
  const auto edges = static_cast<EdgeId>(columns.shape(0));
  require(first[0] == 0 && first[rows] == edges && values.shape(0) == columns.shape(0) &&
              std::is_sorted(first, first + rows + 1),
          "P's offsets do not fit its columns");
  require(std::all_of(columns.data(), columns.data() + edges,
                      [rows](PointId j) { return j >= 0 && static_cast<std::size_t>(j) < rows; }),
          "a column of P is out of range");
  return {{offsets.data(), rows + 1},
          {columns.data(), columns.shape(0)},
          {values.data(), values.shape(0)}};
}

} // namespace acctsne
