// Step 2, second half: P = (C + C^T) / sum.
//
// 1. Count how often each point is named as a neighbour; the running sum places the rows of C^T.
// 2. Scatter C into C^T. Threads race for the slots of a row, so its order is undone by step 3.
// 3. Sort each row of C and of C^T by column, merge the two, adding where both name a column;
//    count, then write.
// 4. Divide by the sum, taken in fixed chunks.
#include "affinities/symmetrize.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

namespace acctsne {
namespace {

constexpr Size kRowsPerChunk = 512;

template <typename Real>
struct Edge {
  PointId column;
  Real value;
  bool operator<(const Edge& other) const { return column < other.column; }
};

// Calls emit(column, value) for the union of two sorted rows.
template <typename Real, typename Emit>
void merge_rows(const Edge<Real>* a, const Edge<Real>* a_end, const Edge<Real>* b,
                const Edge<Real>* b_end, Emit&& emit) {
  while (a != a_end || b != b_end) {
    if (b == b_end || (a != a_end && a->column < b->column)) {
      emit(a->column, a->value);
      ++a;
    } else if (a == a_end || b->column < a->column) {
      emit(b->column, b->value);
      ++b;
    } else {
      emit(a->column, a->value + b->value);
      ++a;
      ++b;
    }
  }
}

} // namespace

template <typename Real>
Csr<Real> symmetrize(const PointId* indices, const Real* conditional, Size rows, Size neighbors,
                     ThreadTeam& team) {
  const auto n = static_cast<std::size_t>(rows);
  const Size edges = rows * neighbors;

  std::vector<std::atomic<EdgeId>> cursors(n);
  parallel_for(team, edges, kRowsPerChunk * 64, [&](Size begin, Size end) {
    for (Size e = begin; e < end; ++e) {
      cursors[static_cast<std::size_t>(indices[e])].fetch_add(1, std::memory_order_relaxed);
    }
  });
  std::vector<EdgeId> starts(n + 1, 0);
  for (std::size_t i = 0; i < n; ++i) {
    starts[i + 1] = starts[i] + cursors[i].load(std::memory_order_relaxed);
    cursors[i].store(starts[i], std::memory_order_relaxed);
  }

  const std::unique_ptr<Edge<Real>[]> transposed(new Edge<Real>[static_cast<std::size_t>(edges)]);
  parallel_for(team, rows, kRowsPerChunk, [&](Size begin, Size end) {
    for (Size i = begin; i < end; ++i) {
      for (Size e = i * neighbors; e < (i + 1) * neighbors; ++e) {
        const EdgeId slot =
            cursors[static_cast<std::size_t>(indices[e])].fetch_add(1, std::memory_order_relaxed);
        transposed[static_cast<std::size_t>(slot)] = {static_cast<PointId>(i), conditional[e]};
      }
    }
  });

  // Sorted copy of row i of C, in the worker's scratch.
  std::vector<std::vector<Edge<Real>>> scratch(static_cast<std::size_t>(team.size()));
  const auto sorted_row = [&](Size i, int worker) -> const std::vector<Edge<Real>>& {
    std::vector<Edge<Real>>& row = scratch[static_cast<std::size_t>(worker)];
    row.clear();
    for (Size e = i * neighbors; e < (i + 1) * neighbors; ++e) {
      row.push_back({indices[e], conditional[e]});
    }
    std::sort(row.begin(), row.end());
    return row;
  };
  const auto for_rows = [&](auto&& body) {
    team.for_chunks(chunk_count(rows, kRowsPerChunk), [&](Size chunk, int worker) {
      const Size end = std::min((chunk + 1) * kRowsPerChunk, rows);
      for (Size i = chunk * kRowsPerChunk; i < end; ++i) {
        body(i, worker);
      }
    });
  };
  const auto merge_row = [&](Size i, int worker, auto&& emit) {
    const std::vector<Edge<Real>>& own = sorted_row(i, worker);
    const auto at = static_cast<std::size_t>(i);
    merge_rows(own.data(), own.data() + own.size(), transposed.get() + starts[at],
               transposed.get() + starts[at + 1], emit);
  };

  Csr<Real> joint;
  joint.offsets.assign(n + 1, 0);
  for_rows([&](Size i, int worker) {
    const auto at = static_cast<std::size_t>(i);
    std::sort(transposed.get() + starts[at], transposed.get() + starts[at + 1]);
    EdgeId count = 0;
    merge_row(i, worker, [&](PointId, Real) { ++count; });
    joint.offsets[at + 1] = count;
  });
  for (std::size_t i = 0; i < n; ++i) {
    joint.offsets[i + 1] += joint.offsets[i];
  }
  joint.columns.resize(static_cast<std::size_t>(joint.offsets[n]));
  joint.values.resize(static_cast<std::size_t>(joint.offsets[n]));
  for_rows([&](Size i, int worker) {
    auto slot = static_cast<std::size_t>(joint.offsets[static_cast<std::size_t>(i)]);
    merge_row(i, worker, [&](PointId column, Real value) {
      joint.columns[slot] = column;
      joint.values[slot] = value;
      ++slot;
    });
  });

  std::vector<double> partials;
  const Size stored = static_cast<Size>(joint.values.size());
  constexpr Size kGrain = 65536;
  const double sum = parallel_sum(team, stored, kGrain, partials, [&](Size begin, Size end) {
    double part = 0;
    for (Size e = begin; e < end; ++e) {
      part += static_cast<double>(joint.values[static_cast<std::size_t>(e)]);
    }
    return part;
  });
  const double scale = sum > 0 ? 1 / sum : 0;
  parallel_for(team, stored, kGrain, [&](Size begin, Size end) {
    for (Size e = begin; e < end; ++e) {
      Real& value = joint.values[static_cast<std::size_t>(e)];
      value = static_cast<Real>(static_cast<double>(value) * scale);
    }
  });
  return joint;
}

template Csr<float> symmetrize(const PointId*, const float*, Size, Size, ThreadTeam&);
template Csr<double> symmetrize(const PointId*, const double*, Size, Size, ThreadTeam&);

} // namespace acctsne
