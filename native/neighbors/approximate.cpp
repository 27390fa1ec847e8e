// Step 1, KNN, in two rounds.
//
// 1. The nearest points within the cells that are likely to hold any (neighbors/probe.cpp). This
//    misses some where the guess is wrong.
// 2. A neighbour's neighbour is often a neighbour. So look at the neighbours that the first round
//    found for the few nearest neighbours of the point, and keep the k nearest of all. As the
//    second round reads only what the first one wrote, threads cannot change the result. Of
//    several processes each searches for the points of its own cells, and is sent what the others'
//    first round found for the neighbours of these.
//
// Points are called by their place in the order of cells: neighbours have places close by, so that
// what consecutive points look at stays in cache.
#include "neighbors/approximate.hpp"

#include "kernels/dispatch.hpp"
#include "neighbors/cell_search.hpp"
#include "neighbors/found_rows.hpp"
#include "neighbors/probe.hpp"

#include <bit>
#include <cmath>
#include <iterator>
#include <memory>
#include <vector>

namespace acctsne {
namespace {

// A set of places that is cheap to empty.
class PlaceSet {
public:
  void start(Size most) { slots_.assign(std::bit_ceil(static_cast<std::size_t>(2 * most)), -1); }
  // False if it was there.
  bool insert(PointId place) {
    const std::size_t last = slots_.size() - 1;
    // Places close to each other fall into different slots.
    for (auto slot = static_cast<std::size_t>(place) & last;; slot = (slot + 1) & last) {
      if (slots_[slot] == place) {
        return false;
      }
      if (slots_[slot] < 0) {
        slots_[slot] = place;
        return true;
      }
    }
  }

private:
  std::vector<PointId> slots_;
};

// Neighbours to find in the first round. If it knows only a part of the axes, some more, which
// raises the recall (docs/tuning.md). The constant is for small k.
template <typename Data>
Size first_neighbors(const PointSet<Data>& points, Size neighbors) {
  const Size more = points.projection.dims < points.features ? neighbors / 2 + 16 : 0;
  return std::min(neighbors + more, points.rows - 1);
}

template <typename Data, typename Real>
class ApproximateSearch {
public:
  ApproximateSearch(const NeighborsRequest<Data, Real>& request, ApproximateEffort effort,
                    ThreadTeam& team)
      : request_(request), points_(request.points), effort_(effort),
        cells_(points_.projection, points_.rows, points_.features, team),
        found_rows_(request, cells_), found_first_(first_neighbors(points_, request.neighbors)),
        kernel_(kernels().distances.of<Data>()), scratch_(static_cast<std::size_t>(team.size())) {}

  void run(ThreadTeam& team) {
    visit_cells(team);
    fetch_first_found();
    lay_out_rows(team);
    visit_neighbors(team);
    found_rows_.send_home();
  }

  double recall(std::span<const PointId> sample, ThreadTeam& team) const;

private:
  struct Scratch {
    CellProbe::Scratch cells;
    NearestList<double> nearest;
    PlaceSet seen;
    std::vector<PointId> candidates; // places
    std::vector<float> bounds;       // of their squared distances
    std::vector<Data> row;           // of a point, if it cannot be used where it is
    std::vector<Data> other;         // likewise
  };

  // The places of the neighbours that the first round found for the point at `place`.
  PointId* first_found(Size place) const {
    return first_found_.get() + (place - found_rows_.places().begin) * found_first_;
  }
  // The same for any point that is looked at in the second round.
  const PointId* first_found_anywhere(PointId place) const {
    if (found_rows_.places().has(place)) {
      return first_found(place);
    }
    const auto at = std::ranges::lower_bound(fetched_places_, place) - fetched_places_.begin();
    return fetched_.data() + at * found_first_;
  }
  Size expanded() const { return std::min(effort_.expanded, found_first_); }
  const float* row_at(Size place) const { return rows_.get() + place * row_length_; }

  bool has_residuals() const { return cells_.dims() < points_.features; }

  double distance(const Data* row, PointId id, std::vector<Data>& read) const {
    return kernel_.near_distance(row, points_.row(id, read), points_.features,
                                 points_.projection.scale);
  }

  void count_done(Size rows) const {
    if (request_.done != nullptr) {
      request_.done->fetch_add(rows, std::memory_order_relaxed);
    }
  }

  void visit_cells(ThreadTeam& team) {
    const Rows places = found_rows_.places();
    first_found_.reset(
        new PointId[static_cast<std::size_t>((places.end - places.begin) * found_first_)]);
    const CellPanels panels(cells_, points_.projection, team);
    const CellProbe probe(cells_, panels, has_residuals(), found_first_, effort_.cells,
                          effort_.z_score, team);
    const Rows own = found_rows_.cells();
    team.for_chunks(own.end - own.begin, [&](Size chunk, int worker) {
      const Size cell = own.begin + chunk;
      const Size first = cells_.begin(cell);
      if (probe.search(cell, first_found(first), scratch_[static_cast<std::size_t>(worker)].cells,
                       team, worker)) {
        count_done((cells_.end(cell) - first) / 2);
      }
    });
  }

