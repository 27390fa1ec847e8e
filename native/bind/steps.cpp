// The steps as Python functions.
#include "acctsne/csr.hpp"
#include "affinities/perplexity.hpp"
#include "affinities/symmetrize.hpp"
#include "bind/conditional.hpp"
#include "bind/native_call.hpp"
#include "forces/map_view.hpp"
#include "tree/morton.hpp"
#include "tree/tree.hpp"

#include <algorithm>

namespace acctsne {
namespace {

// Arrays for the probabilities of a request's rows, filled by body(rows, team).
template <typename Real>
class ConditionalArrays {
public:
  template <typename Body>
  ConditionalArrays(Input2<Real> squared_distances, int threads, Body&& body)
      : conditional_(make_large_array<Real>(squared_distances.size(), threads)),
        perplexities_(squared_distances.shape(0)),
        shape_{squared_distances.shape(0), squared_distances.shape(1)} {
    require(shape_[1] >= 1, "at least one neighbour is needed");
    run_native(threads, [&](ThreadTeam& team) {
      const ConditionalRows<Real> rows = {
          .squared_distances = squared_distances.data(),
          .rows = static_cast<Size>(shape_[0]),
          .neighbors = static_cast<Size>(shape_[1]),
          .conditional = conditional_.get(),
          .perplexities = perplexities_.data(),
      };
      body(rows, team);
    });
  }

