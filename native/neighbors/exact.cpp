// Step 1, KNN, by filter and refine.
//
// On the m leading axes a point has coordinates z and a rest of norm r. Then |z_q - z_p|^2 + (r_q -
// r_p)^2 is at most the squared distance of q and p. With |z|^2 + r^2 = |x|^2 it equals |q|^2 +
// |p|^2 - 2 (z_q z_p + r_q r_p), a matrix product, and it is a lower bound for any number of
// leading axes.
//
// 1. Put close points together in cells (neighbors/cells.cpp), packed into panels for the tile
//    kernel.
// 2. For the queries of one cell, visit the cells from the nearest to the farthest, skipping those
//    whose ball lies beyond each query's k-th distance so far.
// 3. Tiles of queries x panel points: after each of a few stages of leading axes, give up if every
//    bound in the tile exceeds its query's k-th distance so far (kernels/distance-inl.hpp).
// 4. Survivors get their distance in full dimension at once, while the cell's rows are in cache,
//    and enter the query's list of the `kept` nearest.
// 5. If distances are wanted in double and the data is not, those of the list are computed again;
//    the answer is proven if the k-th, plus what rounding may have done, lies below the last one
//    kept. Where it is not, and where squares may have vanished in float, the query is done again
//    with all pairs in double.
#include "neighbors/exact.hpp"

#include "kernels/dispatch.hpp"
#include "neighbors/cells.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

namespace acctsne {
namespace {

// Squared distances below this may have lost bits of their terms to underflow in float.
constexpr double kSmallestDistance = 0x1p-90;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Candidate {
  double distance; // squared
  PointId id;
  bool operator<(const Candidate& other) const {
    return distance < other.distance || (distance == other.distance && id < other.id);
  }
};

// Neighbours kept beyond k, so that rounding hardly ever leaves the answer unproven.
Size kept_neighbors(Size neighbors) {
  return neighbors + std::max<Size>(8, neighbors / 8);
}

// The projected points in the order of their cells.
class CellPanels {
public:
  CellPanels(const Projection& projection, Size rows, Size features, ThreadTeam& team)
      : dims_(projection.dims), rows_(rows), width_(kernels().panel_points),
        order_(cell_order(projection.coordinates, rows, dims_, team)),
        cells_(chunk_count(rows, kCellPoints)),
        values_(new float[static_cast<std::size_t>(cells_ * kCellPoints * dims_)]),
        norms_(static_cast<std::size_t>(cells_ * kCellPoints), kInfinity),
        rests_(static_cast<std::size_t>(cells_ * kCellPoints * kFilterStages), 0.0f),
        centers_(static_cast<std::size_t>(cells_ * dims_)),
        radii_(static_cast<std::size_t>(cells_)), roundings_(static_cast<std::size_t>(cells_)) {
    set_stages();
    // Rounding of the centred and rotated coordinates and of the product, relative to |q|^2 +
    // |p|^2.
    slack_ = 4.0 * (static_cast<double>(features + dims_) + 64) * 0x1p-24;
    team.for_chunks(cells_, [&](Size cell, int) { pack_cell(projection, cell); });
  }

  Size cells() const { return cells_; }
  Size dims() const { return dims_; }
  Size width() const { return width_; }
  double slack() const { return slack_; }
  Size begin(Size cell) const { return cell * kCellPoints; }
  Size end(Size cell) const { return std::min((cell + 1) * kCellPoints, rows_); }
  PointId row(Size place) const { return order_[static_cast<std::size_t>(place)]; }
  const Size* stages() const { return stages_; }

  // Of the panel that begins at `place`: dims x width, norms, and the rests of each stage.
  const float* panel(Size place) const { return values_.get() + place * dims_; }
  const float* norms(Size place) const { return norms_.data() + place; }
  const float* rests(Size place) const { return rests_.data() + place * kFilterStages; }
  const float* center(Size cell) const { return centers_.data() + cell * dims_; }
  // Of the ball about the centre that holds the cell's points, what rounding may have done to them
  // included; and that alone.
  double radius(Size cell) const { return radii_[static_cast<std::size_t>(cell)]; }
  double rounding(Size cell) const { return roundings_[static_cast<std::size_t>(cell)]; }

