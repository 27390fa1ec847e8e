// Step 2, second half: P = (C + C^T) / sum.
//
// 1. Count the edges of C by chunks of rows and blocks of columns.
// 2. Sort them by blocks of columns: running sums of the counts, a stable scatter. The scatter
//    writes to as many streams as there are blocks, which stay in cache; straight to the rows of
//    C^T every write would miss. Where C is large, this is done for a group of blocks at a time; as
//    rows ascend, its edges are the next piece of each row.
// 3. For each block, transpose its edges in cache: as the order is stable, rows of C^T come out
//    sorted. Merge them with the rows of C, adding where both name a column.
//
// Each edge of C is in P twice, so that the sum of P is twice that of C.
#include "affinities/symmetrize.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <numeric>
#include <utility>

namespace acctsne {
namespace {

// Columns of a block, as a power of two: as many as leave about kBlocks of them, so that many
// threads have even shares.
constexpr int kSmallestBlockBits = 8;
constexpr int kLargestBlockBits = 10;
constexpr Size kBlocks = 256;
static_assert((1 << kSmallestBlockBits) % kJointBlockRows == 0);

int block_bits(Size rows) {
  const auto bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(rows / kBlocks)));
  return std::clamp(bits, kSmallestBlockBits, kLargestBlockBits);
}

// P is read twice or more. Where C is one group of so few edges, its rows are kept when they are
// made first.
constexpr EdgeId kKeptEdges = EdgeId{1} << 21;

// Chunks are not so many that their counts take much memory, nor so small as to be all overhead.
constexpr Size kMostChunks = 256;
constexpr Size kFewestChunkRows = 512;

// Where C is large, this part of its edges is transposed at a time.
constexpr EdgeId kParts = 16;

} // namespace

template <typename Real>
SymmetrizedRows<Real>::SymmetrizedRows(const Conditional<Real>& conditional, ThreadTeam& team,
                                       EdgeId group_edges)
    : C_(conditional), block_bits_(block_bits(conditional.rows)),
      blocks_(chunk_count(conditional.rows, block_columns())),
      chunk_rows_(std::max(kFewestChunkRows, chunk_count(conditional.rows, kMostChunks))),
      cursors_(at(conditional.rows)) {
  const Step step("symmetrisation");
  count_edges(team);
  make_groups(std::max(group_edges, C_.rows * C_.neighbors / kParts));
  const double sum = C_.equal ? entries(team) : 2 * conditional_sum(team);
  scale_ = sum > 0 ? 1 / sum : 0;
  if (groups_.size() == 1 && groups_.front().edges <= kKeptEdges) {
    kept_.resize(at(blocks_));
  }
}

template <typename Real>
void SymmetrizedRows<Real>::for_rows(ThreadTeam& team,
                                     const typename JointRows<Real>::Visit& visit) {
  const Step step("symmetrisation");
  if (all_kept_) {
    team.for_chunks(blocks_, [&](Size block, int worker) { visit_kept(block, visit, worker); });
    return;
  }
  std::vector<Scratch> scratch(at(team.size()));
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    gather(g, team);
    const Group& group = groups_[g];
    team.for_chunks(group.end - group.begin, [&](Size b, int worker) {
      Scratch& own = scratch[at(worker)];
      transpose(b, own);
      const Size begin = (group.begin + b) * block_columns();
      const Size end = std::min(begin + block_columns(), C_.rows);
      KeptBlock* kept = kept_.empty() ? nullptr : &kept_[at(group.begin + b)];
      if (kept != nullptr) {
        *kept = {};
      }
      for (Size i = begin; i < end; ++i) {
        const EdgeId* start = own.starts.data() + (i - begin);
        const std::span<const TransposedEdge<Real>> others(own.edges.data() + start[0],
                                                           own.edges.data() + start[1]);
        const JointRow<Real> row = own.row.merge(C_, i, i, others, scale_);
        if (kept != nullptr) {
          kept->add(row);
        }
        visit(row, worker);
      }
    });
  }
  all_kept_ = !kept_.empty();
}

template <typename Real>
void SymmetrizedRows<Real>::visit_kept(Size block, const typename JointRows<Real>::Visit& visit,
                                       int worker) const {
  const KeptBlock& kept = kept_[at(block)];
  std::size_t begin = 0;
  Size row = block * block_columns();
  for (const std::size_t end : kept.ends) {
    const std::span<const PointId> columns(kept.columns);
    const std::span<const Real> values(kept.values);
    visit({row++, columns.subspan(begin, end - begin), values.subspan(begin, end - begin)}, worker);
    begin = end;
  }
}

template <typename Real>
void SymmetrizedRows<Real>::count_edges(ThreadTeam& team) {
  const auto blocks = static_cast<std::size_t>(blocks_);
  counts_.assign(at(chunk_count(C_.rows, chunk_rows_)) * blocks, 0);
  parallel_for(team, C_.rows, chunk_rows_, [&](Size begin, Size end) {
    EdgeId* counts = counts_.data() + at(begin / chunk_rows_) * blocks;
    for (Size e = begin * C_.neighbors; e < end * C_.neighbors; ++e) {
      ++counts[C_.indices[e] >> block_bits_];
    }
  });
}

