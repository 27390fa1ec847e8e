// A sparse matrix from Python's arrays, checked for what would crash.
#pragma once

#include "acctsne/csr.hpp"
#include "bind/native_call.hpp"

namespace acctsne {

// Square, with so many rows.
template <typename Real>
CsrView<Real> csr_of(Input1<EdgeId> offsets, Input1<PointId> columns, Input1<Real> values,
                     std::size_t rows) {
  require(rows >= 1 && offsets.shape(0) == rows + 1, "P and the layout differ in rows");
  require(static_cast<Size>(rows) <= kMostPoints, "too many points");
  const CsrView<Real> P{{offsets.data(), rows + 1},
                        {columns.data(), columns.shape(0)},
                        {values.data(), values.shape(0)}};
  require_sound(P);
  return P;
}

} // namespace acctsne