  // Coordinates of the point at `place`, then its norm and its rests.
  void copy_query(Size place, float* coordinates, float& norm, float* rests) const {
    const Size first = place / width_ * width_;
    const Size lane = place - first;
    for (Size d = 0; d < dims_; ++d) {
      coordinates[d] = panel(first)[d * width_ + lane];
    }
    norm = norms(first)[lane];
    for (int stage = 0; stage < kFilterStages; ++stage) {
      rests[stage] = this->rests(first)[stage * width_ + lane];
    }
  }

private:
  void set_stages() {
    // Where tiles may be given up. Doubling each time; not tuned further.
    const Size wanted[kFilterStages] = {16, 32, 64, dims_};
    for (int stage = 0; stage < kFilterStages; ++stage) {
      stages_[stage] = std::min(wanted[stage], dims_);
    }
  }

  void pack_cell(const Projection& projection, Size cell) {
    std::vector<double> center(static_cast<std::size_t>(dims_), 0.0);
    const Size count = end(cell) - begin(cell);
    for (Size place = begin(cell); place < end(cell); ++place) {
      const float* from = projection.coordinates + Size{row(place)} * dims_;
      for (Size d = 0; d < dims_; ++d) {
        center[static_cast<std::size_t>(d)] += static_cast<double>(from[d]);
      }
    }
    for (Size d = 0; d < dims_; ++d) {
      centers_[static_cast<std::size_t>(cell * dims_ + d)] =
          static_cast<float>(center[static_cast<std::size_t>(d)] / static_cast<double>(count));
    }
    double radius2 = 0;
    double largest_norm = 0;
    for (Size place = begin(cell); place < (cell + 1) * kCellPoints; ++place) {
      const Size first = place / width_ * width_;
      const Size lane = place - first;
      float* panel = values_.get() + first * dims_;
      if (place >= rows_) {
        for (Size d = 0; d < dims_; ++d) {
          panel[d * width_ + lane] = 0; // its infinite norm keeps it out of every result
        }
        continue;
      }
      const PointId id = row(place);
      const float* from = projection.coordinates + Size{id} * dims_;
      const double norm = projection.squared_norms[id];
      double rest = norm;
      double distance = 0;
      int stage = 0;
      for (Size d = 0; d < dims_; ++d) {
        panel[d * width_ + lane] = from[d];
        const auto value = static_cast<double>(from[d]);
        rest -= value * value;
        const double apart =
            value - static_cast<double>(centers_[static_cast<std::size_t>(cell * dims_ + d)]);
        distance += apart * apart;
        for (; stage < kFilterStages && d + 1 == stages_[stage]; ++stage) {
          rests_[static_cast<std::size_t>(first * kFilterStages + stage * width_ + lane)] =
              static_cast<float>(std::sqrt(std::max(rest, 0.0)));
        }
      }
      radius2 = std::max(radius2, distance);
      largest_norm = std::max(largest_norm, norm);
      norms_[static_cast<std::size_t>(place)] = static_cast<float>(norm * (1 - slack_));
    }
    // Coordinates are off by a part of the point's norm, and distances of centres by a part of
    // theirs, which is at most twice the largest norm.
    const auto at = static_cast<std::size_t>(cell);
    roundings_[at] = slack_ * std::sqrt(largest_norm);
    radii_[at] = std::sqrt(radius2) * (1 + 1e-5) + roundings_[at];
  }