template <typename Real>
void SymmetrizedRows<Real>::make_groups(EdgeId most) {
  EdgeId largest = 0;
  for (Size block = 0; block < blocks_; ++block) {
    EdgeId edges = 0;
    for (std::size_t count = at(block); count < counts_.size(); count += at(blocks_)) {
      edges += counts_[count];
    }
    if (groups_.empty() || groups_.back().edges + edges > most) {
      groups_.push_back({block, block, 0});
    }
    groups_.back().end = block + 1;
    groups_.back().edges += edges;
    largest = std::max(largest, groups_.back().edges);
  }
  edges_.reset(new TransposedEdge<Real>[at(largest)]);
  columns_.reset(new std::uint16_t[at(largest)]);
}

// Brings the edges of a group of columns together. Groups come in turn, each at the cursors that
// the one before has left.
template <typename Real>
void SymmetrizedRows<Real>::gather(std::size_t g, ThreadTeam& team) {
  if (std::exchange(gathered_, g) == g) {
    return;
  }
  if (g == 0) {
    std::fill(cursors_.begin(), cursors_.end(), 0);
  }
  const Group& group = groups_[g];
  const auto width = static_cast<std::size_t>(group.end - group.begin);
  const auto chunks = static_cast<std::size_t>(chunk_count(C_.rows, chunk_rows_));
  std::vector<EdgeId> places(chunks * width);
  starts_.resize(width + 1);
  EdgeId start = 0;
  for (std::size_t block = 0; block < width; ++block) {
    starts_[block] = start;
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      places[chunk * width + block] = start;
      start += counts_[chunk * at(blocks_) + at(group.begin) + block];
    }
  }
  starts_[width] = start;

  const Size columns_end = group.end * block_columns();
  parallel_for(team, C_.rows, chunk_rows_, [&](Size begin, Size end) {
    EdgeId* place = places.data() + at(begin / chunk_rows_) * width;
    for (Size i = begin; i < end; ++i) {
      const PointId* columns = C_.columns_of(i);
      const Real* values = C_.values_of(i);
      std::uint32_t& cursor = cursors_[at(i)];
      Size e = cursor;
      for (; e < C_.neighbors && columns[e] < columns_end; ++e) {
        const auto to = at(place[(columns[e] >> block_bits_) - group.begin]++);
        edges_[to] = {static_cast<PointId>(i), values[e]};
        columns_[to] = static_cast<std::uint16_t>(columns[e] & (block_columns() - 1));
      }
      cursor = static_cast<std::uint32_t>(e);
    }
  });
}

// Makes the rows of C^T that belong to a block of the gathered group.
template <typename Real>
void SymmetrizedRows<Real>::transpose(Size block, Scratch& scratch) const {
  const EdgeId begin = starts_[at(block)];
  const EdgeId end = starts_[at(block + 1)];
  scratch.edges.resize(at(end - begin));
  scratch.starts.assign(at(block_columns()) + 2, 0);
  // Shifted by two, so that after the scatter starts[c] is where row c begins.
  for (EdgeId e = begin; e < end; ++e) {
    ++scratch.starts[columns_[at(e)] + 2u];
  }
  for (std::size_t c = 2; c < scratch.starts.size(); ++c) {
    scratch.starts[c] += scratch.starts[c - 1];
  }
  for (EdgeId e = begin; e < end; ++e) {
    EdgeId& place = scratch.starts[columns_[at(e)] + 1u];
    scratch.edges[at(place++)] = edges_[at(e)];
  }
}

template <typename Real>
double SymmetrizedRows<Real>::conditional_sum(ThreadTeam& team) const {
  std::vector<double> partials;
  const Size edges = C_.rows * C_.neighbors;
  return parallel_sum(team, edges, kSummedEdges, partials, [&](Size begin, Size end) {
    return std::accumulate(C_.values + begin, C_.values + end, 0.0);
  });
}

template <typename Real>
double SymmetrizedRows<Real>::entries(ThreadTeam& team) {
  std::atomic<EdgeId> count{0};
  for_rows(team, [&](const JointRow<Real>& row, int) {
    count.fetch_add(static_cast<EdgeId>(row.columns.size()), std::memory_order_relaxed);
  });
  return static_cast<double>(count);
}

template <typename Real>
Csr<Real> collect(JointRows<Real>& P, ThreadTeam& team) {
  Csr<Real> matrix;
  matrix.offsets.assign(at(P.rows() + 1), 0);
  P.for_rows(team, [&](const JointRow<Real>& row, int) {
    matrix.offsets[at(row.row + 1)] = static_cast<EdgeId>(row.columns.size());
  });
  std::partial_sum(matrix.offsets.begin(), matrix.offsets.end(), matrix.offsets.begin());
  matrix.columns.resize(at(matrix.offsets.back()));
  matrix.values.resize(at(matrix.offsets.back()));
  P.for_rows(team, [&](const JointRow<Real>& row, int) {
    const EdgeId first = matrix.offsets[at(row.row)];
    std::copy(row.columns.begin(), row.columns.end(), matrix.columns.begin() + first);
    std::copy(row.values.begin(), row.values.end(), matrix.values.begin() + first);
  });
  return matrix;
}

template class SymmetrizedRows<float>;
template class SymmetrizedRows<double>;
template Csr<float> collect(JointRows<float>&, ThreadTeam&);
template Csr<double> collect(JointRows<double>&, ThreadTeam&);

} // namespace acctsne
