// Step 2, second half, over several processes: P = (C + C^T) / sum.
//
// A process has its rows of C and needs its rows of C^T, which are columns of the others. They come
// in groups: for a slice of each process's rows,
//
// 0. once for all groups, the edges into each slice are counted;
// 1. every process sends each of the others the edges whose columns are in that one's slice; as the
//    rows of C are sorted, these are the next run of each row of what that one gets;
// 2. what arrives is in the order of rows of C, because processes own rows in their order, so that
//    a stable sort by column makes rows of C^T that are sorted;
// 3. these are merged with rows of C.
#include "affinities/exchanged_rows.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

namespace acctsne {
namespace {

// What is on its way, and sorted there, then takes little beside C and P. Each group looks at every
// row of C once.
constexpr Size kGroups = 32;

// Rows of C that one thread looks through at a time.
constexpr Size kRowsPerChunk = 1024;

} // namespace

template <typename Real>
ExchangedRows<Real>::ExchangedRows(const Conditional<Real>& own_rows, Size rows,
                                   Communicator& processes, ThreadTeam& team)
    : C_(own_rows), rows_(rows), processes_(processes),
      own_(rows_of(processes.rank(), processes.size(), rows)) {
  const double sum = C_.equal ? entries(team) : 2 * conditional_sum(team);
  scale_ = sum > 0 ? 1 / sum : 0;
}

template <typename Real>
void ExchangedRows<Real>::for_rows(ThreadTeam& team, const typename JointRows<Real>::Visit& visit) {
  std::vector<MergedRow<Real>> merged(at(team.size()));
  std::vector<TransposedEdge<Real>> edges;
  std::vector<std::size_t> starts;
  Runs runs = first_runs(team);
  for (Size group = 0; group < kGroups; ++group) {
    const Rows slice = slice_of(processes_.rank(), group);
    const std::vector<Edge> arrived = fetch(group, runs, team);
    // Shifted by two, so that after the scatter starts[i] is where row i begins.
    starts.assign(at(slice.end - slice.begin) + 2, 0);
    for (const Edge& edge : arrived) {
      ++starts[at(edge.column - slice.begin) + 2];
    }
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    edges.resize(arrived.size());
    for (const Edge& edge : arrived) {
      std::size_t& place = starts[at(edge.column - slice.begin) + 1];
      edges[place++] = {edge.row, edge.value};
    }
    parallel_for(team, slice, kJointBlockRows, [&](Size begin, Size end, int worker) {
      MergedRow<Real>& row = merged[at(worker)];
      for (Size i = begin; i < end; ++i) {
        const std::size_t* start = starts.data() + (i - slice.begin);
        const std::span<const TransposedEdge<Real>> others(edges.data() + start[0],
                                                           edges.data() + start[1]);
        visit(row.merge(C_, i - own_.begin, i, others, scale_), worker);
      }
    });
  }
}

// The rows of a process that belong to a group, in whole blocks of kJointBlockRows.
template <typename Real>
Rows ExchangedRows<Real>::slice_of(int rank, Size group) const {
  const Rows theirs = rows_of(rank, processes_.size(), rows_);
  const Size blocks = chunk_count(theirs.end - theirs.begin, kJointBlockRows);
  const auto first = [&](Size g) {
    return std::min(theirs.begin + blocks * g / kGroups * kJointBlockRows, theirs.end);
  };
  return {first(group), first(group + 1)};
}

// Where the edges for each process begin in each row, and how many there are for each slice.
template <typename Real>
typename ExchangedRows<Real>::Runs ExchangedRows<Real>::first_runs(ThreadTeam& team) const {
  const auto processes = static_cast<Size>(processes_.size());
  // Slices have whole blocks of rows, and so have processes.
  std::vector<std::uint32_t> slice_of_block(at(chunk_count(rows_, kJointBlockRows)));
  for (int rank = 0; rank < processes_.size(); ++rank) {
    for (Size group = 0; group < kGroups; ++group) {
      const Rows slice = slice_of(rank, group);
      std::fill(slice_of_block.begin() + slice.begin / kJointBlockRows,
                slice_of_block.begin() + chunk_count(slice.end, kJointBlockRows),
                static_cast<std::uint32_t>(rank * kGroups + group));
    }
  }
  const Size chunks = chunk_count(C_.rows, kRowsPerChunk);
  Runs runs{std::vector<std::uint32_t>(at(C_.rows * processes)),
            std::vector<std::uint32_t>(at(chunks * processes * kGroups), 0)};
  parallel_for(team, C_.rows, kRowsPerChunk, [&](Size begin, Size end) {
    std::uint32_t* counts = runs.counts.data() + begin / kRowsPerChunk * processes * kGroups;
    for (Size row = begin; row < end; ++row) {
      const PointId* columns = C_.columns_of(row);
      std::uint32_t* cursor = runs.cursors.data() + row * processes;
      for (int rank = 0; rank < processes_.size(); ++rank) {
        const PointId* first = std::lower_bound(columns, columns + C_.neighbors,
                                                rows_of(rank, processes_.size(), rows_).begin);
        *cursor++ = static_cast<std::uint32_t>(first - columns);
      }
      for (Size e = 0; e < C_.neighbors; ++e) {
        ++counts[slice_of_block[at(columns[e] / kJointBlockRows)]];
      }
    }
  });
  return runs;
}

// The edges of all processes whose columns are in this one's slice, by rows. Groups come in turn,
// each at the cursors that the one before has left.
template <typename Real>
std::vector<typename ExchangedRows<Real>::Edge> ExchangedRows<Real>::fetch(Size group, Runs& runs,
                                                                           ThreadTeam& team) {
  const auto processes = static_cast<Size>(processes_.size());
  const Size chunks = chunk_count(C_.rows, kRowsPerChunk);
  std::vector<Size> places(at(processes * chunks)); // where a chunk's next edge goes
  std::vector<Size> ends;
  std::vector<Size> slice_ends;
  Size total = 0;
  for (int rank = 0; rank < processes_.size(); ++rank) {
    for (Size chunk = 0; chunk < chunks; ++chunk) {
      places[at(chunk * processes + rank)] = total;
      total += runs.counts[at((chunk * processes + rank) * kGroups + group)];
    }
    ends.push_back(total);
    slice_ends.push_back(slice_of(rank, group).end);
  }
  std::vector<Edge> leaving(at(total));
  parallel_for(team, C_.rows, kRowsPerChunk, [&](Size begin, Size end) {
    Size* next = places.data() + begin / kRowsPerChunk * processes;
    for (Size row = begin; row < end; ++row) {
      const PointId* columns = C_.columns_of(row);
      const Real* values = C_.values_of(row);
      std::uint32_t* cursors = runs.cursors.data() + row * processes;
      for (Size rank = 0; rank < processes; ++rank) {
        Size e = cursors[rank];
        for (; e < C_.neighbors && columns[e] < slice_ends[at(rank)]; ++e) {
          leaving[at(next[rank]++)] = {static_cast<PointId>(own_.begin + row), columns[e],
                                       values[e]};
        }
        cursors[rank] = static_cast<std::uint32_t>(e);
      }
    }
  });
  return deliver(processes_, leaving, ends);
}

// The sum of C as one process adds it: in chunks of kSummedEdges that borders between processes may
// cut. A chunk is summed by who has its first edge; the others' beginnings are sent round for it.
template <typename Real>
double ExchangedRows<Real>::conditional_sum(ThreadTeam& team) {
  const auto edges_of = [&](int rank) {
    const Rows theirs = rows_of(rank, processes_.size(), rows_);
    return Rows{theirs.begin * C_.neighbors, theirs.end * C_.neighbors};
  };
  const auto head_end = [&](Rows edges) {
    return std::min(chunk_count(edges.begin, kSummedEdges) * kSummedEdges, edges.end);
  };
  // What each process has before its first whole chunk, one after the other.
  std::vector<Size> head_ends;
  std::vector<Size> partial_ends;
  Size heads = 0;
  Size my_head = 0;
  for (int rank = 0; rank < processes_.size(); ++rank) {
    const Rows edges = edges_of(rank);
    my_head = rank == processes_.rank() ? heads : my_head;
    heads += head_end(edges) - edges.begin;
    head_ends.push_back(heads);
    partial_ends.push_back(chunk_count(edges.end, kSummedEdges));
  }
  const Rows mine = edges_of(processes_.rank());
  std::vector<Real> head(at(heads));
  std::copy(C_.values, C_.values + (head_end(mine) - mine.begin), head.begin() + my_head);
  gather_items(processes_, head.data(), head_ends);

  const Size all_edges = rows_ * C_.neighbors;
  std::vector<double> partials(at(chunk_count(all_edges, kSummedEdges)), 0.0);
  const Size first_chunk = chunk_count(mine.begin, kSummedEdges);
  const Size chunks = chunk_count(mine.end, kSummedEdges) - first_chunk;
  const Size next_heads = my_head + head_end(mine) - mine.begin;
  team.for_chunks(chunks, [&](Size c, int) {
    const Size begin = (first_chunk + c) * kSummedEdges;
    const Size end = std::min(begin + kSummedEdges, all_edges);
    const Size here = std::min(end, mine.end);
    const double sum =
        std::accumulate(C_.values + (begin - mine.begin), C_.values + (here - mine.begin), 0.0);
    partials[at(first_chunk + c)] =
        std::accumulate(head.begin() + next_heads, head.begin() + next_heads + (end - here), sum);
  });
  gather_items(processes_, partials.data(), partial_ends);
  return std::accumulate(partials.begin(), partials.end(), 0.0);
}

template <typename Real>
double ExchangedRows<Real>::entries(ThreadTeam& team) {
  std::atomic<EdgeId> count{0};
  for_rows(team, [&](const JointRow<Real>& row, int) {
    count.fetch_add(static_cast<EdgeId>(row.columns.size()), std::memory_order_relaxed);
  });
  return static_cast<double>(sum(processes_, count));
}

template class ExchangedRows<float>;
template class ExchangedRows<double>;

} // namespace acctsne
