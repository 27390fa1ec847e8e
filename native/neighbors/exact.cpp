// Step 1, KNN.
//
// 1. Centre the data on its mean and round it to float, packed into panels that the tile kernel
//    streams.
// 2. For a block of queries, walk over all panels. |q|^2 + |p|^2 - 2 q.p in float, with the norms
//    lowered by the worst rounding, bounds each squared distance from below; keep the `kept`
//    smallest bounds of each query.
// 3. Recompute those in double from the data as given, and sort.
// 4. Everything not kept has a bound at or above the largest kept one, `limit`. If the k-th
//    distance is at most `limit`, the answer is proven. Otherwise the query is done again, all
//    pairs in double.
#include "neighbors/exact.hpp"

#include "kernels/dispatch.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

namespace acctsne {
namespace {

struct Candidate {
  double distance; // squared
  PointId id;
  bool operator<(const Candidate& other) const {
    return distance < other.distance || (distance == other.distance && id < other.id);
  }
};

// Queries of one task: their block (queries x features floats) should stay in the second-level
// cache beside a panel.
Size queries_per_block(Size features) {
  constexpr Size kBlockBytes = 256 * 1024;
  const Size tiles = kBlockBytes / (static_cast<Size>(sizeof(float)) * features * kTileQueries);
  return std::clamp<Size>(tiles, 1, 8) * kTileQueries;
}

// Candidates kept beyond k so that float rounding hardly ever leaves the answer unproven.
Size kept_candidates(Size neighbors) {
  return neighbors + std::max<Size>(32, neighbors / 4);
}

template <typename Data>
class CenteredPanels {
public:
  CenteredPanels(const Data* data, Size rows, Size features, ThreadTeam& team)
      : features_(features), width_(kernels().panel_points), panels_(chunk_count(rows, width_)),
        values_(new float[static_cast<std::size_t>(panels_ * width_ * features)]),
        norms_(static_cast<std::size_t>(panels_ * width_)) {
    find_center_and_scale(data, rows, team);
    pack(data, rows, team);
  }

  double scale() const { return scale_; }
  Size panels() const { return panels_; }
  int width() const { return static_cast<int>(width_); }
  const float* panel(Size p) const { return values_.get() + p * width_ * features_; }
  // Lower bounds of the squared norms, so that bounds built from them are lower bounds too.
  const float* norms(Size p) const { return norms_.data() + p * width_; }

  // Row `row` as packed, for use as a query.
  void copy_row(Size row, float* to) const {
    const float* from = panel(row / width_) + row % width_;
    for (Size f = 0; f < features_; ++f) {
      to[f] = from[f * width_];
    }
  }
  float norm(Size row) const { return norms_[static_cast<std::size_t>(row)]; }

private:
  void find_center_and_scale(const Data* data, Size rows, ThreadTeam& team) {
    constexpr Size kGrain = 2048;
    const auto features = static_cast<std::size_t>(features_);
    const auto chunks = static_cast<std::size_t>(chunk_count(rows, kGrain));
    std::vector<double> sums(chunks * features, 0.0);
    parallel_for(team, rows, kGrain, [&](Size begin, Size end) {
      double* sum = sums.data() + static_cast<std::size_t>(begin / kGrain) * features;
      for (Size i = begin; i < end; ++i) {
        for (std::size_t f = 0; f < features; ++f) {
          // Dividing first keeps the sum finite for data near the type's limit.
          sum[f] += static_cast<double>(data[static_cast<std::size_t>(i) * features + f]) /
                    static_cast<double>(rows);
        }
      }
    });
    center_.assign(features, 0.0);
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      for (std::size_t f = 0; f < features; ++f) {
        center_[f] += sums[chunk * features + f];
      }
    }

    std::vector<double> extents(chunks, 0.0);
    parallel_for(team, rows, kGrain, [&](Size begin, Size end) {
      double extent = 0;
      for (Size i = begin; i < end; ++i) {
        for (std::size_t f = 0; f < features; ++f) {
          const auto value = static_cast<double>(data[static_cast<std::size_t>(i) * features + f]);
          extent = std::max(extent, std::abs(value * 0.5 - center_[f] * 0.5));
        }
      }
      extents[static_cast<std::size_t>(begin / kGrain)] = extent;
    });
    const double extent = 2 * *std::max_element(extents.begin(), extents.end());
    // Between these limits squares and their sums stay well inside float.
    constexpr double kSmallest = 1e-12;
    constexpr double kLargest = 1e12;
    if (extent > 0 && std::isfinite(extent) && (extent < kSmallest || extent > kLargest)) {
      scale_ = std::exp2(std::min(-std::floor(std::log2(extent)), 1000.0));
    } else if (!std::isfinite(extent)) {
      scale_ = std::exp2(-1023.0);
    }
  }

