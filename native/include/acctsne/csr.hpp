// A sparse matrix in compressed sparse row form: row i holds edges [offsets[i], offsets[i + 1]).
#pragma once

#include "acctsne/types.hpp"

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

} // namespace acctsne