  Size dims_;
  Size rows_;
  Size width_;
  std::vector<PointId> order_;
  Size cells_;
  std::unique_ptr<float[]> values_;
  std::vector<float> norms_; // lowered by the slack, so that bounds built from them are true ones
  std::vector<float> rests_;
  std::vector<float> centers_;
  std::vector<double> radii_;
  std::vector<double> roundings_;
  Size stages_[kFilterStages] = {};
  double slack_ = 0;
};

// The nearest points of one query so far: a heap with the farthest on top.
class NearestList {
public:
  void start(Size kept) {
    kept_ = static_cast<std::size_t>(kept);
    items_.clear();
    items_.reserve(kept_);
  }
  bool full() const { return items_.size() == kept_; }
  // What a point must be nearer than to enter.
  double limit() const {
    return full() ? items_.front().distance : std::numeric_limits<double>::infinity();
  }
  void add(Candidate candidate) {
    if (!full()) {
      items_.push_back(candidate);
      std::push_heap(items_.begin(), items_.end());
    } else if (candidate < items_.front()) {
      std::pop_heap(items_.begin(), items_.end());
      items_.back() = candidate;
      std::push_heap(items_.begin(), items_.end());
    }
  }
  std::vector<Candidate>& items() { return items_; }

private:
  std::size_t kept_ = 0;
  std::vector<Candidate> items_;
};

template <typename Data, typename Real>
class Search {
public:
  Search(const NeighborsRequest<Data, Real>& request, ThreadTeam& team)
      : request_(request), panels_(request.projection, request.rows, request.features, team),
        kept_(kept_neighbors(request.neighbors)), kernel_(kernels().of<Data>()),
        refine_error_((static_cast<double>(request.features) + 16) * 0x1p-23),
        scratch_(static_cast<std::size_t>(team.size())) {}

  void run(ThreadTeam& team) {
    const bool few = kept_ >= request_.rows - 1; // the filter could not drop anything
    team.for_chunks(panels_.cells(), [&](Size cell, int worker) {
      Scratch& scratch = scratch_[static_cast<std::size_t>(worker)];
      if (few) {
        for (Size place = panels_.begin(cell);
             place < panels_.end(cell) && !team.should_stop(worker); ++place) {
          search_in_double(panels_.row(place), scratch);
        }
      } else {
        search_cell(cell, scratch, team, worker);
      }
      if (request_.done != nullptr) {
        request_.done->fetch_add(panels_.end(cell) - panels_.begin(cell),
                                 std::memory_order_relaxed);
      }
    });
  }

private:
  struct Scratch {
    std::vector<float> coordinates; // of the cell's queries
    std::vector<float> norms;
    std::vector<float> rests;
    std::vector<float> center_distances; // of all cells from this one
    std::vector<float> query_distances;  // of all queries from the visited cell's centre
    std::vector<Size> visits;            // cells, nearest first
    std::vector<NearestList> nearest;
    std::vector<int> active; // queries that a cell may concern
    std::vector<Candidate> all;
  };

  const Data* data_row(PointId id) const { return request_.data + Size{id} * request_.features; }

