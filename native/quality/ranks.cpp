// Ranks of asked points, by the distances of a few points at a time from all references.
#include "quality/ranks.hpp"

#include "kernels/dispatch.hpp"

#include <algorithm>
#include <cstddef>

namespace acctsne {
namespace {

constexpr Size kLineBytes = 64;
constexpr Size kPointsPerChunk = 16;

// References whose distances from the points of a chunk are computed before the next ones are
// loaded: they stay in a core's own cache.
constexpr Size kBlockBytes = 1 << 18;

struct alignas(kLineBytes) Line {
  std::byte bytes[kLineBytes];
};

// Rows that zeros fill to whole cache lines, as the kernel wants them.
template <typename Data>
class FilledRows {
public:
  FilledRows(Size rows, Size features)
      : features_(features), lines_(chunk_count(features * Size{sizeof(Data)}, kLineBytes)),
        memory_(at(rows * lines_)) {}

  Size length() const { return lines_ * kLineBytes / Size{sizeof(Data)}; }
  const Data* row(Size i) const {
    return reinterpret_cast<const Data*>(memory_.data() + i * lines_);
  }
  void read(Size i, const PointSet<Data>& points, PointId id) {
    auto* to = reinterpret_cast<Data*>(memory_.data() + i * lines_);
    points.read(id, to);
    std::fill(to + features_, to + length(), Data(0));
  }

private:
  Size features_;
  Size lines_;
  std::vector<Line> memory_;
};

// A reference that is nearer than some threshold, and the first such threshold.
struct Near {
  std::size_t reference;
  std::size_t bin;
};

// An asked point beyond the known ones.
template <typename Data>
struct Threshold {
  Data distance;
  PointId id;
  Size position; // among those asked
};

template <typename Data>
struct Worker {
  Worker(const RankRequest<Data>& request)
      : points(kPointsPerChunk, request.points.features),
        asked(request.asked_each, request.points.features),
        distances(at(kPointsPerChunk) * request.references.size()),
        asked_distances(at(request.asked_each)), rank_of(at(request.points.rows)),
        by_reference(request.references.size() * request.sizes.size()) {}

  FilledRows<Data> points;
  FilledRows<Data> asked;            // those beyond the known ones
  std::vector<Data> distances;       // of the chunk's points from all references
  std::vector<Data> asked_distances; // of the point at hand
  std::vector<PointId> rank_of;      // of every row, for the point at hand; 0 if not known
  std::vector<Threshold<Data>> thresholds;
  std::vector<Data> limits;         // their distances, ascending
  std::vector<Near> near;           // beyond the known ones
  std::vector<std::int64_t> counts; // of those, in each bin
  std::vector<std::int64_t> nearer; // thresholds from each bin on, within the size at hand
  std::vector<std::int64_t> by_reference;
};

template <typename Data>
class RankCounter {
public:
  RankCounter(const RankRequest<Data>& request, ThreadTeam& team)
      : request_(request),
        references_(static_cast<Size>(request.references.size()), request.points.features) {
    const auto values = static_cast<std::size_t>(request.points.rows) * request.sizes.size();
    ranks_.kept.resize(values);
    ranks_.penalties.resize(values);
    ranks_.variances.resize(values);
    parallel_for(team, reference_count(), 64, [&](Size begin, Size end) {
      for (Size r = begin; r < end; ++r) {
        references_.read(r, request_.points, request_.references[at(r)]);
      }
    });
    is_reference_.resize(at(request.points.rows));
    for (const PointId id : request.references) {
      is_reference_[at(id)] = 1;
    }
    for (int w = 0; w < team.size(); ++w) {
      workers_.emplace_back(request);
    }
  }

