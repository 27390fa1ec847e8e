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

// Runs search(request, team) for so many queries.
template <typename Data, typename Real, typename Search>
Found run_search(const PointSet<Data>& points, Size queries, Size k, int threads,
                 const Progress& progress, Communicator& processes, Search&& search) {
  const Rows own = rows_of(processes.rank(), processes.size(), queries);
  const auto rows = static_cast<std::size_t>(own.end - own.begin);
  const auto stored = rows * static_cast<std::size_t>(k);
  LargeArray<PointId> indices = make_large_array<PointId>(stored, threads);
  LargeArray<Real> distances = make_large_array<Real>(stored, threads);
  std::atomic<Size> done{0};
  PythonPoll poll(progress, [&done] { return done.load(std::memory_order_relaxed); });
  const NeighborsRequest<Data> request{points,          k,     indices.get(),
                                       distances.get(), &done, &processes};
  run_native(threads, poll, [&](ThreadTeam& team) { search(request, team); });
  const std::vector<std::size_t> shape{rows, static_cast<std::size_t>(k)};
  return {to_numpy(std::move(indices), shape), to_numpy(std::move(distances), shape)};
}

// The same, with distances in double or in float.
template <typename Data, typename Search>
Found run_search_in(bool in_double, const PointSet<Data>& points, Size queries, Size k, int threads,
                    const Progress& progress, Communicator& processes, Search&& search) {
  const auto run = in_double ? run_search<Data, double, Search> : run_search<Data, float, Search>;
  return run(points, queries, k, threads, progress, processes, std::forward<Search>(search));
}

// The rows of all processes, of which these are own ones. Every process must call it.
template <typename Data>
Size all_rows_of(const PointSet<Data>& points, Size k, Communicator& processes) {
  const Size all = sum(processes, points.rows);
  require(all < std::numeric_limits<PointId>::max() / 2, "too many samples");
  const Rows own = rows_of(processes, all);
  require(points.rows == own.end - own.begin, "the data is not that of own rows");
  require(k >= 1 && k < all, "n_neighbors must be in [1, n_samples - 1]");
  return all;
}

template <typename Data>
Found nearest(const DenseData& rows, Size k, bool in_double, int threads, const Progress& progress,
              const std::optional<CommunicatorObject>& processes) {
  const PointSet<Data> points = rows.points<Data>();
  return with_processes(processes, [&](Communicator& all) {
    return run_search_in(
        in_double, points, all_rows_of(points, k, all), k, threads, progress, all,
        [](const auto& request, ThreadTeam& team) { exact_neighbors(request, team); });
  });
}

template <typename Data>
std::tuple<Output<PointId>, OutputReals, double>
approximate(const DenseData& rows, Size k, bool in_double, Input1<PointId> sample, int threads,
            const Progress& progress, const std::optional<CommunicatorObject>& processes) {
  const PointSet<Data> points = rows.points<Data>();
  double recall = 0;
  Found found = with_processes(processes, [&](Communicator& all) {
    const Size all_rows = all_rows_of(points, k, all);
    const std::span<const PointId> drawn(sample.data(), sample.shape(0));
    require(!drawn.empty() && drawn.front() >= 0 && drawn.back() < all_rows &&
                std::is_sorted(drawn.begin(), drawn.end()),
            "the sample is empty, does not ascend, or has a row out of range");
    return run_search_in(in_double, points, all_rows, k, threads, progress, all,
                         [&](const auto& request, ThreadTeam& team) {
                           recall = approximate_neighbors(request, ApproximateEffort::of(all_rows),
                                                          drawn, team);
                         });
  });
  return {std::get<0>(found), std::get<1>(found), recall};
}

