// The neighbour searches as Python functions.
#include "bind/data_rows.hpp"
#include "bind/native_call.hpp"
#include "bind/processes.hpp"
#include "neighbors/approximate.hpp"
#include "neighbors/exact.hpp"
#include "neighbors/sparse.hpp"

#include <algorithm>

namespace acctsne {
namespace {

template <typename Data>
PointSet<Data> point_set(const DataRows& X, Input2<float> coordinates, Input1<double> squared_norms,
                         double scale) {
  PointSet<Data> points = rows_of_data<Data>(X);
  require(coordinates.shape(0) == X.shape(0) && squared_norms.shape(0) == X.shape(0) &&
              coordinates.shape(1) >= 1,
          "the projection does not fit the data");
  require_scale<Data>(scale);
  points.projection = {coordinates.data(), static_cast<Size>(coordinates.shape(1)),
                       squared_norms.data(), scale};
  return points;
}

// Runs search(request, team) for so many queries; returns indices and squared distances.
template <typename Data, typename Real, typename Search>
nb::tuple run_search(const PointSet<Data>& points, Size queries, Size k, int threads,
                     const nb::object& progress, Communicator& processes, Search&& search) {
  const Rows own = rows_of(processes.rank(), processes.size(), queries);
  const auto rows = static_cast<std::size_t>(own.end - own.begin);
  const auto stored = rows * static_cast<std::size_t>(k);
  LargeArray<PointId> indices = make_large_array<PointId>(stored, threads);
  LargeArray<Real> distances = make_large_array<Real>(stored, threads);
  std::atomic<Size> done{0};
  PythonPoll poll(progress, [&done] { return done.load(std::memory_order_relaxed); });
  const NeighborsRequest<Data, Real> request{points,          k,     indices.get(),
                                             distances.get(), &done, &processes};
  run_native(threads, poll, [&](ThreadTeam& team) { search(request, team); });
  const std::vector<std::size_t> shape{rows, static_cast<std::size_t>(k)};
  return nb::make_tuple(to_numpy(std::move(indices), shape), to_numpy(std::move(distances), shape));
}

// The same, with distances in double or in float.
template <typename Data, typename Search>
nb::tuple run_search_in(bool in_double, const PointSet<Data>& points, Size queries, Size k,
                        int threads, const nb::object& progress, Communicator& processes,
                        Search&& search) {
  const auto run = in_double ? run_search<Data, double, Search> : run_search<Data, float, Search>;
  return run(points, queries, k, threads, progress, processes, std::forward<Search>(search));
}

template <typename Data>
nb::tuple nearest(const DataRows& X, Input2<float> coordinates, Input1<double> squared_norms,
                  double scale, Size k, bool in_double, int threads, const nb::object& progress,
                  const nb::object& processes) {
  const PointSet<Data> points = point_set<Data>(X, coordinates, squared_norms, scale);
  require(k >= 1 && k < points.rows, "n_neighbors must be in [1, n_samples - 1]");
  return with_processes(processes, [&](Communicator& all) {
    return run_search_in(
        in_double, points, points.rows, k, threads, progress, all,
        [](const auto& request, ThreadTeam& team) { exact_neighbors(request, team); });
  });
}

template <typename Data>
nb::tuple approximate(const DataRows& X, Input2<float> coordinates, Input1<double> squared_norms,
                      double scale, Size k, bool in_double, Input1<PointId> sample, int threads,
                      const nb::object& progress, const nb::object& processes) {
  const PointSet<Data> points = point_set<Data>(X, coordinates, squared_norms, scale);
  double recall = 0;
  const nb::tuple found = with_processes(processes, [&](Communicator& all) {
    const Size all_rows = sum(all, points.rows);
    require(all_rows < std::numeric_limits<PointId>::max() / 2, "too many samples");
    const Rows own = rows_of(all.rank(), all.size(), all_rows);
    require(points.rows == own.end - own.begin, "the data is not that of own rows");
    require(k >= 1 && k < all_rows, "n_neighbors must be in [1, n_samples - 1]");
    const std::span<const PointId> rows(sample.data(), sample.shape(0));
    require(!rows.empty() && rows.front() >= 0 && rows.back() < all_rows &&
                std::is_sorted(rows.begin(), rows.end()),
            "the sample is empty, does not ascend, or has a row out of range");
    return run_search_in(in_double, points, all_rows, k, threads, progress, all,
                         [&](const auto& request, ThreadTeam& team) {
                           recall = approximate_neighbors(request, ApproximateEffort::of(all_rows),
                                                          rows, team);
                         });
  });
  return nb::make_tuple(found[0], found[1], recall);
}

template <typename Data>
nb::tuple of_queries(const DataRows& X, Input2<float> coordinates, Input1<double> squared_norms,
                     double scale, const DataRows& queries, Input2<float> query_coordinates,
                     Input1<double> query_norms, Size k, bool in_double, int threads,
                     const nb::object& progress) {
  const PointSet<Data> points = point_set<Data>(X, coordinates, squared_norms, scale);
  const PointSet<Data> asked = point_set<Data>(queries, query_coordinates, query_norms, scale);
  require(k >= 1 && k <= points.rows, "n_neighbors must be in [1, n_samples]");
  require(asked.rows >= 1, "no queries");
  require(asked.features == points.features && asked.projection.dims == points.projection.dims,
          "queries and data differ in features or axes");
  return run_search_in(
      in_double, points, asked.rows, k, threads, progress, one_process,
      [&](const auto& request, ThreadTeam& team) { exact_neighbors(request, asked, team); });
}

SparseMetric sparse_metric(const std::string& name) {
  require(name == "euclidean" || name == "cosine" || name == "correlation", "an unknown metric");
  return name == "euclidean" ? SparseMetric::euclidean
         : name == "cosine"  ? SparseMetric::cosine
                             : SparseMetric::correlation;
}

template <typename Data, typename Search>
nb::tuple run_sparse(const CsrView<Data>& points, Size features, const std::string& metric,
                     Size queries, Size k, int threads, const nb::object& progress,
                     const Search& search) {
  std::vector<PointId> indices(static_cast<std::size_t>(queries * k));
  std::vector<double> distances(indices.size());
  std::atomic<Size> done{0};
  PythonPoll poll(progress, [&done] { return done.load(std::memory_order_relaxed); });
  const SparseRequest<Data> request{
      points, features, sparse_metric(metric), k, indices.data(), distances.data(), &done};
  run_native(threads, poll, [&](ThreadTeam& team) { search(request, team); });
  const std::vector<std::size_t> shape{static_cast<std::size_t>(queries),
                                       static_cast<std::size_t>(k)};
  return nb::make_tuple(to_numpy(std::move(indices), shape), to_numpy(std::move(distances), shape));
}

template <typename Data>
nb::tuple sparse_nearest(Input1<EdgeId> offsets, Input1<PointId> columns, Input1<Data> values,
                         Size features, const std::string& metric, Size k, int threads,
                         const nb::object& progress) {
  const CsrView<Data> points = sparse_rows(offsets, columns, values, features);
  require(k >= 1 && k < points.rows(), "n_neighbors must be in [1, n_samples - 1]");
  return run_sparse(points, features, metric, points.rows(), k, threads, progress,
                    [](const auto& request, ThreadTeam& team) { sparse_neighbors(request, team); });
}

template <typename Data>
nb::tuple sparse_of_queries(Input1<EdgeId> offsets, Input1<PointId> columns, Input1<Data> values,
                            Input1<EdgeId> query_offsets, Input1<PointId> query_columns,
                            Input1<Data> query_values, Size features, const std::string& metric,
                            Size k, int threads, const nb::object& progress) {
  const CsrView<Data> points = sparse_rows(offsets, columns, values, features);
  const CsrView<Data> asked = sparse_rows(query_offsets, query_columns, query_values, features);
  require(k >= 1 && k <= points.rows(), "n_neighbors must be in [1, n_samples]");
  return run_sparse(
      points, features, metric, asked.rows(), k, threads, progress,
      [&](const auto& request, ThreadTeam& team) { sparse_neighbors(request, asked, team); });
}

template <typename Data>
void bind_sparse_neighbors_of(nb::module_& m) {
  m.def("sparse_neighbors", &sparse_nearest<Data>, "offsets"_a.noconvert(), "columns"_a.noconvert(),
        "values"_a.noconvert(), "n_features"_a, "metric"_a, "n_neighbors"_a, "threads"_a,
        "progress"_a.none() = nb::none());
  m.def("sparse_query_neighbors", &sparse_of_queries<Data>, "offsets"_a.noconvert(),
        "columns"_a.noconvert(), "values"_a.noconvert(), "query_offsets"_a.noconvert(),
        "query_columns"_a.noconvert(), "query_values"_a.noconvert(), "n_features"_a, "metric"_a,
        "n_neighbors"_a, "threads"_a, "progress"_a.none() = nb::none());
}

} // namespace

void bind_neighbors(nb::module_& m) {
  // By what is computed with, which only the data says.
  m.def(
      "nearest_neighbors",
      [](const DataRows& X, Input2<float> coordinates, Input1<double> squared_norms, double scale,
         Size k, bool in_double, int threads, const nb::object& progress,
         const nb::object& processes) {
        const auto find = is_double(X) ? nearest<double> : nearest<float>;
        return find(X, coordinates, squared_norms, scale, k, in_double, threads, progress,
                    processes);
      },
      "X"_a.noconvert(), "coordinates"_a.noconvert(), "squared_norms"_a.noconvert(), "scale"_a,
      "n_neighbors"_a, "in_double"_a, "threads"_a, "progress"_a.none() = nb::none(),
      "processes"_a.none() = nb::none());
  m.def(
      "approximate_neighbors",
      [](const DataRows& X, Input2<float> coordinates, Input1<double> squared_norms, double scale,
         Size k, bool in_double, Input1<PointId> sample, int threads, const nb::object& progress,
         const nb::object& processes) {
        const auto find = is_double(X) ? approximate<double> : approximate<float>;
        return find(X, coordinates, squared_norms, scale, k, in_double, sample, threads, progress,
                    processes);
      },
      "X"_a.noconvert(), "coordinates"_a.noconvert(), "squared_norms"_a.noconvert(), "scale"_a,
      "n_neighbors"_a, "in_double"_a, "sample"_a.noconvert(), "threads"_a,
      "progress"_a.none() = nb::none(), "processes"_a.none() = nb::none());
  m.def(
      "query_neighbors",
      [](const DataRows& X, Input2<float> coordinates, Input1<double> squared_norms, double scale,
         const DataRows& queries, Input2<float> query_coordinates, Input1<double> query_norms,
         Size k, bool in_double, int threads, const nb::object& progress) {
        require(is_double(X) == is_double(queries), "data and queries differ in precision");
        const auto find = is_double(X) ? of_queries<double> : of_queries<float>;
        return find(X, coordinates, squared_norms, scale, queries, query_coordinates, query_norms,
                    k, in_double, threads, progress);
      },
      "X"_a.noconvert(), "coordinates"_a.noconvert(), "squared_norms"_a.noconvert(), "scale"_a,
      "queries"_a.noconvert(), "query_coordinates"_a.noconvert(), "query_norms"_a.noconvert(),
      "n_neighbors"_a, "in_double"_a, "threads"_a, "progress"_a.none() = nb::none());
  bind_sparse_neighbors_of<float>(m);
  bind_sparse_neighbors_of<double>(m);
}

} // namespace acctsne
