// The referee's functions: exact sums, and a method's forces to compare with them.
#include "bind/csr.hpp"
#include "bind/data_rows.hpp"
#include "bind/native_call.hpp"
#include "forces/repulsive.hpp"
#include "forces/repulsive_exact.hpp"
#include "quality/exact_kl.hpp"
#include "quality/ranks.hpp"

#include <algorithm>

namespace acctsne {
namespace {

template <typename Real>
void scale_forces(std::vector<Real>& force, const OutputKernel& output_kernel) {
  for (Real& value : force) {
    value *= static_cast<Real>(output_kernel.gradient_scale());
  }
}

// Forces in the unit of Y, as the optimiser's: the repulsive part of the gradient is 4 force / Z.
template <typename Real>
std::tuple<OutputReals, Output<double>> exact_repulsion(Input2<Real> Y, Input1<PointId> rows,
                                                        int threads,
                                                        const OutputKernel& output_kernel) {
  const auto count = static_cast<Size>(Y.shape(0));
  const std::size_t dims = Y.shape(1);
  const std::span<const PointId> listed(rows.data(), rows.shape(0));
  require(
      std::all_of(listed.begin(), listed.end(), [count](PointId i) { return i >= 0 && i < count; }),
      "a row is out of range");
  require(dims >= 1, "an embedding has at least 1 dimension");
  const std::vector<Real> points = in_unit(Y.data(), static_cast<Size>(Y.size()), output_kernel);
  std::vector<Real> force(listed.size() * dims);
  std::vector<double> z(listed.size());
  run_native(threads, [&](ThreadTeam& team) {
    ExactRepulsion<Real> repulsion(static_cast<int>(dims), output_kernel.exponent);
    repulsion.forces(points.data(), count, listed, force.data(), z.data(), team);
  });
  scale_forces(force, output_kernel);
  return {to_numpy(std::move(force), {listed.size(), dims}),
          to_numpy(std::move(z), {listed.size()})};
}

// The same by whichever method the options name, for all points, and Z.
template <typename Real>
std::tuple<OutputReals, double> repulsion(Input2<Real> Y, const RepulsionOptions& options,
                                          int threads) {
  const auto count = static_cast<Size>(Y.shape(0));
  const std::size_t dims = Y.shape(1);
  require(count >= 1 && dims >= 1, "an embedding has at least a point and a dimension");
  const std::vector<Real> points =
      in_unit(Y.data(), static_cast<Size>(Y.size()), options.output_kernel);
  require(
      std::all_of(points.begin(), points.end(), [](Real value) { return std::isfinite(value); }),
      "a position is not finite");
  std::vector<Real> force(points.size());
  double z = 0;
  run_native(threads, [&](ThreadTeam& team) {
    const Bounds<Real> bounds(points.data(), count, static_cast<int>(dims));
    ChosenRepulsion<Real> chosen(static_cast<int>(dims), options);
    z = chosen.forces(bounds.map(), force.data(), team);
  });
  scale_forces(force, options.output_kernel);
  return {to_numpy(std::move(force), {Y.shape(0), dims}), z};
}

double exact_kl_of(Input1<EdgeId> offsets, Input1<PointId> columns, Input1<double> values,
                   Input2<double> Y, const OutputKernel& output_kernel, int threads) {
  require(Y.shape(1) >= 1, "an embedding has at least 1 dimension");
  const CsrView<double> P = csr_of(offsets, columns, values, Y.shape(0));
  double kl = 0;
  run_native(threads, [&](ThreadTeam& team) {
    kl = exact_kl(P, Y.data(), static_cast<int>(Y.shape(1)), output_kernel, team);
  });
  return kl;
}

Output<double> kl_by_point_of(Input1<EdgeId> offsets, Input1<PointId> columns,
                              Input1<double> values, Input2<double> Y,
                              const OutputKernel& output_kernel, double z, int threads) {
  require(Y.shape(1) >= 1, "an embedding has at least 1 dimension");
  const CsrView<double> P = csr_of(offsets, columns, values, Y.shape(0));
  std::vector<double> shares;
  run_native(threads, [&](ThreadTeam& team) {
    shares = kl_by_point(P, Y.data(), static_cast<int>(Y.shape(1)), output_kernel, z, team);
  });
  return to_numpy(std::move(shares), {Y.shape(0)});
}

using RankArrays = std::tuple<Output<std::int32_t>, Output<double>, Output<double>, Output<Size>>;

// Ranks in X of the points that are asked for; see quality/ranks.hpp.
template <typename Real>
RankArrays rank_penalties_of(const DataRows& X, Input2<PointId> nearest, Input2<PointId> asked,
                             Input1<Size> sizes, Input1<PointId> references, int threads,
                             const Progress& progress) {
  const std::size_t rows = X.shape(0);
  const std::span<const Size> k(sizes.data(), sizes.shape(0));
  const std::span<const PointId> sample(references.data(), references.shape(0));
  const auto is_row = [rows](PointId i) { return i >= 0 && at(i) < rows; };
  const auto all_rows = [&](const PointId* ids, std::size_t count) {
    return std::all_of(ids, ids + count, is_row);
  };
  require(!sample.empty(), "there are no references");
  require(nearest.shape(0) == rows && asked.shape(0) == rows, "neighbours do not fit the data");
  require(all_rows(nearest.data(), nearest.size()) && all_rows(asked.data(), asked.size()) &&
              all_rows(sample.data(), sample.size()),
          "a neighbour or a reference is out of range");
  const auto most = static_cast<Size>(std::min(nearest.shape(1), asked.shape(1)));
  require(!k.empty() &&
              std::all_of(k.begin(), k.end(), [most](Size n) { return n >= 1 && n <= most; }),
          "a neighbourhood is larger than what is known");
  std::atomic<Size> done{0};
  PythonPoll poll(progress, [&done] { return done.load(std::memory_order_relaxed); });
  const RankRequest<Real> request = {
      .points = rows_of_data<Real>(X),
      .nearest = nearest.data(),
      .known = static_cast<Size>(nearest.shape(1)),
      .asked = asked.data(),
      .asked_each = static_cast<Size>(asked.shape(1)),
      .sizes = k,
      .references = sample,
      .done = &done,
  };
  Ranks ranks;
  run_native(threads, poll, [&](ThreadTeam& team) { ranks = rank_penalties(request, team); });
  const std::vector<std::size_t> shape{rows, k.size()};
  return {to_numpy(std::move(ranks.kept), shape), to_numpy(std::move(ranks.penalties), shape),
          to_numpy(std::move(ranks.variances), shape),
          to_numpy(std::move(ranks.by_reference), {sample.size(), k.size()})};
}

} // namespace

void bind_quality(nb::module_& m) {
  m.def(
      "exact_repulsion",
      [](const InputReals2& layout, const Input1<PointId>& rows, int threads,
         const OutputKernel& output_kernel) {
        return std::visit(
            [&](const auto& Y) { return exact_repulsion(Y, rows, threads, output_kernel); },
            layout);
      },
      "Y"_a.noconvert(), "rows"_a.noconvert(), "threads"_a, "output_kernel"_a);
  m.def(
      "repulsion",
      [](const InputReals2& layout, const RepulsionOptions& options, int threads) {
        return std::visit([&](const auto& Y) { return repulsion(Y, options, threads); }, layout);
      },
      "Y"_a.noconvert(), "options"_a, "threads"_a);
  m.def(
      "rank_penalties",
      [](const DataRows& X, Input2<PointId> nearest, Input2<PointId> asked, Input1<Size> sizes,
         Input1<PointId> references, int threads, const Progress& progress) {
        const auto ranks = is_double(X) ? rank_penalties_of<double> : rank_penalties_of<float>;
        return ranks(X, nearest, asked, sizes, references, threads, progress);
      },
      "X"_a.noconvert(), "nearest"_a.noconvert(), "asked"_a.noconvert(), "sizes"_a.noconvert(),
      "references"_a.noconvert(), "threads"_a, "progress"_a.none() = nb::none());
  m.def("exact_kl", &exact_kl_of, "offsets"_a.noconvert(), "columns"_a.noconvert(),
        "values"_a.noconvert(), "Y"_a.noconvert(), "output_kernel"_a, "threads"_a);
  m.def("kl_by_point", &kl_by_point_of, "offsets"_a.noconvert(), "columns"_a.noconvert(),
        "values"_a.noconvert(), "Y"_a.noconvert(), "output_kernel"_a, "z"_a, "threads"_a);
}

} // namespace acctsne