  void search_cell(Size cell, Scratch& scratch, ThreadTeam& team, int worker) {
    const Size first = panels_.begin(cell);
    const Size count = panels_.end(cell) - first;
    const Size dims = panels_.dims();
    prepare_queries(first, count, scratch);
    order_visits(cell, scratch);
    // Even a search that may miss some needs k candidates.
    const Size fewest = chunk_count(kept_ + 1, kCellPoints) + 1;
    const Size most =
        request_.most_cells > 0 ? std::max(request_.most_cells, fewest) : panels_.cells();
    scratch.visits.resize(static_cast<std::size_t>(std::min(most, panels_.cells())));
    double farthest_limit = std::numeric_limits<double>::infinity(); // of all queries
    for (const Size visited : scratch.visits) {
      if (team.should_stop(worker)) {
        return;
      }
      // The gap between the two balls bounds all distances between their points from below.
      const double gap =
          static_cast<double>(scratch.center_distances[static_cast<std::size_t>(visited)]) -
          panels_.radius(cell) - panels_.radius(visited);
      if (gap > 0 && gap * gap >= farthest_limit) {
        continue;
      }
      // Likewise for each query, and only some of them may have a neighbour there.
      kernels().distances_to_rows(panels_.center(visited), scratch.coordinates.data(), count, dims,
                                  scratch.query_distances.data());
      scratch.active.clear();
      for (Size q = 0; q < count; ++q) {
        const double apart =
            static_cast<double>(scratch.query_distances[static_cast<std::size_t>(q)]) -
            panels_.radius(visited) - panels_.rounding(cell);
        if (apart <= 0 || apart * apart < scratch.nearest[static_cast<std::size_t>(q)].limit()) {
          scratch.active.push_back(static_cast<int>(q));
        }
      }
      for (std::size_t a = 0; a < scratch.active.size(); a += kTileQueries) {
        const auto in_tile = std::min<std::size_t>(kTileQueries, scratch.active.size() - a);
        visit_tiles(first, visited, scratch.active.data() + a, static_cast<int>(in_tile), scratch,
                    dims);
      }
      if (!scratch.active.empty()) {
        farthest_limit = 0;
        for (Size q = 0; q < count; ++q) {
          farthest_limit =
              std::max(farthest_limit, scratch.nearest[static_cast<std::size_t>(q)].limit());
        }
      }
    }
    for (Size q = 0; q < count && !team.should_stop(worker); ++q) {
      finish(panels_.row(first + q), scratch.nearest[static_cast<std::size_t>(q)], scratch);
    }
  }

  void prepare_queries(Size first, Size count, Scratch& scratch) const {
    const Size dims = panels_.dims();
    scratch.coordinates.resize(static_cast<std::size_t>(kCellPoints * dims));
    scratch.norms.resize(static_cast<std::size_t>(kCellPoints));
    scratch.rests.resize(static_cast<std::size_t>(kCellPoints * kFilterStages));
    scratch.nearest.resize(static_cast<std::size_t>(kCellPoints));
    scratch.query_distances.resize(static_cast<std::size_t>(kCellPoints));
    for (Size q = 0; q < count; ++q) {
      panels_.copy_query(first + q, scratch.coordinates.data() + q * dims,
                         scratch.norms[static_cast<std::size_t>(q)],
                         scratch.rests.data() + q * kFilterStages);
      scratch.nearest[static_cast<std::size_t>(q)].start(kept_);
    }
  }

  // Cells from the nearest centre to the farthest; the queries' own comes first.
  void order_visits(Size cell, Scratch& scratch) const {
    const Size cells = panels_.cells();
    std::vector<float>& from_center = scratch.center_distances;
    from_center.resize(static_cast<std::size_t>(cells));
    kernels().distances_to_rows(panels_.center(cell), panels_.center(0), cells, panels_.dims(),
                                from_center.data());
    from_center[static_cast<std::size_t>(cell)] = 0;
    scratch.visits.resize(static_cast<std::size_t>(cells));
    std::iota(scratch.visits.begin(), scratch.visits.end(), Size{0});
    std::sort(scratch.visits.begin(), scratch.visits.end(), [&](Size a, Size b) {
      const float left = a == cell ? -1 : from_center[static_cast<std::size_t>(a)];
      const float right = b == cell ? -1 : from_center[static_cast<std::size_t>(b)];
      return left < right || (left == right && a < b);
    });
  }

