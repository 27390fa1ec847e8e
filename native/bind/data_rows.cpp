// Rows of data as Python types, checked for what would crash when they are made.
#include "bind/data_rows.hpp"

#include <algorithm>

namespace acctsne {

SparseData::SparseData(Input1<EdgeId> offsets, Input1<PointId> columns, Values values,
                       Size features)
    : offsets_(std::move(offsets)), columns_(std::move(columns)), values_(std::move(values)),
      features_(features) {
  const std::size_t stored = std::visit([](const auto& array) { return array.shape(0); }, values_);
  require(features >= 1 && offsets_.shape(0) >= 2 && columns_.shape(0) == stored, "no data");
  require(offsets_.shape(0) - 1 <= at(kMostPoints), "too many samples");
  const std::span<const EdgeId> starts(offsets_.data(), offsets_.shape(0));
  require(starts.front() == 0 && starts.back() == static_cast<EdgeId>(columns_.shape(0)) &&
              std::is_sorted(starts.begin(), starts.end()),
          "offsets do not fit the columns");
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    PointId before = -1;
    for (EdgeId e = starts[i]; e < starts[i + 1]; ++e) {
      const PointId column = columns_.data()[e];
      require(column > before && column < features, "columns are out of range or out of order");
      before = column;
    }
  }
}

void bind_data_rows(nb::module_& m) {
  nb::class_<DenseData>(m, "DenseData")
      .def(
          "__init__",
          [](DenseData* self, DataRows X, Input2<float> coordinates, Input1<double> squared_norms,
             double scale) {
            require(coordinates.shape(0) == X.shape(0) && squared_norms.shape(0) == X.shape(0) &&
                        coordinates.shape(1) >= 1,
                    "the projection does not fit the data");
            new (self)
                DenseData{std::move(X), std::move(coordinates), std::move(squared_norms), scale};
          },
          "X"_a.noconvert(), "coordinates"_a.noconvert(), "squared_norms"_a.noconvert(), "scale"_a);
  nb::class_<SparseData>(m, "SparseData")
      .def(nb::init<Input1<EdgeId>, Input1<PointId>, SparseData::Values, Size>(),
           "offsets"_a.noconvert(), "columns"_a.noconvert(), "values"_a.noconvert(),
           "n_features"_a);
}

} // namespace acctsne