  // Gets the lists of those points that the second round looks at and other processes have.
  void fetch_first_found() {
    Communicator& processes = *request_.processes;
    if (processes.size() == 1) {
      return;
    }
    const Rows mine = found_rows_.places();
    for (Size place = mine.begin; place < mine.end; ++place) {
      const PointId* known = first_found(place);
      std::copy_if(known, known + expanded(), std::back_inserter(fetched_places_),
                   [&](PointId other) { return !mine.has(other); });
    }
    std::ranges::sort(fetched_places_);
    const auto repeated = std::ranges::unique(fetched_places_);
    fetched_places_.erase(repeated.begin(), repeated.end());
    // Places ascend with the processes that have them.
    std::vector<Size> ends;
    for (int rank = 0; rank < processes.size(); ++rank) {
      const Rows theirs = places_of(cells_of(rank, processes.size(), cells_.count()), cells_);
      ends.push_back(std::ranges::lower_bound(fetched_places_, theirs.end) -
                     fetched_places_.begin());
    }
    std::vector<Size> asked_ends;
    const std::vector<PointId> asked = deliver(processes, fetched_places_, ends, &asked_ends);
    std::vector<PointId> lists;
    lists.reserve(asked.size() * static_cast<std::size_t>(found_first_));
    for (const PointId place : asked) {
      lists.insert(lists.end(), first_found(place), first_found(place) + found_first_);
    }
    for (Size& end : asked_ends) {
      end *= found_first_;
    }
    fetched_ = deliver(processes, lists, asked_ends);
  }

  // Coordinates and residual norm of each point, row by row in the order of places, padded to whole
  // vectors.
  void lay_out_rows(ThreadTeam& team) {
    const Size dims = cells_.dims();
    row_length_ = chunk_count(dims + 1, kRowFloats) * kRowFloats;
    rows_.reset(new float[static_cast<std::size_t>(points_.rows * row_length_)]);
    parallel_for(team, points_.rows, kCellPoints, [&](Size begin, Size end) {
      for (Size place = begin; place < end; ++place) {
        const PointId id = cells_.row(place);
        const float* from = points_.projection.row(id);
        float* to = rows_.get() + place * row_length_;
        double squared_residual = points_.projection.squared_norms[id];
        for (Size d = 0; d < dims; ++d) {
          to[d] = from[d];
          squared_residual -= static_cast<double>(from[d]) * static_cast<double>(from[d]);
        }
        to[dims] =
            has_residuals() ? static_cast<float>(std::sqrt(std::max(squared_residual, 0.0))) : 0.0f;
        std::fill(to + dims + 1, to + row_length_, 0.0f);
      }
    });
  }

  void visit_neighbors(ThreadTeam& team) {
    const Rows own = found_rows_.cells();
    team.for_chunks(own.end - own.begin, [&](Size chunk, int worker) {
      const Size cell = own.begin + chunk;
      Scratch& scratch = scratch_[static_cast<std::size_t>(worker)];
      const Size first = cells_.begin(cell);
      const Size last = cells_.end(cell);
      for (Size place = first; place < last && !team.should_stop(worker); ++place) {
        visit_neighbors_of(place, scratch);
      }
      count_done((last - first + 1) / 2);
    });
  }

  void visit_neighbors_of(Size place, Scratch& scratch) {
    const PointId id = cells_.row(place);
    const Data* row = points_.row(id, scratch.row);
    const PointId* known = first_found(place);
    scratch.seen.start((expanded() + 1) * found_first_ + 1);
    scratch.seen.insert(static_cast<PointId>(place));
    scratch.nearest.start(request_.neighbors);
    for (Size j = 0; j < found_first_; ++j) {
      scratch.seen.insert(known[j]);
      const PointId neighbor = cells_.row(known[j]);
      scratch.nearest.add({distance(row, neighbor, scratch.other), neighbor});
    }
    scratch.nearest.drop_farthest();
    scratch.candidates.clear();
    for (Size j = 0; j < expanded(); ++j) {
      const PointId* theirs = first_found_anywhere(known[j]);
      for (Size i = 0; i < found_first_; ++i) {
        if (scratch.seen.insert(theirs[i])) {
          scratch.candidates.push_back(theirs[i]);
        }
      }
    }
    const auto count = static_cast<Size>(scratch.candidates.size());
    scratch.bounds.resize(scratch.candidates.size());
    kernel_of_coordinates_.squared_distances_to(row_at(place), rows_.get(),
                                                scratch.candidates.data(), count, row_length_,
                                                scratch.bounds.data());
    for (Size c = 0; c < count; ++c) {
      if (static_cast<double>(scratch.bounds[static_cast<std::size_t>(c)]) <
          scratch.nearest.limit()) {
        const PointId neighbor = cells_.row(scratch.candidates[static_cast<std::size_t>(c)]);
        scratch.nearest.add({distance(row, neighbor, scratch.other), neighbor});
      }
    }
    write(place, row, scratch);
  }

