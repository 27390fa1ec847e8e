// Step 2, second half, over several processes: P = (C + C^T) / sum.
//
// A process has its rows of C and needs its rows of C^T, which are columns of the others. They come
// in groups: for a slice of each process's rows,
//
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

// What is on its way, and sorted there, then takes little beside C and P.
constexpr Size kGroups = 64;

// Rows of C that one thread looks through at a time.
constexpr Size kRowsPerChunk = 512;

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
  std::vector<MergedRow<Real>> merged(static_cast<std::size_t>(team.size()));
  std::vector<TransposedEdge<Real>> edges;
  std::vector<std::size_t> starts;
  std::vector<std::uint32_t> cursors = first_runs(team);
  for (Size group = 0; group < kGroups; ++group) {
    const Rows slice = slice_of(processes_.rank(), group);
    const std::vector<Edge> arrived = fetch(group, cursors, team);
    // Shifted by two, so that after the scatter starts[i] is where row i begins.
    starts.assign(static_cast<std::size_t>(slice.end - slice.begin) + 2, 0);
    for (const Edge& edge : arrived) {
      ++starts[static_cast<std::size_t>(edge.column - slice.begin) + 2];
    }
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    edges.resize(arrived.size());
    for (const Edge& edge : arrived) {
      std::size_t& place = starts[static_cast<std::size_t>(edge.column - slice.begin) + 1];
      edges[place++] = {edge.row, edge.value};
    }
    team.for_chunks(chunk_count(slice.end - slice.begin, kJointBlockRows),
                    [&](Size block, int worker) {
                      MergedRow<Real>& row = merged[static_cast<std::size_t>(worker)];
                      const Size begin = slice.begin + block * kJointBlockRows;
                      const Size end = std::min(begin + kJointBlockRows, slice.end);
                      for (Size i = begin; i < end; ++i) {
                        const auto at = static_cast<std::size_t>(i - slice.begin);
                        const std::span<const TransposedEdge<Real>> others(
                            edges.data() + starts[at], edges.data() + starts[at + 1]);
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

// Where the edges for each process begin, in each row.
template <typename Real>
std::vector<std::uint32_t> ExchangedRows<Real>::first_runs(ThreadTeam& team) const {
  const auto processes = static_cast<std::size_t>(processes_.size());
  std::vector<std::uint32_t> cursors(static_cast<std::size_t>(C_.rows) * processes);
  parallel_for(team, C_.rows, kRowsPerChunk, [&](Size begin, Size end) {
    for (Size row = begin; row < end; ++row) {
      const PointId* columns = C_.columns_of(row);
      std::uint32_t* cursor = cursors.data() + static_cast<std::size_t>(row) * processes;
      for (int rank = 0; rank < processes_.size(); ++rank) {
        const PointId* first = std::lower_bound(columns, columns + C_.neighbors,
                                                rows_of(rank, processes_.size(), rows_).begin);
        *cursor++ = static_cast<std::uint32_t>(first - columns);
      }
    }
  });
  return cursors;
}

// The edges of all processes whose columns are in this one's slice, by rows. Groups come in turn,
// each at the cursors that the one before has left.
template <typename Real>
std::vector<typename ExchangedRows<Real>::Edge>
ExchangedRows<Real>::fetch(Size group, std::vector<std::uint32_t>& cursors, ThreadTeam& team) {
  const auto processes = static_cast<std::size_t>(processes_.size());
  std::vector<Size> slice_ends;
  for (int rank = 0; rank < processes_.size(); ++rank) {
    slice_ends.push_back(slice_of(rank, group).end);
  }
  // Calls body(process, cursor, last edge) for the runs of a row.
  const auto for_runs = [&](Size row, auto&& body) {
    const PointId* columns = C_.columns_of(row);
    std::uint32_t* cursor = cursors.data() + static_cast<std::size_t>(row) * processes;
    for (std::size_t r = 0; r < processes; ++r) {
      auto last = static_cast<Size>(cursor[r]);
      while (last < C_.neighbors && columns[last] < slice_ends[r]) {
        ++last;
      }
      body(r, cursor[r], last);
    }
  };
  // By process and chunk of rows: how many edges, then where the next one goes.
  const auto chunks = static_cast<std::size_t>(chunk_count(C_.rows, kRowsPerChunk));
  std::vector<Size> places(processes * chunks, 0);
  parallel_for(team, C_.rows, kRowsPerChunk, [&](Size begin, Size end) {
    Size* counts = places.data() + begin / kRowsPerChunk;
    for (Size row = begin; row < end; ++row) {
      for_runs(row, [&](std::size_t r, std::uint32_t cursor, Size last) {
        counts[r * chunks] += last - Size{cursor};
      });
    }
  });
  std::vector<Size> ends(processes);
  Size total = 0;
  for (std::size_t r = 0; r < processes; ++r) {
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      total += std::exchange(places[r * chunks + chunk], total);
    }
    ends[r] = total;
  }
  std::vector<Edge> leaving(static_cast<std::size_t>(total));
  parallel_for(team, C_.rows, kRowsPerChunk, [&](Size begin, Size end) {
    Size* next = places.data() + begin / kRowsPerChunk;
    for (Size row = begin; row < end; ++row) {
      for_runs(row, [&](std::size_t r, std::uint32_t& cursor, Size last) {
        for (Size e = std::exchange(cursor, static_cast<std::uint32_t>(last)); e < last; ++e) {
          leaving[static_cast<std::size_t>(next[r * chunks]++)] = {
              static_cast<PointId>(own_.begin + row), C_.columns_of(row)[e], C_.values_of(row)[e]};
        }
      });
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
    head_ends.push_back(heads * static_cast<Size>(sizeof(Real)));
    partial_ends.push_back(chunk_count(edges.end, kSummedEdges) *
                           static_cast<Size>(sizeof(double)));
  }
  const Rows mine = edges_of(processes_.rank());
  std::vector<Real> head(static_cast<std::size_t>(heads));
  std::copy(C_.values, C_.values + (head_end(mine) - mine.begin), head.begin() + my_head);
  processes_.gather(reinterpret_cast<std::byte*>(head.data()), head_ends);

  const Size all_edges = rows_ * C_.neighbors;
  std::vector<double> partials(static_cast<std::size_t>(chunk_count(all_edges, kSummedEdges)), 0.0);
  const Size first_chunk = chunk_count(mine.begin, kSummedEdges);
  const Size chunks = chunk_count(mine.end, kSummedEdges) - first_chunk;
  const Size next_heads = my_head + head_end(mine) - mine.begin;
  team.for_chunks(chunks, [&](Size c, int) {
    const Size begin = (first_chunk + c) * kSummedEdges;
    const Size end = std::min(begin + kSummedEdges, all_edges);
    const Size here = std::min(end, mine.end);
    const double sum =
        std::accumulate(C_.values + (begin - mine.begin), C_.values + (here - mine.begin), 0.0);
    partials[static_cast<std::size_t>(first_chunk + c)] =
        std::accumulate(head.begin() + next_heads, head.begin() + next_heads + (end - here), sum);
  });
  processes_.gather(reinterpret_cast<std::byte*>(partials.data()), partial_ends);
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