  void pack(const Data* data, Size rows, ThreadTeam& team) {
    // Rounding of the centred coordinates, of the dot product (features + 2 operations) and of the
    // norms, relative to (|q| + |p|)^2 <= 2 (|q|^2 + |p|^2), with room to spare.
    const double slack = 2.0 * (static_cast<double>(features_) + 16) * 0x1p-24;
    parallel_for(team, panels_, 4, [&](Size begin, Size end) {
      for (Size p = begin; p < end; ++p) {
        float* panel = values_.get() + p * width_ * features_;
        for (Size lane = 0; lane < width_; ++lane) {
          const Size row = p * width_ + lane;
          double norm = 0;
          for (Size f = 0; f < features_; ++f) {
            double value = 0;
            if (row < rows) {
              value = static_cast<double>(data[row * features_ + f]) * scale_ -
                      center_[static_cast<std::size_t>(f)] * scale_;
            }
            const auto rounded = static_cast<float>(value);
            panel[f * width_ + lane] = rounded;
            norm += static_cast<double>(rounded) * static_cast<double>(rounded);
          }
          // A norm of infinity keeps the rows that pad the last panel out of every result.
          norms_[static_cast<std::size_t>(row)] = row < rows
                                                      ? static_cast<float>(norm * (1 - slack))
                                                      : std::numeric_limits<float>::infinity();
        }
      }
    });
  }

  Size features_;
  Size width_;
  Size panels_;
  std::unique_ptr<float[]> values_;
  std::vector<float> norms_;
  std::vector<double> center_;
  double scale_ = 1;
};

// The smallest bounds seen so far for one query.
class Shortlist {
public:
  void start(Size kept) {
    kept_ = static_cast<std::size_t>(kept);
    limit_ = std::numeric_limits<float>::infinity();
    items_.clear();
    items_.reserve(2 * kept_);
  }
  float limit() const { return limit_; }
  void add(float bound, PointId id) {
    items_.push_back({static_cast<double>(bound), id});
    if (items_.size() == 2 * kept_) {
      shrink();
    }
  }
  // The best candidates, in no particular order.
  std::vector<Candidate>& finish() {
    if (items_.size() > kept_) {
      shrink();
    }
    return items_;
  }

private:
  void shrink() {
    const auto last = items_.begin() + static_cast<std::ptrdiff_t>(kept_) - 1;
    std::nth_element(items_.begin(), last, items_.end());
    limit_ = static_cast<float>(last->distance);
    items_.resize(kept_);
  }
  std::size_t kept_ = 0;
  float limit_ = 0;
  std::vector<Candidate> items_;
};

template <typename Data, typename Real>
class Search {
public:
  Search(const NeighborsRequest<Data, Real>& request, ThreadTeam& team)
      : request_(request), panels_(request.data, request.rows, request.features, team),
        kept_(kept_candidates(request.neighbors)),
        squared_distance_(kernels().of<Data>().squared_distance),
        scratch_(static_cast<std::size_t>(team.size())) {}

  double scale() const { return panels_.scale(); }

  void run(ThreadTeam& team) {
    const Size block = queries_per_block(request_.features);
    const bool few = kept_ >= request_.rows - 1; // the float filter could not drop anything
    team.for_chunks(chunk_count(request_.rows, block), [&](Size chunk, int worker) {
      const Size begin = chunk * block;
      const Size end = std::min(begin + block, request_.rows);
      if (few) {
        for (Size query = begin; query < end && !team.should_stop(worker); ++query) {
          search_in_double(query, scratch_[static_cast<std::size_t>(worker)]);
        }
      } else {
        search_block(begin, end, team, worker);
      }
      if (request_.done != nullptr) {
        request_.done->fetch_add(end - begin, std::memory_order_relaxed);
      }
    });
  }

private:
  struct Scratch {
    std::vector<float> queries;
    std::vector<float> norms;
    std::vector<Shortlist> shortlists;
    std::vector<Candidate> all;
    std::vector<float> bounds;
  };

