// Rows of data, dense or sparse, as the searches take them.
#pragma once

#include "acctsne/csr.hpp"
#include "bind/native_call.hpp"
#include "neighbors/points.hpp"

#include <algorithm>
#include <limits>

namespace acctsne {

// Data of any strides, in float64, float32, float16 or bytes; nothing of it is copied.
using DataRows = nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu>;

inline bool is_float(const DataRows& X, int bits) {
  return X.dtype() == nb::dlpack::dtype{static_cast<std::uint8_t>(nb::dlpack::dtype_code::Float),
                                        static_cast<std::uint8_t>(bits), 1};
}

// What is computed with: double for float64, float for all others.
inline bool is_double(const DataRows& X) {
  return is_float(X, 64);
}

inline RowLayout layout_of(const DataRows& X) {
  RowLayout layout;
  if (is_float(X, 16)) {
    layout.stored = Stored::half;
  } else if (X.dtype() == nb::dtype<std::uint8_t>()) {
    layout.stored = Stored::byte;
  } else {
    require(is_float(X, 32) || is_float(X, 64), "data must be float64, float32, float16 or uint8");
  }
  const auto bytes = static_cast<Size>(X.itemsize());
  layout.packed = false;
  layout.number_stride = X.stride(1) * bytes;
  layout.row_stride = X.stride(0) * bytes;
  return layout;
}

// Rows without a projection; there may be none, of features that there must be.
template <typename Data>
PointSet<Data> rows_of_data(const DataRows& X) {
  require(X.shape(1) >= 1, "no data");
  require(X.shape(0) < std::numeric_limits<PointId>::max() / 2, "too many samples");
  return {X.data(), static_cast<Size>(X.shape(0)), static_cast<Size>(X.shape(1)), {}, layout_of(X)};
}

template <typename Data>
void require_scale(double scale) {
  require(scale > 0 && scale <= double{std::numeric_limits<Data>::max()},
          "the scale is not a number of the data's precision");
}

// Rows of a sparse matrix with so many columns, which must ascend within each row.
template <typename Data>
CsrView<Data> sparse_rows(Input1<EdgeId> offsets, Input1<PointId> columns, Input1<Data> values,
                          Size features) {
  const auto edges = static_cast<EdgeId>(columns.shape(0));
  require(offsets.shape(0) >= 2 && columns.shape(0) == values.shape(0), "no data");
  const std::span<const EdgeId> starts(offsets.data(), offsets.shape(0));
  require(starts.front() == 0 && starts.back() == edges &&
              std::is_sorted(starts.begin(), starts.end()),
          "offsets do not fit the columns");
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    PointId before = -1;
    for (EdgeId e = starts[i]; e < starts[i + 1]; ++e) {
      const PointId column = columns.data()[e];
      require(column > before && column < features, "columns are out of range or out of order");
      before = column;
    }
  }
  return {starts, {columns.data(), columns.shape(0)}, {values.data(), values.shape(0)}};
}

} // namespace acctsne
