// Rows of data, dense or sparse, as the searches take them.
#pragma once

#include "acctsne/csr.hpp"
#include "bind/native_call.hpp"
#include "neighbors/points.hpp"

#include <limits>

namespace acctsne {

// Data of any strides, in float64, float32, float16 or bytes; nothing of it is copied.
struct DataRows : nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu> {
  using Array = nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu>;
  DataRows() = default;
  explicit DataRows(const Array& array) : Array(array) {}
};

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
  require(X.shape(0) <= at(kMostPoints), "too many samples");
  return {X.data(), static_cast<Size>(X.shape(0)), static_cast<Size>(X.shape(1)), {}, layout_of(X)};
}

template <typename Data>
void require_scale(double scale) {
  require(scale > 0 && scale <= double{std::numeric_limits<Data>::max()},
          "the scale is not a number of the data's precision");
}

// Rows of a dense matrix with their projection, as the searches take them.
struct DenseData {
  DataRows X;
  Input2<float> coordinates;
  Input1<double> squared_norms;
  double scale;

  template <typename Data>
  PointSet<Data> points() const {
    require_scale<Data>(scale);
    PointSet<Data> points = rows_of_data<Data>(X);
    points.projection = {coordinates.data(), static_cast<Size>(coordinates.shape(1)),
                         squared_norms.data(), scale};
    return points;
  }
};

// A sparse matrix, of float64 or float32, whose columns ascend within each row.
class SparseData {
public:
  using Values = std::variant<Input1<double>, Input1<float>>;
  SparseData(Input1<EdgeId> offsets, Input1<PointId> columns, Values values, Size features);

  bool is_double() const { return std::holds_alternative<Input1<double>>(values_); }
  Size features() const { return features_; }

  template <typename Data>
  CsrView<Data> rows() const {
    const auto* values = std::get_if<Input1<Data>>(&values_);
    require(values != nullptr, "data and queries differ in precision");
    return {{offsets_.data(), offsets_.shape(0)},
            {columns_.data(), columns_.shape(0)},
            {values->data(), values->shape(0)}};
  }

private:
  Input1<EdgeId> offsets_;
  Input1<PointId> columns_;
  Values values_;
  Size features_;
};

} // namespace acctsne

// An array of any numbers has a type without arguments; this one tells which they may be.
template <>
struct nanobind::detail::type_caster<acctsne::DataRows> {
  NB_TYPE_CASTER(acctsne::DataRows,
                 const_name("numpy.typing.NDArray[numpy.float64 | numpy.float32 | numpy.float16 | "
                            "numpy.uint8]"))

  bool from_python(handle source, std::uint32_t flags, cleanup_list* cleanup) noexcept {
    make_caster<acctsne::DataRows::Array> caster;
    if (!caster.from_python(source, flags, cleanup)) {
      return false;
    }
    value = acctsne::DataRows(caster.value);
    return true;
  }
};
