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

// Indices and squared distances.
using Found = std::tuple<Output<PointId>, OutputReals>;
using FoundOfSparse = std::tuple<Output<PointId>, Output<double>>;

// What every search is told.
struct SearchSettings {
  Size n_neighbors;
  bool in_double; // whether distances are; those of sparse rows always are
  int threads;
  const Progress& progress;
};

// Runs search(request, team) for so many queries, with distances in one precision.
template <typename Data, typename Real, typename Search>
Found run_search_in(const PointSet<Data>& points, Size queries, const SearchSettings& settings,
                    Communicator& processes, Search&& search) {
  const Rows own = rows_of(processes.rank(), processes.size(), queries);
  const std::vector<std::size_t> shape{at(own.end - own.begin), at(settings.n_neighbors)};
  const std::size_t stored = shape[0] * shape[1];
  LargeArray<PointId> indices = make_large_array<PointId>(stored, settings.threads);
  LargeArray<Real> distances = make_large_array<Real>(stored, settings.threads);
  std::atomic<Size> done{0};
  PythonPoll poll(settings.progress, [&done] { return done.load(std::memory_order_relaxed); });
  const NeighborsRequest<Data> request = {
      .points = points,
      .neighbors = settings.n_neighbors,
      .indices = indices.get(),
      .squared_distances = distances.get(),
      .done = &done,
      .processes = &processes,
  };
  run_native(settings.threads, poll, [&](ThreadTeam& team) { search(request, team); });
  return {to_numpy(std::move(indices), shape), to_numpy(std::move(distances), shape)};
}

// The same in the precision that is wanted.
template <typename Data, typename Search>
Found run_search(const PointSet<Data>& points, Size queries, const SearchSettings& settings,
                 Communicator& processes, Search&& search) {
  const auto run =
      settings.in_double ? run_search_in<Data, double, Search> : run_search_in<Data, float, Search>;
  return run(points, queries, settings, processes, std::forward<Search>(search));
}

// The rows of all processes, of which these are own ones. Every process must call it.
template <typename Data>
Size all_rows_of(const PointSet<Data>& points, Size k, Communicator& processes) {
  const Size all = sum(processes, points.rows);
  require(all <= kMostPoints, "too many samples");
  const Rows own = rows_of(processes, all);
  require(points.rows == own.end - own.begin, "the data is not that of own rows");
  require(k >= 1 && k < all, "n_neighbors must be in [1, n_samples - 1]");
  return all;
}

template <typename Data>
Found nearest(const DenseData& rows, const SearchSettings& settings,
              const std::optional<CommunicatorObject>& processes) {
  const PointSet<Data> points = rows.points<Data>();
  return with_processes(processes, [&](Communicator& all) {
    return run_search(
        points, all_rows_of(points, settings.n_neighbors, all), settings, all,
        [](const auto& request, ThreadTeam& team) { exact_neighbors(request, team); });
  });
}

template <typename Data>
std::tuple<Output<PointId>, OutputReals, double>
approximate(const DenseData& rows, Input1<PointId> sample, const SearchSettings& settings,
            const std::optional<CommunicatorObject>& processes) {
  const PointSet<Data> points = rows.points<Data>();
  double recall = 0;
  Found found = with_processes(processes, [&](Communicator& all) {
    const Size all_rows = all_rows_of(points, settings.n_neighbors, all);
    const std::span<const PointId> drawn(sample.data(), sample.shape(0));
    require(!drawn.empty() && drawn.front() >= 0 && drawn.back() < all_rows &&
                std::is_sorted(drawn.begin(), drawn.end()),
            "the sample is empty, does not ascend, or has a row out of range");
    return run_search(points, all_rows, settings, all, [&](const auto& request, ThreadTeam& team) {
      recall = approximate_neighbors(request, ApproximateEffort::of(all_rows), drawn, team);
    });
  });
  return {std::get<0>(found), std::get<1>(found), recall};
}

template <typename Data>
Found of_queries(const DenseData& rows, const DenseData& queries, const SearchSettings& settings) {
  require(rows.scale == queries.scale, "queries and data differ in scale");
  const PointSet<Data> points = rows.points<Data>();
  const PointSet<Data> asked = queries.points<Data>();
  require(settings.n_neighbors >= 1 && settings.n_neighbors <= points.rows,
          "n_neighbors must be in [1, n_samples]");
  require(asked.rows >= 1, "no queries");
  require(asked.features == points.features && asked.projection.dims == points.projection.dims,
          "queries and data differ in features or axes");
  return run_search(
      points, asked.rows, settings, one_process,
      [&](const auto& request, ThreadTeam& team) { exact_neighbors(request, asked, team); });
}

constexpr const char* kSparseMetricNames[] = {"euclidean", "cosine", "correlation"};

SparseMetric sparse_metric_named(const std::string& name) {
  const auto* found = std::find(std::begin(kSparseMetricNames), std::end(kSparseMetricNames), name);
  require(found != std::end(kSparseMetricNames), "unknown metric");
  return static_cast<SparseMetric>(found - std::begin(kSparseMetricNames));
}

