// The compact form of P against P itself.
#include "forces/edges.hpp"

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

template <typename Real>
void check_edges(Size rows, bool half, int threads) {
  const Csr<Real> joint = make_joint<Real>(rows, 7);
  std::vector<PointId> order(at(rows));
  std::iota(order.begin(), order.end(), PointId{0});
  std::mt19937_64 random(3);
  std::shuffle(order.begin(), order.end(), random);
  std::vector<PointId> label(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    label[static_cast<std::size_t>(order[i])] = static_cast<PointId>(i);
  }

  ThreadTeam team(threads);
  Edges<Real> edges;
  edges.build(joint.view(), order, half, team);
  const EdgeView<Real> view = edges.view();
  CHECK_EQUAL(view.rows, rows);
  // Eleven bits of the value, where it is not far below the largest.
  const double tolerance = view.half_scale != Real(0) ? 0x1p-11 : 0;
  for (Size i = 0; i < rows; ++i) {
    const std::map<Size, double> row = stored_row(view, i);
    const auto old = static_cast<std::size_t>(order[at(i)]);
    CHECK_EQUAL(static_cast<EdgeId>(row.size()), joint.offsets[old + 1] - joint.offsets[old]);
    for (EdgeId e = joint.offsets[old]; e < joint.offsets[old + 1]; ++e) {
      const auto found = row.find(label[static_cast<std::size_t>(joint.columns[at(e)])]);
      CHECK(found != row.end());
      const auto p = static_cast<double>(joint.values[at(e)]);
      if (found != row.end()) {
        CHECK_NEAR(found->second, p, tolerance * p);
      }
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
