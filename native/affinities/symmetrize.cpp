// Step 2, second half: P = (C + C^T) / sum.
//
// 1. Sort each row of C by column, with a radix sort: comparisons of random columns mispredict
// every
//    other time.
// 2. Sort all edges by blocks of columns: a histogram per chunk of rows, a running sum, a stable
//    scatter. The scatter writes to as many streams as there are blocks, which stay in cache;
//    straight to the rows of C^T every write would miss.
// 3. For each block, transpose its edges in cache: as the order is stable, rows of C^T come out
//    sorted. Merge them with the rows of C, adding where both name a column; first to count, then
//    to write.
// 4. Divide by the sum, taken in fixed chunks.
#include "affinities/symmetrize.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>
#include <vector>

namespace acctsne {
namespace {

constexpr Size kRowsPerChunk = 512;
constexpr int kBlockBits = 10;
constexpr Size kBlockColumns = Size{1} << kBlockBits;

template <typename Real>
struct Edge {
  PointId column;
  Real value;
};

constexpr int kDigitBits = 8;
constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;

// Sorts a row by column, least digit first. `column_bits` is how many bits columns have.
template <typename Real>
void sort_row(std::vector<Edge<Real>>& row, std::vector<Edge<Real>>& scratch, int column_bits) {
  scratch.resize(row.size());
  for (int shift = 0; shift < column_bits; shift += kDigitBits) {
    const auto digit = [shift](const Edge<Real>& edge) {
      return static_cast<std::size_t>(edge.column >> shift) & (kDigits - 1);
    };
    std::uint32_t places[kDigits] = {};
    for (const Edge<Real>& edge : row) {
      ++places[digit(edge)];
    }
    std::uint32_t start = 0;
    for (std::uint32_t& place : places) {
      start += std::exchange(place, start);
    }
    for (const Edge<Real>& edge : row) {
      scratch[places[digit(edge)]++] = edge;
    }
    row.swap(scratch);
  }
}

template <typename Real>
void sort_rows(PointId* indices, Real* conditional, Size rows, Size neighbors, ThreadTeam& team) {
  struct Scratch {
    std::vector<Edge<Real>> row;
    std::vector<Edge<Real>> other;
  };
  std::vector<Scratch> scratch(static_cast<std::size_t>(team.size()));
  const auto column_bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(rows)));
  team.for_chunks(chunk_count(rows, kRowsPerChunk), [&](Size chunk, int worker) {
    auto& [row, other] = scratch[static_cast<std::size_t>(worker)];
    row.resize(static_cast<std::size_t>(neighbors));
    const Size end = std::min((chunk + 1) * kRowsPerChunk, rows);
    for (Size i = chunk * kRowsPerChunk; i < end; ++i) {
      PointId* columns = indices + i * neighbors;
      Real* values = conditional + i * neighbors;
      for (std::size_t e = 0; e < row.size(); ++e) {
        row[e] = {columns[e], values[e]};
      }
      sort_row(row, other, column_bits);
      for (std::size_t e = 0; e < row.size(); ++e) {
        columns[e] = row[e].column;
        values[e] = row[e].value;
      }
    }
  });
}

// The edges of C in the order of their column's block, and of their row within it.
template <typename Real>
class BlockedEdges {
public:
  BlockedEdges(const PointId* indices, const Real* conditional, Size rows, Size neighbors,
               ThreadTeam& team)
      : blocks_(chunk_count(rows, kBlockColumns)),
        edges_(new Edge<Real>[static_cast<std::size_t>(rows * neighbors)]),
        columns_(new std::uint16_t[static_cast<std::size_t>(rows * neighbors)]),
        starts_(static_cast<std::size_t>(blocks_ + 1)) {
    const auto blocks = static_cast<std::size_t>(blocks_);
    const auto chunks = static_cast<std::size_t>(chunk_count(rows, kRowsPerChunk));
    std::vector<EdgeId> places(chunks * blocks, 0);
    const auto for_edges = [&](Size begin, Size end, auto&& visit) {
      EdgeId* place = places.data() + static_cast<std::size_t>(begin / kRowsPerChunk) * blocks;
      for (Size e = begin * neighbors; e < end * neighbors; ++e) {
        visit(place[indices[e] >> kBlockBits], e);
      }
    };
    parallel_for(team, rows, kRowsPerChunk, [&](Size begin, Size end) {
      for_edges(begin, end, [](EdgeId& place, Size) { ++place; });
    });
    EdgeId start = 0;
    for (std::size_t block = 0; block < blocks; ++block) {
      starts_[block] = start;
      for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
        start += std::exchange(places[chunk * blocks + block], start);
      }
    }
    starts_[blocks] = start;
    parallel_for(team, rows, kRowsPerChunk, [&](Size begin, Size end) {
      for_edges(begin, end, [&](EdgeId& place, Size e) {
        edges_[static_cast<std::size_t>(place)] = {static_cast<PointId>(e / neighbors),
                                                   conditional[e]};
        columns_[static_cast<std::size_t>(place)] =
            static_cast<std::uint16_t>(indices[e] & (kBlockColumns - 1));
        ++place;
      });
    });
  }

  Size blocks() const { return blocks_; }

  // The rows of C^T that belong to a block: edges, and where each row begins.
  struct Rows {
    std::vector<Edge<Real>> edges;
    std::vector<EdgeId> starts;
  };
  void transpose(Size block, Rows& rows) const {
    const EdgeId begin = starts_[static_cast<std::size_t>(block)];
    const EdgeId end = starts_[static_cast<std::size_t>(block + 1)];
    rows.edges.resize(static_cast<std::size_t>(end - begin));
    rows.starts.assign(kBlockColumns + 2, 0);
    // Shifted by two, so that after the scatter starts[c] is where row c begins.
    for (EdgeId e = begin; e < end; ++e) {
      ++rows.starts[columns_[static_cast<std::size_t>(e)] + 2u];
    }
    for (std::size_t c = 2; c < rows.starts.size(); ++c) {
      rows.starts[c] += rows.starts[c - 1];
    }
    for (EdgeId e = begin; e < end; ++e) {
      EdgeId& place = rows.starts[columns_[static_cast<std::size_t>(e)] + 1u];
      rows.edges[static_cast<std::size_t>(place++)] = edges_[static_cast<std::size_t>(e)];
    }
  }