  Ranks run(ThreadTeam& team) {
    parallel_for(team, request_.points.rows, kPointsPerChunk, [&](Size begin, Size end, int w) {
      Worker<Data>& worker = workers_[at(w)];
      measure(begin, end, worker, team, w);
      for (Size i = begin; i < end && !team.should_stop(w); ++i) {
        judge(i, worker.distances.data() + (i - begin) * reference_count(), worker);
      }
      if (request_.done) {
        request_.done->fetch_add(end - begin, std::memory_order_relaxed);
      }
    });
    // Whole numbers: their sum does not depend on who counted what.
    ranks_.by_reference.assign(request_.references.size() * request_.sizes.size(), 0);
    for (const Worker<Data>& worker : workers_) {
      std::transform(worker.by_reference.begin(), worker.by_reference.end(),
                     ranks_.by_reference.begin(), ranks_.by_reference.begin(), std::plus<>());
    }
    return std::move(ranks_);
  }

private:
  Size reference_count() const { return static_cast<Size>(request_.references.size()); }

  // Distances of points [begin, end) from all references.
  void measure(Size begin, Size end, Worker<Data>& worker, ThreadTeam& team, int w) const {
    for (Size i = begin; i < end; ++i) {
      worker.points.read(i - begin, request_.points, static_cast<PointId>(i));
    }
    const Size length = references_.length();
    const Size block = std::max<Size>(1, kBlockBytes / (length * Size{sizeof(Data)}));
    for (Size r = 0; r < reference_count() && !team.should_stop(w); r += block) {
      const Size count = std::min(block, reference_count() - r);
      kernel_.squared_distances_of_all({worker.points.row(0), end - begin},
                                       {references_.row(r), count}, length,
                                       worker.distances.data() + r, reference_count());
    }
  }

  void judge(Size i, const Data* distances, Worker<Data>& worker) {
    const std::span<const PointId> nearest(request_.nearest + i * request_.known,
                                           at(request_.known));
    // References that count: neither known nor the point itself.
    Size counted = reference_count() - is_reference_[at(i)];
    PointId rank = 0;
    for (const PointId id : nearest) {
      worker.rank_of[at(id)] = ++rank;
      counted -= is_reference_[at(id)];
    }
    find_thresholds(i, worker);
    find_near(i, distances, worker);
    for (std::size_t s = 0; s < request_.sizes.size(); ++s) {
      judge(i, s, counted, worker);
    }
    for (const PointId id : nearest) {
      worker.rank_of[at(id)] = 0;
    }
  }

  void find_thresholds(Size i, Worker<Data>& worker) const {
    worker.thresholds.clear();
    for (Size p = 0; p < request_.asked_each; ++p) {
      const PointId id = request_.asked[i * request_.asked_each + p];
      if (worker.rank_of[at(id)] == 0) {
        worker.asked.read(static_cast<Size>(worker.thresholds.size()), request_.points, id);
        worker.thresholds.push_back({Data(0), id, p});
      }
    }
    kernel_.squared_distances_of_all(
        {worker.points.row(i % kPointsPerChunk), 1},
        {worker.asked.row(0), static_cast<Size>(worker.thresholds.size())}, worker.asked.length(),
        worker.asked_distances.data(), request_.asked_each);
    for (std::size_t t = 0; t < worker.thresholds.size(); ++t) {
      worker.thresholds[t].distance = worker.asked_distances[t];
    }
    std::sort(worker.thresholds.begin(), worker.thresholds.end(),
              [](const Threshold<Data>& a, const Threshold<Data>& b) {
                return a.distance < b.distance || (a.distance == b.distance && a.id < b.id);
              });
    worker.limits.clear();
    for (const Threshold<Data>& threshold : worker.thresholds) {
      worker.limits.push_back(threshold.distance);
    }
  }