template <typename Data, typename Search>
FoundOfSparse run_sparse(const SparseData& data, const std::string& metric, Size queries,
                         const SearchSettings& settings, const Search& search) {
  const std::vector<std::size_t> shape{at(queries), at(settings.n_neighbors)};
  std::vector<PointId> indices(shape[0] * shape[1]);
  std::vector<double> distances(indices.size());
  std::atomic<Size> done{0};
  PythonPoll poll(settings.progress, [&done] { return done.load(std::memory_order_relaxed); });
  const SparseRequest<Data> request = {
      .points = data.rows<Data>(),
      .features = data.features(),
      .metric = sparse_metric_named(metric),
      .neighbors = settings.n_neighbors,
      .indices = indices.data(),
      .squared_distances = distances.data(),
      .done = &done,
  };
  run_native(settings.threads, poll, [&](ThreadTeam& team) { search(request, team); });
  return {to_numpy(std::move(indices), shape), to_numpy(std::move(distances), shape)};
}

template <typename Data>
FoundOfSparse sparse_nearest(const SparseData& data, const std::string& metric,
                             const SearchSettings& settings) {
  const Size samples = data.rows<Data>().rows();
  require(settings.n_neighbors >= 1 && settings.n_neighbors < samples,
          "n_neighbors must be in [1, n_samples - 1]");
  return run_sparse<Data>(
      data, metric, samples, settings,
      [](const auto& request, ThreadTeam& team) { sparse_neighbors(request, team); });
}

template <typename Data>
FoundOfSparse sparse_of_queries(const SparseData& data, const SparseData& queries,
                                const std::string& metric, const SearchSettings& settings) {
  require(queries.features() == data.features(), "queries and data differ in features");
  const CsrView<Data> asked = queries.rows<Data>();
  require(settings.n_neighbors >= 1 && settings.n_neighbors <= data.rows<Data>().rows(),
          "n_neighbors must be in [1, n_samples]");
  return run_sparse<Data>(
      data, metric, asked.rows(), settings,
      [&](const auto& request, ThreadTeam& team) { sparse_neighbors(request, asked, team); });
}

} // namespace

void bind_neighbors(nb::module_& m) {
  // By what is computed with, which only the data says.
  m.def(
      "nearest_neighbors",
      [](const DenseData& rows, Size n_neighbors, bool in_double, int threads,
         const Progress& progress, const std::optional<CommunicatorObject>& processes) {
        // Sums of bytes are whole numbers that double holds: none has to be computed again in it.
        const bool exact_in_double = in_double && layout_of(rows.X).stored == Stored::byte;
        const auto find = is_double(rows.X) || exact_in_double ? nearest<double> : nearest<float>;
        return find(rows, {n_neighbors, in_double, threads, progress}, processes);
      },
      "rows"_a, "n_neighbors"_a, "in_double"_a, "threads"_a, "progress"_a.none() = nb::none(),
      "processes"_a.none() = nb::none());
  m.def(
      "approximate_neighbors",
      [](const DenseData& rows, Size n_neighbors, bool in_double, Input1<PointId> sample,
         int threads, const Progress& progress,
         const std::optional<CommunicatorObject>& processes) {
        const auto find = is_double(rows.X) ? approximate<double> : approximate<float>;
        return find(rows, sample, {n_neighbors, in_double, threads, progress}, processes);
      },
      "rows"_a, "n_neighbors"_a, "in_double"_a, "sample"_a.noconvert(), "threads"_a,
      "progress"_a.none() = nb::none(), "processes"_a.none() = nb::none());
  m.def(
      "query_neighbors",
      [](const DenseData& rows, const DenseData& queries, Size n_neighbors, bool in_double,
         int threads, const Progress& progress) {
        require(is_double(rows.X) == is_double(queries.X), "data and queries differ in precision");
        const auto find = is_double(rows.X) ? of_queries<double> : of_queries<float>;
        return find(rows, queries, {n_neighbors, in_double, threads, progress});
      },
      "rows"_a, "queries"_a, "n_neighbors"_a, "in_double"_a, "threads"_a,
      "progress"_a.none() = nb::none());
  m.def(
      "sparse_neighbors",
      [](const SparseData& rows, const std::string& metric, Size n_neighbors, int threads,
         const Progress& progress) {
        const auto find = rows.is_double() ? sparse_nearest<double> : sparse_nearest<float>;
        return find(rows, metric, {n_neighbors, true, threads, progress});
      },
      "rows"_a, "metric"_a, "n_neighbors"_a, "threads"_a, "progress"_a.none() = nb::none());
  m.def(
      "sparse_query_neighbors",
      [](const SparseData& rows, const SparseData& queries, const std::string& metric,
         Size n_neighbors, int threads, const Progress& progress) {
        const auto find = rows.is_double() ? sparse_of_queries<double> : sparse_of_queries<float>;
        return find(rows, queries, metric, {n_neighbors, true, threads, progress});
      },
      "rows"_a, "queries"_a, "metric"_a, "n_neighbors"_a, "threads"_a,
      "progress"_a.none() = nb::none());
}

} // namespace acctsne
