// The frame of the data and principal components as Python functions.
#include "neighbors/frame.hpp"
#include "bind/data_rows.hpp"
#include "bind/processes.hpp"
#include "neighbors/principal_components.hpp"

#include <nanobind/stl/optional.h>

#include <cmath>

namespace acctsne {
namespace {

using OptionalAxes = std::optional<Input2<float>>;

// Calls body.template operator()<Data>() with what is computed with.
template <typename Body>
auto with_data(const DataRows& X, Body&& body) {
  return is_double(X) ? body.template operator()<double>() : body.template operator()<float>();
}

bool finite(const DataRows& X, int threads) {
  return with_data(X, [&]<typename Data>() {
    const PointSet<Data> rows = rows_of_data<Data>(X);
    bool all = false;
    run_native(threads, [&](ThreadTeam& team) { all = all_finite(rows, team); });
    return all;
  });
}

FrameRequest frame_request(Size samples, Size neighbors, std::optional<Size> axes) {
  require(samples >= 1 && neighbors >= 0, "no samples");
  require(!axes || *axes >= 1, "a frame without axes");
  return {samples, neighbors, axes};
}

// Scale, centre and axes, None for the features as they are.
using FrameTuple = std::tuple<double, Output<double>, std::optional<Output<float>>>;

FrameTuple to_python(Frame&& frame) {
  const auto features = static_cast<std::size_t>(frame.features());
  std::optional<Output<float>> axes;
  if (frame.axes > 0) {
    axes = to_numpy(std::move(frame.columns), {features, at(frame.axes)});
  }
  return {frame.origin.scale, to_numpy(std::move(frame.origin.centre), {features}), axes};
}

FrameTuple find(const DataRows& X, Size neighbors, std::optional<Size> axes, int threads) {
  return with_data(X, [&]<typename Data>() {
    const PointSet<Data> points = rows_of_data<Data>(X);
    frame_request(points.rows, neighbors, axes);
    Frame frame;
    run_native(threads,
               [&](ThreadTeam& team) { frame = find_frame(points, neighbors, axes, team); });
    return to_python(std::move(frame));
  });
}

FrameTuple find_of_sample(const DataRows& sample, Size samples, double largest, Size neighbors,
                          std::optional<Size> axes, int threads) {
  return with_data(sample, [&]<typename Data>() {
    const PointSet<Data> rows = rows_of_data<Data>(sample);
    const FrameRequest request = frame_request(samples, neighbors, axes);
    require(rows.rows >= 1 && std::isfinite(largest) && largest >= 0, "no sample");
    Frame frame;
    run_native(threads,
               [&](ThreadTeam& team) { frame = frame_of_sample(rows, largest, request, team); });
    return to_python(std::move(frame));
  });
}

std::tuple<Output<float>, Output<double>> project(const DataRows& X, double scale,
                                                  Input1<double> centre, const OptionalAxes& axes,
                                                  int threads) {
  return with_data(X, [&]<typename Data>() {
    const PointSet<Data> rows = rows_of_data<Data>(X);
    require_scale<Data>(scale);
    require(centre.shape(0) == X.shape(1) &&
                (!axes || (axes->shape(0) == X.shape(1) && axes->shape(1) >= 1)),
            "the frame does not fit the data");
    const Origin origin{scale, {centre.data(), centre.data() + centre.shape(0)}};
    const std::size_t dims = axes ? axes->shape(1) : X.shape(1);
    LargeArray<float> coordinates = make_large_array<float>(X.shape(0) * dims, threads);
    LargeArray<double> squared_norms = make_large_array<double>(X.shape(0), threads);
    run_native(threads, [&](ThreadTeam& team) {
      if (axes) {
        const MatrixView<float> view =
            matrix<float>(axes->data(), rows.features, static_cast<Size>(dims)).transposed();
        place_rows(rows, origin, &view, coordinates.get(), squared_norms.get(), team);
      } else {
        place_rows(rows, origin, nullptr, coordinates.get(), squared_norms.get(), team);
      }
    });
    return std::tuple(to_numpy(std::move(coordinates), {X.shape(0), dims}),
                      to_numpy(std::move(squared_norms), {X.shape(0)}));
  });
}

// Runs rows(team), which gives the CentredRows.
template <typename Rows>
Output<double> components_of(const Rows& rows, Size own, Size components, const OptionalAxes& axes,
                             int threads, Communicator& processes) {
  require(components >= 1, "no components");
  std::vector<double> found;
  run_native(threads, [&](ThreadTeam& team) {
    const std::unique_ptr<CentredRows> centred = rows(team);
    std::optional<MatrixView<float>> loadings;
    if (axes) {
      loadings = matrix<float>(axes->data(), static_cast<Size>(axes->shape(0)),
                               static_cast<Size>(axes->shape(1)));
    }
    found = principal_components(*centred, components, loadings ? &*loadings : nullptr, processes,
                                 team);
  });
  return to_numpy(std::move(found), {at(own), at(components)});
}

Output<double> components(const DataRows& X, Size components, int threads, const OptionalAxes& axes,
                          std::optional<Size> samples,
                          const std::optional<CommunicatorObject>& processes) {
  require(!axes || axes->shape(1) == X.shape(1), "the axes do not fit the data");
  return with_data(X, [&]<typename Data>() {
    const PointSet<Data> own = rows_of_data<Data>(X);
    return with_processes(processes, [&](Communicator& all) {
      const Size of_all = samples.value_or(own.rows);
      const Rows here = rows_of(all.rank(), all.size(), of_all);
      require(of_all >= 1 && here.end - here.begin == own.rows, "not the rows of this process");
      return components_of([&](ThreadTeam& team) { return centred_rows(own, of_all, all, team); },
                           own.rows, components, axes, threads, all);
    });
  });
}

template <typename Data>
Output<double> sparse_components(const SparseData& X, Size components, int threads) {
  const CsrView<Data> rows = X.rows<Data>();
  return components_of([&](ThreadTeam& team) { return centred_rows(rows, X.features(), team); },
                       rows.rows(), components, std::nullopt, threads, one_process);
}

} // namespace

void bind_frame(nb::module_& m) {
  m.attr("APPROXIMATE_AXES") = kApproximateAxes;
  m.attr("FEW_FEATURES") = kFewFeatures;
  m.def("all_finite", &finite, "X"_a.noconvert(), "threads"_a);
  m.def("find_frame", &find, "X"_a.noconvert(), "n_neighbors"_a, "n_axes"_a.none(), "threads"_a);
  m.def(
      "sampled_rows",
      [](Size samples, std::optional<Size> axes) {
        const SampledRows rows = sampled_rows(frame_request(samples, 0, axes));
        return std::tuple(rows.stop, rows.step);
      },
      "n_samples"_a, "n_axes"_a.none());
  m.def("frame_of_sample", &find_of_sample, "sample"_a.noconvert(), "n_samples"_a, "largest"_a,
        "n_neighbors"_a, "n_axes"_a.none(), "threads"_a);
  m.def("project", &project, "X"_a.noconvert(), "scale"_a, "centre"_a.noconvert(),
        "axes"_a.noconvert().none(), "threads"_a);
  m.def("principal_components", &components, "X"_a.noconvert(), "n_components"_a, "threads"_a,
        "axes"_a.noconvert().none() = nb::none(), "n_samples"_a.none() = nb::none(),
        "processes"_a.none() = nb::none());
  m.def(
      "sparse_principal_components",
      [](const SparseData& X, Size n, int threads) {
        const auto find = X.is_double() ? sparse_components<double> : sparse_components<float>;
        return find(X, n, threads);
      },
      "X"_a, "n_components"_a, "threads"_a);
}

} // namespace acctsne