  auto conditional() { return to_numpy(std::move(conditional_), shape_); }
  auto perplexities() { return to_numpy(std::move(perplexities_), {shape_[0]}); }

private:
  LargeArray<Real> conditional_;
  std::vector<double> perplexities_;
  std::vector<std::size_t> shape_;
};

template <typename Real>
std::tuple<OutputReals, Output<double>, Output<double>, Size>
perplexity(Input2<Real> squared_distances, double perplexity, int threads) {
  std::vector<double> betas(squared_distances.shape(0));
  Size missed = 0;
  ConditionalArrays<Real> found(squared_distances, threads, [&](const auto& rows, auto& team) {
    missed = search_perplexity(rows, perplexity, betas.data(), team);
  });
  return {found.conditional(), to_numpy(std::move(betas), {squared_distances.shape(0)}),
          found.perplexities(), missed};
}

template <typename Real>
std::tuple<OutputReals, Output<double>, Size>
mixed_perplexities(Input2<Real> squared_distances, const std::vector<double>& perplexities,
                   bool by_density, int threads) {
  require(!perplexities.empty(), "at least one perplexity is needed");
  const Mixing mixing = by_density ? Mixing::density : Mixing::equal;
  Size missed = 0;
  ConditionalArrays<Real> found(squared_distances, threads, [&](const auto& rows, auto& team) {
    missed = mix_perplexities<Real>(rows, perplexities, mixing, team);
  });
  return {found.conditional(), found.perplexities(), missed};
}

template <typename Real>
std::tuple<OutputReals, Output<double>> fixed_gaussians(Input2<Real> squared_distances, double beta,
                                                        int threads) {
  ConditionalArrays<Real> found(squared_distances, threads, [&](const auto& rows, auto& team) {
    fixed_bandwidth(rows, beta, team);
  });
  return {found.conditional(), found.perplexities()};
}

template <typename Real>
void sort_rows(InOut2<PointId> indices, InOut2<Real> conditional, Size points, int threads) {
  require(conditional.shape(0) == indices.shape(0) && conditional.shape(1) == indices.shape(1),
          "indices and conditional differ in shape");
  require(points >= 0 && points <= kMostPoints, "no such number of points");
  run_native(threads, [&](ThreadTeam& team) {
    sort_by_column(indices.data(), conditional.data(), static_cast<Size>(indices.shape(0)),
                   static_cast<Size>(indices.shape(1)), points, team);
  });
}

template <typename Real>
std::tuple<Output<EdgeId>, Output<PointId>, OutputReals>
symmetrized(Input2<PointId> indices, Input2<Real> conditional, bool equal, int threads) {
  const Conditional<Real> C = conditional_of(indices, conditional, equal);
  Csr<Real> joint;
  run_native(threads, [&](ThreadTeam& team) {
    require_sorted(C, C.rows, team);
    SymmetrizedRows<Real> rows(C, team);
    joint = collect(rows, team);
  });
  const std::size_t edges = joint.columns.size();
  return {to_numpy(std::move(joint.offsets), {indices.shape(0) + 1}),
          to_numpy(std::move(joint.columns), {edges}), to_numpy(std::move(joint.values), {edges})};
}

template <typename Real>
bool share_codes(Input2<Real> Y, int threads) {
  const auto count = static_cast<Size>(Y.shape(0));
  const auto dims = static_cast<int>(Y.shape(1));
  require(count >= 1 && dims >= 1 && dims <= kCompiledDims, "no layout that has Morton codes");
  bool shared = false;
  run_native(threads, [&](ThreadTeam& team) {
    const Bounds<Real> bounds(Y.data(), count, dims);
    const MapView<Real> map = bounds.map();
    shared = some_share_a_code(map.points, count, dims, map.lower, map.upper, team);
  });
  return shared;
}

// A tree of any dimension, one entry a node but for the first two.
template <typename Real>
struct TreeArrays {
  std::vector<PointId> order;
  std::vector<MortonCode> codes;
  std::vector<Real> centres;
  std::vector<Real> sides;
  std::vector<PointId> begins;
  std::vector<PointId> ends;
  std::vector<NodeId> skips;
  std::vector<std::int32_t> levels;
  std::vector<Real> box_lower;
  Real box_side;
};

template <typename Real, int kDims>
TreeArrays<Real> arrays_of(const Tree<Real, kDims>& tree) {
  TreeArrays<Real> arrays;
  arrays.order.assign(tree.order().begin(), tree.order().end());
  arrays.codes.assign(tree.codes().begin(), tree.codes().end());
  for (const auto& node : tree.nodes()) {
    arrays.centres.insert(arrays.centres.end(), node.centre, node.centre + kDims);
    arrays.sides.push_back(node.side);
    arrays.begins.push_back(node.begin);
    arrays.ends.push_back(node.end);
    arrays.skips.push_back(node.skip);
    arrays.levels.push_back(node.level);
  }
  arrays.box_lower.assign(tree.box().lower, tree.box().lower + kDims);
  arrays.box_side = tree.box().side;
  return arrays;
}

template <typename Real>
Dict<nb::any> tree_arrays(Input2<Real> Y, int threads) {
  const auto count = static_cast<Size>(Y.shape(0));
  const std::size_t dims = Y.shape(1);
  require(count >= 1 && count <= kMostPoints, "a tree needs a point, and not too many");
  TreeArrays<Real> arrays;
  run_native(threads, [&](ThreadTeam& team) {
    const Bounds<Real> bounds(Y.data(), count, static_cast<int>(dims));
    const MapView<Real> map = bounds.map();
    arrays = with_dims(static_cast<int>(dims), [&](auto d) {
      Tree<Real, d()> tree;
      tree.build(map.points, count, map.lower, map.upper, team);
      tree.summarize(map.points, team);
      return arrays_of(tree);
    });
  });
  const std::size_t n = arrays.sides.size();
  Dict<nb::any> result;
  result["order"] = to_numpy(std::move(arrays.order), {Y.shape(0)});
  result["codes"] = to_numpy(std::move(arrays.codes), {Y.shape(0)});
  result["centre"] = to_numpy(std::move(arrays.centres), {n, dims});
  result["side"] = to_numpy(std::move(arrays.sides), {n});
  result["begin"] = to_numpy(std::move(arrays.begins), {n});
  result["end"] = to_numpy(std::move(arrays.ends), {n});
  result["skip"] = to_numpy(std::move(arrays.skips), {n});
  result["level"] = to_numpy(std::move(arrays.levels), {n});
  result["box_lower"] = to_numpy(std::move(arrays.box_lower), {dims});
  result["box_side"] = static_cast<double>(arrays.box_side);
  return result;
}

} // namespace

void bind_steps(nb::module_& m) {
  m.def(
      "search_perplexity",
      [](const InputReals2& squared_distances, double wanted, int threads) {
        return std::visit([&](const auto& D) { return perplexity(D, wanted, threads); },
                          squared_distances);
      },
      "squared_distances"_a.noconvert(), "perplexity"_a, "threads"_a);
  m.def(
      "mix_perplexities",
      [](const InputReals2& squared_distances, const std::vector<double>& perplexities,
         bool by_density, int threads) {
        return std::visit(
            [&](const auto& D) { return mixed_perplexities(D, perplexities, by_density, threads); },
            squared_distances);
      },
      "squared_distances"_a.noconvert(), "perplexities"_a, "by_density"_a, "threads"_a);
  m.def(
      "fixed_bandwidth",
      [](const InputReals2& squared_distances, double beta, int threads) {
        return std::visit([&](const auto& D) { return fixed_gaussians(D, beta, threads); },
                          squared_distances);
      },
      "squared_distances"_a.noconvert(), "beta"_a, "threads"_a);
  m.def(
      "sort_rows",
      [](const InOut2<PointId>& indices,
         const std::variant<InOut2<float>, InOut2<double>>& conditional, Size points, int threads) {
        std::visit([&](const auto& C) { sort_rows(indices, C, points, threads); }, conditional);
      },
      "indices"_a.noconvert(), "conditional"_a.noconvert(), "points"_a, "threads"_a);
  m.def(
      "symmetrize",
      [](const Input2<PointId>& indices, const InputReals2& conditional, bool equal, int threads) {
        return std::visit([&](const auto& C) { return symmetrized(indices, C, equal, threads); },
                          conditional);
      },
      "indices"_a.noconvert(), "conditional"_a.noconvert(), "equal"_a, "threads"_a);
  m.def(
      "some_share_a_code",
      [](const InputReals2& layout, int threads) {
        return std::visit([&](const auto& Y) { return share_codes(Y, threads); }, layout);
      },
      "Y"_a.noconvert(), "threads"_a);
  m.def(
      "build_tree",
      [](const InputReals2& layout, int threads) {
        return std::visit([&](const auto& Y) { return tree_arrays(Y, threads); }, layout);
      },
      "Y"_a.noconvert(), "threads"_a);
}

} // namespace acctsne