  void visit_tiles(Size first, Size visited, const int* active, int count, Scratch& scratch,
                   Size dims) const {
    FilterQueries queries;
    for (int q = 0; q < kTileQueries; ++q) {
      const auto from = static_cast<std::size_t>(active[q < count ? q : 0]);
      queries.coordinates[q] = scratch.coordinates.data() + from * static_cast<std::size_t>(dims);
      queries.norms[q] = scratch.norms[from];
      queries.limits[q] = q < count ? upper_float(scratch.nearest[from].limit()) : -kInfinity;
      for (int stage = 0; stage < kFilterStages; ++stage) {
        queries.rests[q][stage] =
            scratch.rests[from * kFilterStages + static_cast<std::size_t>(stage)];
      }
    }
    for (Size place = panels_.begin(visited); place < panels_.end(visited);
         place += panels_.width()) {
      std::uint64_t hits[kTileQueries];
      if (!kernels().filter_tile(queries, panels_.panel(place), panels_.norms(place),
                                 panels_.rests(place), panels_.stages(), hits)) {
        continue;
      }
      for (int q = 0; q < count; ++q) {
        const PointId query = panels_.row(first + active[q]);
        NearestList& nearest = scratch.nearest[static_cast<std::size_t>(active[q])];
        for (std::uint64_t mask = hits[q]; mask != 0; mask &= mask - 1) {
          const PointId id = panels_.row(place + std::countr_zero(mask));
          if (id != query) {
            nearest.add({kernel_.near_distance(data_row(query), data_row(id), request_.features,
                                               request_.projection.scale),
                         id});
          }
        }
        queries.limits[q] = upper_float(nearest.limit());
      }
    }
  }

  // The limit as a float, raised by the rounding of the distance behind it and of the conversion.
  float upper_float(double limit) const {
    return static_cast<float>(limit * (1 + 2 * refine_error_) + kSmallestDistance);
  }

  void finish(PointId query, NearestList& nearest, Scratch& scratch) const {
    std::vector<Candidate>& found = nearest.items();
    std::sort(found.begin(), found.end());
    const double limit = found.back().distance;
    if (found[static_cast<std::size_t>(request_.neighbors - 1)].distance >= kSmallestDistance) {
      const bool proven =
          sizeof(Real) <= sizeof(Data) || refine(query, found) * (1 + 2 * refine_error_) <= limit;
      if (proven) {
        write(query, found);
        return;
      }
    } else if (refine(query, found) == 0) {
      // So small that float may have lost their squares, but these points do coincide.
      write(query, found);
      return;
    }
    search_in_double(query, scratch);
  }

  // Puts double distances into the candidates, sorts them, and returns the k-th.
  double refine(PointId query, std::vector<Candidate>& found) const {
    for (Candidate& candidate : found) {
      candidate.distance = kernel_.squared_distance(data_row(query), data_row(candidate.id),
                                                    request_.features, request_.projection.scale);
    }
    const auto k = static_cast<std::ptrdiff_t>(request_.neighbors);
    std::partial_sort(found.begin(), found.begin() + k, found.end());
    return found[static_cast<std::size_t>(k - 1)].distance;
  }

  void search_in_double(PointId query, Scratch& scratch) const {
    scratch.all.clear();
    for (Size id = 0; id < request_.rows; ++id) {
      if (id != query) {
        scratch.all.push_back({0.0, static_cast<PointId>(id)});
      }
    }
    refine(query, scratch.all);
    write(query, scratch.all);
  }

  void write(PointId query, const std::vector<Candidate>& found) const {
    const Size k = request_.neighbors;
    for (Size j = 0; j < k; ++j) {
      const Candidate& candidate = found[static_cast<std::size_t>(j)];
      request_.indices[query * k + j] = candidate.id;
      request_.squared_distances[query * k + j] = static_cast<Real>(candidate.distance);
    }
  }

  const NeighborsRequest<Data, Real>& request_;
  CellPanels panels_;
  Size kept_;
  const RealKernels<Data>& kernel_;
  double refine_error_; // relative, of near_distance()
  std::vector<Scratch> scratch_;
};

} // namespace

template <typename Data, typename Real>
void exact_neighbors(const NeighborsRequest<Data, Real>& request, ThreadTeam& team) {
  Search<Data, Real> search(request, team);
  search.run(team);
}

template void exact_neighbors(const NeighborsRequest<float, float>&, ThreadTeam&);
template void exact_neighbors(const NeighborsRequest<float, double>&, ThreadTeam&);
template void exact_neighbors(const NeighborsRequest<double, float>&, ThreadTeam&);
template void exact_neighbors(const NeighborsRequest<double, double>&, ThreadTeam&);

} // namespace acctsne
