// Ranks of asked points, by the distances of a few points at a time from all references.
#include "quality/ranks.hpp"

#include "kernels/dispatch.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

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
        memory_(static_cast<std::size_t>(rows * lines_)) {}

  Size length() const { return lines_ * kLineBytes / Size{sizeof(Data)}; }
  const Data* row(Size i) const {
    return reinterpret_cast<const Data*>(memory_.data() + i * lines_);
  }
  void fill(Size i, const Data* from) {
    auto* to = reinterpret_cast<Data*>(memory_.data() + i * lines_);
    std::copy_n(from, features_, to);
    std::fill(to + features_, to + length(), Data(0));
  }

private:
  Size features_;
  Size lines_;
  std::vector<Line> memory_;
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
      : points(kPointsPerChunk, request.features), asked(1, request.features),
        distances(static_cast<std::size_t>(kPointsPerChunk) * request.references.size()),
        rank_of(static_cast<std::size_t>(request.rows)), bins(request.references.size()),
        by_reference(request.references.size() * request.sizes.size()) {}

  FilledRows<Data> points;
  FilledRows<Data> asked;
  std::vector<Data> distances; // of the chunk's points from all references
  std::vector<Size> rank_of;   // of every row, for the point at hand; 0 if not known
  std::vector<Threshold<Data>> thresholds;
  std::vector<Data> limits;         // their distances, ascending
  std::vector<Size> bins;           // for each reference the first threshold that it is nearer than
  std::vector<std::int64_t> counts; // references in each bin
  std::vector<std::int64_t> nearer; // thresholds from each bin on, within the size at hand
  std::vector<std::int64_t> by_reference;
};

template <typename Data>
class RankCounter {
public:
  RankCounter(const RankRequest<Data>& request, ThreadTeam& team)
      : request_(request),
        references_(static_cast<Size>(request.references.size()), request.features),
        names_(request.references.size()) {
    const auto values = static_cast<std::size_t>(request.rows) * request.sizes.size();
    ranks_.kept.resize(values);
    ranks_.penalties.resize(values);
    ranks_.variances.resize(values);
    std::iota(names_.begin(), names_.end(), PointId{0});
    parallel_for(team, static_cast<Size>(names_.size()), 64, [&](Size begin, Size end) {
      for (Size r = begin; r < end; ++r) {
        references_.fill(r, row(request_.references[static_cast<std::size_t>(r)]));
      }
    });
    for (int w = 0; w < team.size(); ++w) {
      workers_.emplace_back(request);
    }
  }

