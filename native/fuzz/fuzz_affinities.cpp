// P from conditional probabilities and from a matrix, into the form that the attraction reads.
//
// Promised by Python: there is a row, none names a neighbour twice, values are finite and not
// negative, and a matrix sums to 1. Indices, offsets and sizes may be anything: they are refused
// here if they do not fit.
#include "affinities/symmetrize.hpp"
#include "forces/attractive.hpp"
#include "forces/edges.hpp"
#include "fuzz/input.hpp"

#include <cstring>
#include <limits>

using namespace acctsne;
using namespace acctsne::fuzz;

namespace {

constexpr int kDims = 2;

template <typename Real>
bool same_edges(const EdgeView<Real>& a, const EdgeView<Real>& b) {
  const std::size_t value_bytes = a.half_scale != Real(0) ? 2 : sizeof(Real);
  const auto same = [&](const auto* a_offsets, const auto* b_offsets, const auto* a_columns,
                        const auto* b_columns, const void* a_values, const void* b_values) {
    const auto edges = at(a_offsets[a.rows]);
    return std::equal(a_offsets, a_offsets + a.rows + 1, b_offsets) &&
           std::equal(a_columns, a_columns + edges, b_columns) &&
           (edges == 0 || std::memcmp(a_values, b_values, edges * value_bytes) == 0);
  };
  return a.rows == b.rows &&
         same(a.near_offsets, b.near_offsets, a.near_columns, b.near_columns, a.near_values,
              b.near_values) &&
         same(a.far_offsets, b.far_offsets, a.far_columns, b.far_columns, a.far_values,
              b.far_values);
}

// Relabelling must lead where a build with the new order leads.
template <typename Real>
void use(JointRows<Real>& P, bool distinct, Input& input, ThreadTeam& team) {
  const Size rows = P.rows();
  const bool half = input.ConsumeBool();
  Edges<Real> edges;
  edges.build(P, permutation(input, rows), half, team);
  const std::vector<PointId> order = permutation(input, rows);
  edges.relabel(order, team);
  Edges<Real> directly;
  directly.build(P, order, half, team);
  EXPECT(!distinct || same_edges(edges.view(), directly.view()));

  std::vector<Real> points = numbers<Real>(input, std::min<Size>(rows * kDims, 64), 1e12);
  points.resize(at(rows * kDims), Real(1));
  std::vector<Real> force(points.size());
  RowSums sums;
  attractive_forces(edges, points.data(), kDims, {0, rows}, force.data(), team);
  cross_entropy(edges, points.data(), kDims, {0, rows}, sums, team);
  EXPECT(all_finite(force));
}

template <typename Real>
void from_conditional(Input& input, ThreadTeam& team) {
  // More than 2^16 points have edges that do not fit 16 bits. They take long: seldom.
  const bool many = input.ConsumeIntegral<std::uint16_t>() == 0xfa12;
  const Size rows = input.ConsumeIntegralInRange<Size>(1, 40) + (many ? 70000 : 0);
  const Size neighbors = input.ConsumeIntegralInRange<Size>(0, many ? 1 : 8);
  std::vector<PointId> indices(at(rows * neighbors));
  for (std::size_t e = 0; e < indices.size(); ++e) {
    const auto byte = input.ConsumeIntegral<std::uint8_t>();
    indices[e] = byte == 255 ? input.ConsumeIntegral<PointId>()
                             : static_cast<PointId>(static_cast<Size>(byte + 257 * e) % rows);
  }
  std::vector<Real> values = numbers<Real>(input, std::min<Size>(rows * neighbors, 256), 1);
  values.resize(indices.size(), Real(0.5));
  std::ranges::transform(values, values.begin(), [](Real value) { return std::abs(value); });
  if (input.ConsumeBool()) {
    sort_by_column(indices.data(), values.data(), rows, neighbors, rows, team);
  }
  const Conditional<Real> C{indices.data(), values.data(), rows, neighbors, input.ConsumeBool()};
  bool distinct = true;
  bool sorted = true;
  for (Size i = 0; i < rows; ++i) {
    for (Size e = 0; e < neighbors; ++e) {
      const PointId column = C.columns_of(i)[e];
      const PointId before = e > 0 ? C.columns_of(i)[e - 1] : 0;
      sorted = sorted && before <= column && column < rows;
      distinct = distinct && (e == 0 || before < column);
    }
  }
  EXPECT(is_sorted_by_column(C, rows, team) == sorted);
  if (!sorted) {
    return;
  }
  // A few edges at a time, so that there are several groups.
  SymmetrizedRows<Real> P(C, team, input.ConsumeIntegralInRange<EdgeId>(0, 64));
  const Csr<Real> joint = collect(P, team);
  require_sound(joint.view());
  double sum = 0;
  for (const Real value : joint.values) {
    EXPECT(value >= 0);
    sum += static_cast<double>(value);
  }
  const bool empty = std::ranges::all_of(values, [](Real value) { return value < Real(1e-30); });
  EXPECT(!distinct || empty || std::abs(sum - 1) < 1e-3);
  use(P, distinct, input, team);
}

template <typename Real>
void from_matrix(Input& input, ThreadTeam& team) {
  const Size rows = input.ConsumeIntegralInRange<Size>(1, 24);
  const Size edges = input.ConsumeIntegralInRange<Size>(0, 64);
  Csr<Real> P;
  EdgeId offset = 0;
  P.offsets.push_back(input.ConsumeIntegral<std::uint8_t>() == 255 ? 1 : 0);
  for (Size i = 0; i < rows; ++i) {
    const auto byte = input.ConsumeIntegral<std::uint8_t>();
    offset = byte == 255 ? input.ConsumeIntegral<EdgeId>() / 2 : offset + byte % 8;
    P.offsets.push_back(i + 1 == rows && input.ConsumeBool() ? edges : offset);
  }
  for (Size e = 0; e < edges; ++e) {
    const auto byte = input.ConsumeIntegral<std::uint8_t>();
    P.columns.push_back(byte == 255 ? input.ConsumeIntegral<PointId>()
                                    : byte % static_cast<PointId>(rows));
  }
  P.values = numbers<Real>(input, edges + (input.ConsumeIntegral<std::uint8_t>() == 255), 1);
  double sum = 0;
  for (const Real value : P.values) {
    sum += std::abs(static_cast<double>(value));
  }
  std::ranges::transform(P.values, P.values.begin(), [sum](Real value) {
    return sum > 0 ? static_cast<Real>(std::abs(static_cast<double>(value)) / sum) : Real(0);
  });
  if (accepts([&] { require_sound(P.view()); })) {
    MatrixRows<Real> read(P.view());
    use(read, /*distinct=*/false, input, team);
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  choose_level(input);
  ThreadTeam team(choose_threads(input));
  const bool matrix = input.ConsumeBool();
  with_real(input, [&]<typename Real>() {
    matrix ? from_matrix<Real>(input, team) : from_conditional<Real>(input, team);
  });
  return 0;
}