  // Puts references into bins. Most are beyond all thresholds if the map is good.
  void find_near(Size i, const Data* distances, Worker<Data>& worker) const {
    worker.near.clear();
    worker.counts.assign(worker.limits.size() + 1, 0);
    if (worker.limits.empty()) {
      return;
    }
    const Data farthest = worker.limits.back();
    for (std::size_t r = 0; r < request_.references.size(); ++r) {
      const PointId id = request_.references[r];
      if (distances[r] <= farthest && id != i && worker.rank_of[at(id)] == 0) {
        const std::size_t bin = bin_of(distances[r], id, worker);
        worker.near.push_back({r, bin});
        ++worker.counts[bin];
      }
    }
  }

  // The first threshold that a reference is nearer than; the number of them if there is none.
  static std::size_t bin_of(Data distance, PointId id, const Worker<Data>& worker) {
    const std::vector<Data>& limits = worker.limits;
    // The first limit that is not below the distance. A branch would be taken at random.
    const Data* first = limits.data();
    for (std::size_t count = limits.size(); count > 1;) {
      const std::size_t half = count / 2;
      first += half * static_cast<std::size_t>(first[half - 1] < distance);
      count -= half;
    }
    auto bin = static_cast<std::size_t>(first - limits.data());
    while (bin < limits.size() && limits[bin] == distance && worker.thresholds[bin].id <= id) {
      ++bin;
    }
    return bin;
  }

  // For neighbourhoods of one size.
  void judge(Size i, std::size_t s, Size counted, Worker<Data>& worker) {
    const Size k = request_.sizes[s];
    std::int32_t kept = 0;
    Size known_penalty = 0;
    for (Size p = 0; p < k; ++p) {
      const PointId id = request_.asked[i * request_.asked_each + p];
      const Size rank{worker.rank_of[at(id)]};
      kept += rank != 0 && rank <= k ? 1 : 0;
      // All known ones are nearer than one that is not known.
      known_penalty += rank != 0 ? std::max<Size>(0, rank - k) : request_.known + 1 - k;
    }
    worker.nearer.assign(worker.counts.size(), 0);
    for (std::size_t t = worker.thresholds.size(); t-- > 0;) {
      worker.nearer[t] = worker.nearer[t + 1] + (worker.thresholds[t].position < k ? 1 : 0);
    }
    double sum = 0;
    double squares = 0;
    for (std::size_t bin = 0; bin < worker.counts.size(); ++bin) {
      const auto count = static_cast<double>(worker.counts[bin]);
      const auto value = static_cast<double>(worker.nearer[bin]);
      sum += count * value;
      squares += count * value * value;
    }
    for (const Near& near : worker.near) {
      worker.by_reference[near.reference * request_.sizes.size() + s] += worker.nearer[near.bin];
    }
    const auto beyond = static_cast<double>(request_.points.rows - 1 - request_.known);
    const auto sample = static_cast<double>(counted);
    const std::size_t entry = at(i) * request_.sizes.size() + s;
    ranks_.kept[entry] = kept;
    ranks_.penalties[entry] = static_cast<double>(known_penalty);
    if (counted > 0) {
      ranks_.penalties[entry] += sample < beyond ? sum * (beyond / sample) : sum;
    }
    if (counted > 1 && sample < beyond) {
      const double spread = std::max(0.0, (squares - sum * sum / sample) / (sample - 1));
      ranks_.variances[entry] = beyond * beyond * spread / sample * (1 - sample / beyond);
    }
  }

  const RankRequest<Data>& request_;
  FilledRows<Data> references_;
  std::vector<std::uint8_t> is_reference_; // of every row
  const DistanceKernels<Data>& kernel_ = kernels().distances.template of<Data>();
  std::vector<Worker<Data>> workers_;
  Ranks ranks_;
};

} // namespace

template <typename Data>
Ranks rank_penalties(const RankRequest<Data>& request, ThreadTeam& team) {
  return RankCounter<Data>(request, team).run(team);
}

template Ranks rank_penalties(const RankRequest<float>&, ThreadTeam&);
template Ranks rank_penalties(const RankRequest<double>&, ThreadTeam&);

} // namespace acctsne