private:
  Size blocks_;
  std::unique_ptr<Edge<Real>[]> edges_; // the edge's row, in the place of a column, and its value
  std::unique_ptr<std::uint16_t[]> columns_; // counted from the block's first
  std::vector<EdgeId> starts_;
};

// Calls emit(column, value) for the union of two sorted rows. Without a branch on which of them is
// next, which nothing could predict.
template <typename Real, typename Emit>
void merge_rows(const PointId* columns, const Real* values, Size count, const Edge<Real>* other,
                const Edge<Real>* other_end, Emit&& emit) {
  Size e = 0;
  while (e < count && other != other_end) {
    const bool mine = columns[e] <= other->column;
    const bool theirs = other->column <= columns[e];
    emit(mine ? columns[e] : other->column,
         (mine ? values[e] : Real(0)) + (theirs ? other->value : Real(0)));
    e += mine;
    other += theirs;
  }
  for (; e < count; ++e) {
    emit(columns[e], values[e]);
  }
  for (; other != other_end; ++other) {
    emit(other->column, other->value);
  }
}

template <typename Real>
void normalize(std::vector<Real>& values, ThreadTeam& team) {
  constexpr Size kGrain = 65536;
  const Size count = static_cast<Size>(values.size());
  std::vector<double> partials;
  const double sum = parallel_sum(team, count, kGrain, partials, [&](Size begin, Size end) {
    double part = 0;
    for (Size e = begin; e < end; ++e) {
      part += static_cast<double>(values[static_cast<std::size_t>(e)]);
    }
    return part;
  });
  const double scale = sum > 0 ? 1 / sum : 0;
  parallel_for(team, count, kGrain, [&](Size begin, Size end) {
    for (Size e = begin; e < end; ++e) {
      Real& value = values[static_cast<std::size_t>(e)];
      value = static_cast<Real>(static_cast<double>(value) * scale);
    }
  });
}

} // namespace

template <typename Real>
Csr<Real> symmetrize(PointId* indices, Real* conditional, Size rows, Size neighbors,
                     ThreadTeam& team) {
  sort_rows(indices, conditional, rows, neighbors, team);
  const BlockedEdges<Real> blocked(indices, conditional, rows, neighbors, team);

  std::vector<typename BlockedEdges<Real>::Rows> scratch(static_cast<std::size_t>(team.size()));
  // Calls visit(row, columns, values, other, other_end) with each row of C and of C^T.
  const auto for_rows = [&](auto&& visit) {
    team.for_chunks(blocked.blocks(), [&](Size block, int worker) {
      auto& transposed = scratch[static_cast<std::size_t>(worker)];
      blocked.transpose(block, transposed);
      const Size begin = block * kBlockColumns;
      const Size end = std::min(begin + kBlockColumns, rows);
      for (Size i = begin; i < end; ++i) {
        const auto local = static_cast<std::size_t>(i - begin);
        const Edge<Real>* edges = transposed.edges.data();
        visit(i, indices + i * neighbors, conditional + i * neighbors,
              edges + transposed.starts[local], edges + transposed.starts[local + 1]);
      }
    });
  };

  Csr<Real> joint;
  joint.offsets.assign(static_cast<std::size_t>(rows + 1), 0);
  for_rows([&](Size i, const PointId* columns, const Real* values, const Edge<Real>* other,
               const Edge<Real>* other_end) {
    EdgeId count = 0;
    merge_rows(columns, values, neighbors, other, other_end, [&](PointId, Real) { ++count; });
    joint.offsets[static_cast<std::size_t>(i + 1)] = count;
  });
  for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i) {
    joint.offsets[i + 1] += joint.offsets[i];
  }
  joint.columns.resize(static_cast<std::size_t>(joint.offsets.back()));
  joint.values.resize(static_cast<std::size_t>(joint.offsets.back()));
  for_rows([&](Size i, const PointId* columns, const Real* values, const Edge<Real>* other,
               const Edge<Real>* other_end) {
    auto slot = static_cast<std::size_t>(joint.offsets[static_cast<std::size_t>(i)]);
    merge_rows(columns, values, neighbors, other, other_end, [&](PointId column, Real value) {
      joint.columns[slot] = column;
      joint.values[slot] = value;
      ++slot;
    });
  });
  normalize(joint.values, team);
  return joint;
}

template Csr<float> symmetrize(PointId*, float*, Size, Size, ThreadTeam&);
template Csr<double> symmetrize(PointId*, double*, Size, Size, ThreadTeam&);

} // namespace acctsne
