// The points of other processes that own edges lead to. They change when points are relabelled, and
// are asked for once; from then on their owners send their positions without being asked.
#include "forces/halo.hpp"

#include <algorithm>
#include <atomic>

namespace acctsne {
namespace {

constexpr Size kPointsPerChunk = 4096;

} // namespace

template <typename Real>
void Halo<Real>::build(const EdgeView<Real>& edges, Communicator& processes, ThreadTeam& team) {
  const Rows own = rows_of(processes, edges.rows);
  std::vector<std::atomic<bool>> named(at(edges.rows));
  parallel_for(team, own, kEdgeBlockRows, [&](Size begin, Size end) {
    const auto name = [&](Size point) {
      if (!own.has(point)) {
        named[at(point)].store(true, std::memory_order_relaxed);
      }
    };
    const Size window = edge_window(begin, edges.rows);
    if (!own.has(window) || !own.has(std::min(window + kEdgeWindow, edges.rows) - 1)) {
      for (EdgeId e = edges.near_offsets[begin]; e < edges.near_offsets[end]; ++e) {
        name(window + edges.near_columns[e]);
      }
    }
    for (EdgeId e = edges.far_offsets[begin]; e < edges.far_offsets[end]; ++e) {
      name(edges.far_columns[e]);
    }
  });
  foreign_.clear();
  foreign_ends_.clear();
  for (int rank = 0; rank < processes.size(); ++rank) {
    const Rows theirs = rows_of(rank, processes.size(), edges.rows);
    for (Size i = theirs.begin; i < theirs.end; ++i) {
      if (named[at(i)].load(std::memory_order_relaxed)) {
        foreign_.push_back(static_cast<PointId>(i));
      }
    }
    foreign_ends_.push_back(static_cast<Size>(foreign_.size()));
  }
  lent_ = deliver(processes, foreign_, foreign_ends_, &lent_ends_);
}

template <typename Real>
void Halo<Real>::fill(Real* points, int dims, Communicator& processes, ThreadTeam& team) {
  const auto values = [dims](const std::vector<PointId>& ids) { return ids.size() * at(dims); };
  out_.resize(values(lent_));
  in_.resize(values(foreign_));
  parallel_for(team, static_cast<Size>(lent_.size()), kPointsPerChunk, [&](Size begin, Size end) {
    for (Size i = begin; i < end; ++i) {
      const Size point = lent_[at(i)];
      std::copy_n(points + point * dims, dims, out_.data() + i * dims);
    }
  });
  exchange_items(processes, out_.data(), lent_ends_, in_.data(), foreign_ends_, dims);
  parallel_for(team, static_cast<Size>(foreign_.size()), kPointsPerChunk,
               [&](Size begin, Size end) {
                 for (Size i = begin; i < end; ++i) {
                   const Size point = foreign_[at(i)];
                   std::copy_n(in_.data() + i * dims, dims, points + point * dims);
                 }
               });
}

template class Halo<float>;
template class Halo<double>;

} // namespace acctsne