  void search_block(Size begin, Size end, ThreadTeam& team, int worker) {
    Scratch& scratch = scratch_[static_cast<std::size_t>(worker)];
    const Size features = request_.features;
    const Size tiles = chunk_count(end - begin, kTileQueries);
    const auto padded = static_cast<std::size_t>(tiles * kTileQueries);
    scratch.queries.assign(padded * static_cast<std::size_t>(features), 0.0f);
    scratch.norms.assign(padded, 0.0f);
    scratch.shortlists.resize(std::max(scratch.shortlists.size(), padded));
    scratch.bounds.resize(static_cast<std::size_t>(kTileQueries * panels_.width()));
    for (Size q = 0; q < end - begin; ++q) {
      panels_.copy_row(begin + q, scratch.queries.data() + q * features);
      scratch.norms[static_cast<std::size_t>(q)] = panels_.norm(begin + q);
      scratch.shortlists[static_cast<std::size_t>(q)].start(kept_);
    }

    const auto filter_tile = kernels().filter_tile;
    constexpr Size kPanelsBetweenPolls = 256;
    for (Size p = 0; p < panels_.panels(); ++p) {
      if (p % kPanelsBetweenPolls == 0 && team.should_stop(worker)) {
        return;
      }
      for (Size tile = 0; tile < tiles; ++tile) {
        const Size first = tile * kTileQueries;
        const Size count = std::min<Size>(kTileQueries, end - begin - first);
        float limits[kTileQueries];
        for (Size q = 0; q < kTileQueries; ++q) {
          limits[q] = q < count ? scratch.shortlists[static_cast<std::size_t>(first + q)].limit()
                                : -std::numeric_limits<float>::infinity();
        }
        std::uint64_t hits[kTileQueries];
        filter_tile(scratch.queries.data() + first * features, scratch.norms.data() + first, limits,
                    panels_.panel(p), panels_.norms(p), features, scratch.bounds.data(), hits);
        for (Size q = 0; q < count; ++q) {
          Shortlist& shortlist = scratch.shortlists[static_cast<std::size_t>(first + q)];
          const float* bounds = scratch.bounds.data() + q * panels_.width();
          for (std::uint64_t mask = hits[q]; mask != 0; mask &= mask - 1) {
            const int lane = std::countr_zero(mask);
            const Size id = p * panels_.width() + lane;
            // A hit may have been overtaken by a lower limit within this panel.
            if (bounds[lane] < shortlist.limit() && id != begin + first + q) {
              shortlist.add(bounds[lane], static_cast<PointId>(id));
            }
          }
        }
      }
    }

    for (Size q = 0; q < end - begin; ++q) {
      if (team.should_stop(worker)) {
        return;
      }
      Shortlist& shortlist = scratch.shortlists[static_cast<std::size_t>(q)];
      std::vector<Candidate>& found = shortlist.finish();
      const double underflow = (static_cast<double>(features) + 8) * 0x1p-147;
      const auto limit = static_cast<double>(shortlist.limit());
      const bool enough = static_cast<Size>(found.size()) >= request_.neighbors;
      const double farthest = enough ? refine(begin + q, found) : 0.0;
      if (enough && (farthest == 0 || farthest + underflow <= limit)) {
        write(begin + q, found);
      } else {
        search_in_double(begin + q, scratch);
      }
    }
  }

  // Puts true distances into the candidates, sorts them, and returns the k-th.
  double refine(Size query, std::vector<Candidate>& found) const {
    const Data* row = request_.data + query * request_.features;
    for (Candidate& candidate : found) {
      candidate.distance = squared_distance_(row, request_.data + candidate.id * request_.features,
                                             request_.features, panels_.scale());
    }
    const auto k = static_cast<std::ptrdiff_t>(request_.neighbors);
    std::partial_sort(found.begin(), found.begin() + k, found.end());
    return found[static_cast<std::size_t>(k - 1)].distance;
  }

  void search_in_double(Size query, Scratch& scratch) const {
    scratch.all.clear();
    for (Size id = 0; id < request_.rows; ++id) {
      if (id != query) {
        scratch.all.push_back({0.0, static_cast<PointId>(id)});
      }
    }
    refine(query, scratch.all);
    write(query, scratch.all);
  }

  void write(Size query, const std::vector<Candidate>& found) const {
    const Size k = request_.neighbors;
    for (Size j = 0; j < k; ++j) {
      const Candidate& candidate = found[static_cast<std::size_t>(j)];
      request_.indices[query * k + j] = candidate.id;
      request_.squared_distances[query * k + j] = static_cast<Real>(candidate.distance);
    }
  }

  const NeighborsRequest<Data, Real>& request_;
  CenteredPanels<Data> panels_;
  Size kept_;
  typename RealKernels<Data>::SquaredDistance squared_distance_;
  std::vector<Scratch> scratch_;
};

} // namespace

template <typename Data, typename Real>
double exact_neighbors(const NeighborsRequest<Data, Real>& request, ThreadTeam& team) {
  Search<Data, Real> search(request, team);
  search.run(team);
  return search.scale();
}

template double exact_neighbors(const NeighborsRequest<float, float>&, ThreadTeam&);
template double exact_neighbors(const NeighborsRequest<float, double>&, ThreadTeam&);
template double exact_neighbors(const NeighborsRequest<double, float>&, ThreadTeam&);
template double exact_neighbors(const NeighborsRequest<double, double>&, ThreadTeam&);

} // namespace acctsne