template <typename Data>
Found of_queries(const DenseData& rows, const DenseData& queries, Size k, bool in_double,
                 int threads, const Progress& progress) {
  require(rows.scale == queries.scale, "queries and data differ in scale");
  const PointSet<Data> points = rows.points<Data>();
  const PointSet<Data> asked = queries.points<Data>();
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
FoundOfSparse run_sparse(const SparseData& data, const std::string& metric, Size queries, Size k,
                         int threads, const Progress& progress, const Search& search) {
  std::vector<PointId> indices(static_cast<std::size_t>(queries * k));
  std::vector<double> distances(indices.size());
  std::atomic<Size> done{0};
  PythonPoll poll(progress, [&done] { return done.load(std::memory_order_relaxed); });
  const SparseRequest<Data> request{data.rows<Data>(),
                                    data.features(),
                                    sparse_metric(metric),
                                    k,
                                    indices.data(),
                                    distances.data(),
                                    &done};
  run_native(threads, poll, [&](ThreadTeam& team) { search(request, team); });
  const std::vector<std::size_t> shape{static_cast<std::size_t>(queries),
                                       static_cast<std::size_t>(k)};
  return {to_numpy(std::move(indices), shape), to_numpy(std::move(distances), shape)};
}

template <typename Data>
FoundOfSparse sparse_nearest(const SparseData& data, const std::string& metric, Size k, int threads,
                             const Progress& progress) {
  const Size samples = data.rows<Data>().rows();
  require(k >= 1 && k < samples, "n_neighbors must be in [1, n_samples - 1]");
  return run_sparse<Data>(
      data, metric, samples, k, threads, progress,
      [](const auto& request, ThreadTeam& team) { sparse_neighbors(request, team); });
}

template <typename Data>
FoundOfSparse sparse_of_queries(const SparseData& data, const SparseData& queries,
                                const std::string& metric, Size k, int threads,
                                const Progress& progress) {
  require(queries.features() == data.features(), "queries and data differ in features");
  const CsrView<Data> asked = queries.rows<Data>();
  require(k >= 1 && k <= data.rows<Data>().rows(), "n_neighbors must be in [1, n_samples]");
  return run_sparse<Data>(
      data, metric, asked.rows(), k, threads, progress,
      [&](const auto& request, ThreadTeam& team) { sparse_neighbors(request, asked, team); });
}

} // namespace

void bind_neighbors(nb::module_& m) {
  // By what is computed with, which only the data says.
  m.def(
      "nearest_neighbors",
      [](const DenseData& rows, Size k, bool in_double, int threads, const Progress& progress,
         const std::optional<CommunicatorObject>& processes) {
        // Sums of bytes are whole numbers that double holds: none has to be computed again in it.
        const bool exact_in_double = in_double && layout_of(rows.X).stored == Stored::byte;
        const auto find = is_double(rows.X) || exact_in_double ? nearest<double> : nearest<float>;
        return find(rows, k, in_double, threads, progress, processes);
      },
      "rows"_a, "n_neighbors"_a, "in_double"_a, "threads"_a, "progress"_a.none() = nb::none(),
      "processes"_a.none() = nb::none());
  m.def(
      "approximate_neighbors",
      [](const DenseData& rows, Size k, bool in_double, Input1<PointId> sample, int threads,
         const Progress& progress, const std::optional<CommunicatorObject>& processes) {
        const auto find = is_double(rows.X) ? approximate<double> : approximate<float>;
        return find(rows, k, in_double, sample, threads, progress, processes);
      },
      "rows"_a, "n_neighbors"_a, "in_double"_a, "sample"_a.noconvert(), "threads"_a,
      "progress"_a.none() = nb::none(), "processes"_a.none() = nb::none());
  m.def(
      "query_neighbors",
      [](const DenseData& rows, const DenseData& queries, Size k, bool in_double, int threads,
         const Progress& progress) {
        require(is_double(rows.X) == is_double(queries.X), "data and queries differ in precision");
        const auto find = is_double(rows.X) ? of_queries<double> : of_queries<float>;
        return find(rows, queries, k, in_double, threads, progress);
      },
      "rows"_a, "queries"_a, "n_neighbors"_a, "in_double"_a, "threads"_a,
      "progress"_a.none() = nb::none());
  m.def(
      "sparse_neighbors",
      [](const SparseData& rows, const std::string& metric, Size k, int threads,
         const Progress& progress) {
        const auto find = rows.is_double() ? sparse_nearest<double> : sparse_nearest<float>;
        return find(rows, metric, k, threads, progress);
      },
      "rows"_a, "metric"_a, "n_neighbors"_a, "threads"_a, "progress"_a.none() = nb::none());
  m.def(
      "sparse_query_neighbors",
      [](const SparseData& rows, const SparseData& queries, const std::string& metric, Size k,
         int threads, const Progress& progress) {
        const auto find = rows.is_double() ? sparse_of_queries<double> : sparse_of_queries<float>;
        return find(rows, queries, metric, k, threads, progress);
      },
      "rows"_a, "queries"_a, "metric"_a, "n_neighbors"_a, "threads"_a,
      "progress"_a.none() = nb::none());
}

} // namespace acctsne