  void write(Size place, const Data* row, Scratch& scratch) {
    std::vector<Candidate<double>>& found = scratch.nearest.sorted();
    if (sizeof(Real) > sizeof(Data) || found.back().distance < kSmallestDistance) {
      for (Candidate<double>& candidate : found) {
        candidate.distance = kernel_.squared_distance(row, points_.row(candidate.id, scratch.other),
                                                      points_.features, points_.projection.scale);
      }
      std::sort(found.begin(), found.end());
    }
    PointId* indices = found_rows_.indices(place);
    Real* distances = found_rows_.squared_distances(place);
    for (Size j = 0; j < request_.neighbors; ++j) {
      const Candidate<double>& candidate = found[static_cast<std::size_t>(j)];
      indices[j] = candidate.id;
      distances[j] = static_cast<Real>(candidate.distance);
    }
  }

  static constexpr Size kRowFloats = 16; // of the widest vector

  const NeighborsRequest<Data, Real>& request_;
  const PointSet<Data>& points_;
  ApproximateEffort effort_;
  Cells cells_;
  FoundRows<Data, Real> found_rows_;
  Size found_first_; // neighbours of each point in the first round
  const DistanceKernels<Data>& kernel_;
  const DistanceKernels<float>& kernel_of_coordinates_ = kernels().distances.f32;
  std::unique_ptr<PointId[]> first_found_; // of the points of own cells
  std::vector<PointId> fetched_places_;    // of other processes, ascending
  std::vector<PointId> fetched_;           // their lists
  std::unique_ptr<float[]> rows_;
  Size row_length_ = 0;
  std::vector<Scratch> scratch_;
};

template <typename Data, typename Real>
double ApproximateSearch<Data, Real>::recall(std::span<const PointId> sample,
                                             ThreadTeam& team) const {
  const Size k = request_.neighbors;
  Communicator& processes = *request_.processes;
  const Rows own = rows_of(processes.rank(), processes.size(), points_.rows);
  const Size dims = cells_.dims();
  std::vector<Data> data;
  std::vector<float> coordinates;
  std::vector<double> norms;
  for (const PointId id : sample) {
    const float* from = points_.projection.row(id);
    data.resize(data.size() + static_cast<std::size_t>(points_.features));
    points_.read(id, data.data() + data.size() - points_.features);
    coordinates.insert(coordinates.end(), from, from + dims);
    norms.push_back(points_.projection.squared_norms[id]);
  }
  const PointSet<Data> queries{data.data(),
                               static_cast<Size>(sample.size()),
                               points_.features,
                               {coordinates.data(), dims, norms.data(), points_.projection.scale}};
  const Cells query_cells(queries.projection, queries.rows, queries.features, team);
  // The point itself is the first of k + 1.
  CellSearch<Data> search(points_, cells_, queries, query_cells, k + 1, team);
  std::atomic<Size> hits{0};
  search.run(team, {0, query_cells.count()}, nullptr, [&](Size cell, int) {
    std::vector<Data> row;
    std::vector<Data> other;
    for (Size place = query_cells.begin(cell); place < query_cells.end(cell); ++place) {
      const auto farthest = static_cast<double>(search.nearest(place).sorted().back().distance);
      const PointId id = sample[static_cast<std::size_t>(query_cells.row(place))];
      const Data* from = points_.row(id, row);
      for (Size j = 0; own.has(id) && j < k; ++j) {
        const PointId found = request_.indices[(id - own.begin) * k + j];
        hits += distance(from, found, other) <= farthest ? 1 : 0;
      }
    }
  });
  return static_cast<double>(sum(processes, hits)) / static_cast<double>(queries.rows * k);
}

} // namespace

template <typename Data, typename Real>
double approximate_neighbors(const NeighborsRequest<Data, Real>& request, ApproximateEffort effort,
                             std::span<const PointId> sample, ThreadTeam& team) {
  const Step step("neighbours");
  ApproximateSearch<Data, Real> search(request, effort, team);
  search.run(team);
  return search.recall(sample, team);
}

template double approximate_neighbors(const NeighborsRequest<float, float>&, ApproximateEffort,
                                      std::span<const PointId>, ThreadTeam&);
template double approximate_neighbors(const NeighborsRequest<float, double>&, ApproximateEffort,
                                      std::span<const PointId>, ThreadTeam&);
template double approximate_neighbors(const NeighborsRequest<double, float>&, ApproximateEffort,
                                      std::span<const PointId>, ThreadTeam&);
template double approximate_neighbors(const NeighborsRequest<double, double>&, ApproximateEffort,
                                      std::span<const PointId>, ThreadTeam&);

} // namespace acctsne
