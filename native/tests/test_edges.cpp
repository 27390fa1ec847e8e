// The compact form of P against P itself, however it came about.
#include "forces/edges.hpp"

#include "affinities/symmetrize.hpp"
#include "check.hpp"
#include "data.hpp"

#include <numeric>

using namespace acctsne;

namespace {

float from_half(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  return std::ldexp(static_cast<float>(exponent == 0 ? mantissa : mantissa + 1024),
                    std::max(exponent, 1) - 25);
}

// Row i of P as the edges hold it, under the new labels.
template <typename Real>
std::map<Size, double> stored_row(const EdgeView<Real>& view, Size i) {
  const auto value = [&](const void* values, EdgeId e) {
    if (view.half_scale != Real(0)) {
      return static_cast<double>(from_half(static_cast<const std::uint16_t*>(values)[e])) /
             static_cast<double>(view.half_scale);
    }
    return static_cast<double>(static_cast<const Real*>(values)[e]);
  };
  std::map<Size, double> row;
  const Size window = edge_window(i / kEdgeBlockRows * kEdgeBlockRows, view.rows);
  for (EdgeId e = view.near_offsets[i]; e < view.near_offsets[i + 1]; ++e) {
    row[window + view.near_columns[e]] += value(view.near_values, e);
  }
  for (EdgeId e = view.far_offsets[i]; e < view.far_offsets[i + 1]; ++e) {
    row[view.far_columns[e]] += value(view.far_values, e);
  }
  row.erase(i); // padding
  return row;
}

std::vector<PointId> random_order(Size rows, std::uint64_t seed) {
  std::vector<PointId> order(at(rows));
  std::iota(order.begin(), order.end(), PointId{0});
  std::mt19937_64 random(seed);
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

template <typename Real>
Edges<Real> built(const Csr<Real>& joint, const std::vector<PointId>& order, bool half,
                  int threads) {
  ThreadTeam team(threads);
  MatrixRows<Real> rows(joint.view());
  Edges<Real> edges;
  edges.build(rows, order, half, team);
  return edges;
}

template <typename Real>
void check_edges(Size rows, bool half, int threads) {
  const Csr<Real> joint = make_joint<Real>(rows, 7);
  const std::vector<PointId> order = random_order(rows, 3);
  std::vector<PointId> label(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    label[at(order[i])] = static_cast<PointId>(i);
  }

  const Edges<Real> edges = built(joint, order, half, threads);
  const EdgeView<Real> view = edges.view();
  CHECK_EQUAL(view.rows, rows);
  // Eleven bits of the value, where it is not far below the largest.
  const double tolerance = view.half_scale != Real(0) ? 0x1p-11 : 0;
  for (Size i = 0; i < rows; ++i) {
    const std::map<Size, double> row = stored_row(view, i);
    const std::size_t old = at(order[at(i)]);
    CHECK_EQUAL(static_cast<EdgeId>(row.size()), joint.offsets[old + 1] - joint.offsets[old]);
    for (EdgeId e = joint.offsets[old]; e < joint.offsets[old + 1]; ++e) {
      const auto found = row.find(label[at(joint.columns[at(e)])]);
      CHECK(found != row.end());
      const auto p = static_cast<double>(joint.values[at(e)]);
      if (found != row.end()) {
        CHECK_NEAR(found->second, p, tolerance * p);
      }
    }
  }
}

template <typename Real>
bool same_edges(const Edges<Real>& a, const Edges<Real>& b) {
  const EdgeView<Real> x = a.view();
  const EdgeView<Real> y = b.view();
  const auto same = [](const auto* left, const auto* right, EdgeId count) {
    return std::memcmp(left, right, at(count) * sizeof(*left)) == 0;
  };
  const auto same_part = [&](const EdgeId* offsets, const auto* columns, const void* values,
                             const EdgeId* other_offsets, const auto* other_columns,
                             const void* other_values) {
    const EdgeId edges = offsets[x.rows];
    const std::size_t bytes = x.half_scale != Real(0) ? sizeof(std::uint16_t) : sizeof(Real);
    return same(offsets, other_offsets, x.rows + 1) && same(columns, other_columns, edges) &&
           std::memcmp(values, other_values, at(edges) * bytes) == 0;
  };
  return x.rows == y.rows && x.half_scale == y.half_scale &&
         a.negative_entropy() == b.negative_entropy() &&
         same_part(x.near_offsets, x.near_columns, x.near_values, y.near_offsets, y.near_columns,
                   y.near_values) &&
         same_part(x.far_offsets, x.far_columns, x.far_values, y.far_offsets, y.far_columns,
                   y.far_values);
}

// Whatever the labels were before, the bits are those of a fresh start.
template <typename Real>
void check_relabelling(Size rows, bool half, int threads) {
  const Csr<Real> joint = make_joint<Real>(rows, 7);
  Edges<Real> edges = built(joint, random_order(rows, 1), half, threads);
  ThreadTeam team(threads);
  for (const std::uint64_t seed : {2u, 3u}) {
    const std::vector<PointId> order = random_order(rows, seed);
    edges.relabel(order, team);
    CHECK(same_edges(edges, built(joint, order, half, 1)));
  }
}

// Straight from the conditional probabilities, or by way of a matrix.
template <typename Real>
void check_both_ways(Size rows, Size neighbors, bool half, int threads) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> weight(0.1, 1);
  std::vector<PointId> indices;
  std::vector<Real> values;
  for (Size i = 0; i < rows; ++i) {
    for (Size e = 0; e < neighbors; ++e) {
      indices.push_back(static_cast<PointId>((i + 1 + e * (1 + i % 17)) % rows));
      values.push_back(static_cast<Real>(weight(random)));
    }
  }
  ThreadTeam team(threads);
  sort_by_column(indices.data(), values.data(), rows, neighbors, rows, team);
  const std::vector<PointId> order = random_order(rows, 4);
  for (const bool equal : {false, true}) {
    const Conditional<Real> C{indices.data(), values.data(), rows, neighbors, equal};
    SymmetrizedRows<Real> given(C, team);
    const Edges<Real> expected = built(collect<Real>(given, team), order, half, 1);
    for (const EdgeId group_edges : {SymmetrizedRows<Real>::kGroupEdges, EdgeId{20'000}}) {
      SymmetrizedRows<Real> P(C, team, group_edges);
      Edges<Real> edges;
      edges.build(P, order, half, team);
      CHECK(same_edges(edges, expected));
    }
  }
}

} // namespace

TEST(edges_hold_every_entry_of_P_once) {
  for_levels([] {
    for_reals([]<typename Real>() {
      for (const int threads : kThreadCounts) {
        check_edges<Real>(3001, false, threads);
        check_edges<Real>(3001, true, threads);
      }
    });
  });
}

// More points than 16 bits can name: some edges are far.
TEST(far_edges_are_kept) {
  check_edges<float>(150'000, true, 2);
  check_edges<double>(150'000, false, 2);
}

TEST(relabelled_edges_forget_their_former_labels) {
  for_levels([] {
    for_reals([]<typename Real>() {
      for (const int threads : kThreadCounts) {
        check_relabelling<Real>(3001, false, threads);
        check_relabelling<Real>(3001, true, threads);
      }
    });
  });
  check_relabelling<float>(100'000, true, 2);
  check_relabelling<double>(100'000, false, 3);
}

TEST(edges_need_no_matrix) {
  for_levels([] {
    for_reals([]<typename Real>() {
      for (const int threads : kThreadCounts) {
        check_both_ways<Real>(5000, 11, true, threads);
      }
    });
  });
  check_both_ways<float>(80'000, 5, true, 3);
  check_both_ways<float>(80'000, 5, false, 3);
}

// It moves nothing, and would look like padding.
TEST(edges_from_a_point_to_itself_are_left_out) {
  const Csr<float> joint{{0, 2, 4, 6}, {0, 1, 0, 1, 0, 2}, {0.1f, 0.2f, 0.2f, 0.1f, 0.3f, 0.1f}};
  const std::vector<PointId> order{2, 0, 1};
  Edges<float> edges = built(joint, order, false, 1);
  ThreadTeam team(1);
  edges.relabel(order, team);
  const EdgeView<float> view = edges.view();
  const auto row = [&](Size i) { return stored_row(view, i); };
  CHECK((row(0) == std::map<Size, double>{{1, static_cast<double>(0.3f)}}));
  CHECK((row(1) == std::map<Size, double>{{2, static_cast<double>(0.2f)}}));
  CHECK((row(2) == std::map<Size, double>{{1, static_cast<double>(0.2f)}}));
}

TEST(windows_cover_their_block_and_stay_inside) {
  for (const Size rows : {1, 255, 256, 65535, 65536, 65537, 100'000, 1'000'000}) {
    for (Size first = 0; first < rows; first += kEdgeBlockRows) {
      const Size window = edge_window(first, rows);
      CHECK(window >= 0);
      CHECK(window <= first);
      CHECK(std::min(first + kEdgeBlockRows, rows) <= window + kEdgeWindow);
      CHECK(window == 0 || window + kEdgeWindow <= rows);
    }
  }
}

int main() {
  return check::run_tests();
}