  Ranks run(ThreadTeam& team) {
    team.for_chunks(chunk_count(request_.rows, kPointsPerChunk), [&](Size chunk, int w) {
      Worker<Data>& worker = workers_[static_cast<std::size_t>(w)];
      const Size begin = chunk * kPointsPerChunk;
      const Size end = std::min(begin + kPointsPerChunk, request_.rows);
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
  const Data* row(Size i) const { return request_.data + i * request_.features; }
  Size reference_count() const { return static_cast<Size>(request_.references.size()); }

  // Distances of points [begin, end) from all references.
  void measure(Size begin, Size end, Worker<Data>& worker, ThreadTeam& team, int w) const {
    for (Size i = begin; i < end; ++i) {
      worker.points.fill(i - begin, row(i));
    }
    const Size length = references_.length();
    const Size block = std::max<Size>(1, kBlockBytes / (length * Size{sizeof(Data)}));
    for (Size r = 0; r < reference_count() && !team.should_stop(w); r += block) {
      const Size count = std::min(block, reference_count() - r);
      for (Size i = begin; i < end; ++i) {
        kernel_.squared_distances_to(worker.points.row(i - begin), references_.row(r),
                                     names_.data(), count, length,
                                     worker.distances.data() + (i - begin) * reference_count() + r);
      }
    }
  }

  void judge(Size i, const Data* distances, Worker<Data>& worker) {
    const PointId* nearest = request_.nearest + i * request_.known;
    for (Size r = 0; r < request_.known; ++r) {
      worker.rank_of[static_cast<std::size_t>(nearest[r])] = r + 1;
    }
    find_thresholds(i, worker);
    const Size counted = count_references(i, distances, worker);
    for (std::size_t s = 0; s < request_.sizes.size(); ++s) {
      judge(i, s, counted, worker);
    }
    for (Size r = 0; r < request_.known; ++r) {
      worker.rank_of[static_cast<std::size_t>(nearest[r])] = 0;
    }
  }

  void find_thresholds(Size i, Worker<Data>& worker) const {
    worker.thresholds.clear();
    for (Size p = 0; p < request_.asked_each; ++p) {
      const PointId id = request_.asked[i * request_.asked_each + p];
      if (worker.rank_of[static_cast<std::size_t>(id)] == 0) {
        worker.asked.fill(0, row(id));
        Data distance;
        kernel_.squared_distances_to(worker.points.row(i % kPointsPerChunk), worker.asked.row(0),
                                     names_.data(), 1, worker.asked.length(), &distance);
        worker.thresholds.push_back({distance, id, p});
      }
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

  // Puts the references into bins; returns how many count, being neither known nor the point.
  Size count_references(Size i, const Data* distances, Worker<Data>& worker) const {
    const auto last = static_cast<Size>(worker.limits.size());
    worker.counts.assign(worker.limits.size() + 1, 0);
    Size counted = 0;
    for (Size r = 0; r < reference_count(); ++r) {
      const PointId id = request_.references[static_cast<std::size_t>(r)];
      Size bin = last;
      if (id != i && worker.rank_of[static_cast<std::size_t>(id)] == 0) {
        bin = bin_of(distances[r], id, worker);
        ++worker.counts[static_cast<std::size_t>(bin)];
        ++counted;
      }
      worker.bins[static_cast<std::size_t>(r)] = bin;
    }
    return counted;
  }

  static Size bin_of(Data distance, PointId id, const Worker<Data>& worker) {
    const std::vector<Data>& limits = worker.limits;
    const auto last = static_cast<Size>(limits.size());
    if (last == 0 || distance > limits.back()) {
      return last; // as most are in a good map
    }
    // The first limit that is not below the distance, without a branch.
    const Data* first = limits.data();
    for (Size count = last; count > 1;) {
      const Size half = count / 2;
      first += first[half - 1] < distance ? half : 0;
      count -= half;
    }
    auto bin = static_cast<Size>(first - limits.data());
    bin += *first < distance ? 1 : 0;
    while (bin < last && limits[static_cast<std::size_t>(bin)] == distance &&
           worker.thresholds[static_cast<std::size_t>(bin)].id <= id) {
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
      const Size rank = worker.rank_of[static_cast<std::size_t>(id)];
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
    for (std::size_t r = 0; r < worker.bins.size(); ++r) {
      worker.by_reference[r * request_.sizes.size() + s] +=
          worker.nearer[static_cast<std::size_t>(worker.bins[r])];
    }
    const auto beyond = static_cast<double>(request_.rows - 1 - request_.known);
    const auto sample = static_cast<double>(counted);
    const std::size_t at = static_cast<std::size_t>(i) * request_.sizes.size() + s;
    ranks_.kept[at] = kept;
    ranks_.penalties[at] = static_cast<double>(known_penalty);
    if (counted > 0) {
      ranks_.penalties[at] += sample < beyond ? sum * (beyond / sample) : sum;
    }
    if (counted > 1 && sample < beyond) {
      const double spread = std::max(0.0, (squares - sum * sum / sample) / (sample - 1));
      ranks_.variances[at] = beyond * beyond * spread / sample * (1 - sample / beyond);
    }
  }

  const RankRequest<Data>& request_;
  FilledRows<Data> references_;
  std::vector<PointId> names_; // 0, 1, 2 ...: the kernel asks for them
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
