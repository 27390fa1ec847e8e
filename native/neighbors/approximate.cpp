// Step 1, KNN, in two rounds.
//
// 1. The nearest points within the cells that are likely to hold any (neighbors/probe.cpp). This
//    misses some where the guess is wrong.
// 2. A neighbour's neighbour is often a neighbour. So look at the neighbours that the first round
//    found for the few nearest neighbours of the point, and keep the k nearest of all. As the
//    second round reads only what the first one wrote, threads cannot change the result.
//
// Points are called by their place in the order of cells: neighbours have places close by, so that
// what consecutive points look at stays in cache.
//
// Of several processes each has its own rows of the data and searches for the points of its own
// cells. In the first round each has the coordinates of all points, packed. In the second it takes
// a few cells at a time, and is sent what it looks at for these: lists of the first round, and the
// points that they name.
#include "neighbors/approximate.hpp"

#include "acctsne/large_array.hpp"
#include "kernels/dispatch.hpp"
#include "neighbors/cell_search.hpp"
#include "neighbors/fetched_points.hpp"
#include "neighbors/found_rows.hpp"
#include "neighbors/probe.hpp"

#include <bit>
#include <cmath>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

namespace acctsne {
namespace {

// A set of places that is cheap to empty.
class PlaceSet {
public:
  void start(Size most) { slots_.assign(std::bit_ceil(at(2 * most)), -1); }
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
Size first_neighbors(const PointSet<Data>& points, Size rows, Size neighbors) {
  const Size more = points.projection.dims < points.features ? neighbors / 2 + 16 : 0;
  return std::min(neighbors + more, rows - 1);
}

// The projection of the points of all processes.
class WholeProjection {
public:
  WholeProjection(const Projection& own, Size rows, Communicator& processes) : projection_(own) {
    if (processes.size() == 1) {
      return;
    }
    const Size first = rows_of(processes.rank(), processes.size(), rows).begin;
    const Size count = rows_of(processes.rank(), processes.size(), rows).end - first;
    coordinates_.reset(new float[at(rows * own.dims)]);
    squared_norms_.reset(new double[at(rows)]);
    std::copy_n(own.coordinates, count * own.dims, coordinates_.get() + first * own.dims);
    std::copy_n(own.squared_norms, count, squared_norms_.get() + first);
    gather_rows(processes, coordinates_.get(), rows, own.dims);
    gather_rows(processes, squared_norms_.get(), rows, 1);
    projection_.coordinates = coordinates_.get();
    projection_.squared_norms = squared_norms_.get();
  }

  const Projection& get() const { return projection_; }
  // It is not needed any more.
  void release() {
    coordinates_.reset();
    squared_norms_.reset();
  }

private:
  Projection projection_;
  std::unique_ptr<float[]> coordinates_;
  std::unique_ptr<double[]> squared_norms_;
};

template <typename Data>
class ApproximateSearch {
public:
  ApproximateSearch(const NeighborsRequest<Data>& request, ApproximateEffort effort,
                    ThreadTeam& team)
      : request_(request), processes_(*request.processes), points_(request.points),
        all_rows_(sum(processes_, points_.rows)), effort_(effort),
        projection_(points_.projection, all_rows_, processes_),
        cells_(projection_.get(), all_rows_, points_.features, team), found_rows_(request, cells_),
        found_first_(first_neighbors(points_, all_rows_, request.neighbors)),
        kernel_(kernels().distances.of<Data>()), scratch_(at(team.size())) {}

  void run(ThreadTeam& team) {
    visit_cells(team);
    if (processes_.size() == 1) {
      visit_all_neighbors(team);
    } else {
      visit_fetched_neighbors(team);
    }
    first_found_.reset();
  }

  double recall(std::span<const PointId> sample, ThreadTeam& team) const;

private:
  struct Scratch {
    CellProbe::Scratch cells;
    NearestList<double> nearest;
    PlaceSet seen;
    std::vector<PointId> candidates; // slots
    std::vector<float> bounds;       // of their squared distances
    std::vector<Data> row;           // of a point, if it cannot be used where it is
    std::vector<Data> other;         // likewise
  };

  // What the second round looks at, by slots: those of fetched points, or places where all points
  // are here.
  struct Surroundings {
    const PointId* ids;
    const PointId* lists; // slots of what the first round found for the points of the first slots
    const float* coordinates;
    const FetchedPoints<Data>* fetched; // null if all points are here
  };

  // The places of the neighbours that the first round found for the point at `place`.
  PointId* first_found(Size place) const {
    return first_found_.get() + (place - found_rows_.places().begin) * found_first_;
  }
  Size expanded() const { return std::min(effort_.expanded, found_first_); }

  bool has_residuals() const { return cells_.dims() < points_.features; }

  const Data* data_row(const Surroundings& around, PointId id, std::vector<Data>& read) const {
    return around.fetched != nullptr ? around.fetched->row(id, read) : points_.row(id, read);
  }
  double distance(const Data* a, const Data* b) const {
    return kernel_.near_distance(a, b, points_.features, points_.projection.scale);
  }

  void count_done(Size rows) const {
    if (request_.done != nullptr) {
      request_.done->fetch_add(rows, std::memory_order_relaxed);
    }
  }

  void visit_cells(ThreadTeam& team) {
    const Rows places = found_rows_.places();
    first_found_ =
        make_large_array<PointId>(at((places.end - places.begin) * found_first_), team.size());
    const CellPanels panels(cells_, projection_.get(), team);
    projection_.release();
    const CellProbe probe(cells_, panels, has_residuals(), found_first_, effort_.cells,
                          effort_.z_score, team);
    const Rows own = found_rows_.cells();
    team.for_chunks(own.end - own.begin, [&](Size chunk, int worker) {
      const Size cell = own.begin + chunk;
      const Size first = cells_.begin(cell);
      if (probe.search(cell, first_found(first), scratch_[at(worker)].cells, team, worker)) {
        count_done((cells_.end(cell) - first) / 2);
      }
    });
  }

  // Slots are places.
  void visit_all_neighbors(ThreadTeam& team) {
    const Size length = points_.coordinate_row();
    const LargeArray<float> coordinates =
        make_large_array<float>(at(all_rows_ * length), team.size());
    parallel_for(team, all_rows_, kCellPoints, [&](Size begin, Size end) {
      for (Size place = begin; place < end; ++place) {
        points_.lay_out_coordinates(cells_.row(place), coordinates.get() + place * length, length);
      }
    });
    found_rows_.hold(found_rows_.cells());
    visit_neighbors(found_rows_.cells(), 0,
                    {cells_.order(), first_found_.get(), coordinates.get(), nullptr}, team);
  }

  // Some cells at a time.
  void visit_fetched_neighbors(ThreadTeam& team) {
    FetchedPoints<Data> fetched(points_, all_rows_, processes_);
    const Size most = chunk_count(cells_.count(), processes_.size()); // cells of a process
    const Size rounds = chunk_count(most, effort_.cells_at_once);
    const Rows own = found_rows_.cells();
    for (Size round = 0; round < rounds; ++round) {
      const Rows cells{std::min(own.begin + round * effort_.cells_at_once, own.end),
                       std::min(own.begin + (round + 1) * effort_.cells_at_once, own.end)};
      const Rows places = places_of(cells, cells_);
      const std::vector<PointId> lists = fetch_surroundings(places, fetched);
      found_rows_.hold(cells);
      visit_neighbors(cells, places.begin,
                      {fetched.ids(), lists.data(), fetched.coordinates(), &fetched}, team);
      found_rows_.send_home(1);
      fetched.clear();
    }
  }

  // Fetches what is looked at for the points at some places: their own slots come first. Returns
  // the lists of these and of the points that are expanded, in slots.
  std::vector<PointId> fetch_surroundings(Rows places, FetchedPoints<Data>& fetched) {
    std::vector<PointId> others; // that are expanded
    std::vector<PointId> lists;  // of places, at first
    for (Size place = places.begin; place < places.end; ++place) {
      const PointId* known = first_found(place);
      lists.insert(lists.end(), known, known + found_first_);
      std::copy_if(known, known + expanded(), std::back_inserter(others),
                   [&](PointId other) { return !places.has(other); });
    }
    std::ranges::sort(others);
    const auto repeated = std::ranges::unique(others);
    others.erase(repeated.begin(), repeated.end());
    // Places ascend with the processes that have them.
    std::vector<Size> ends;
    for (int rank = 0; rank < processes_.size(); ++rank) {
      const Rows theirs = places_of(cells_of(rank, processes_.size(), cells_.count()), cells_);
      ends.push_back(std::ranges::lower_bound(others, theirs.end) - others.begin());
    }
    std::vector<Size> asked_ends;
    const std::vector<PointId> asked = deliver(processes_, others, ends, &asked_ends);
    std::vector<PointId> leaving;
    leaving.reserve(asked.size() * at(found_first_));
    for (const PointId place : asked) {
      leaving.insert(leaving.end(), first_found(place), first_found(place) + found_first_);
    }
    for (Size& end : asked_ends) {
      end *= found_first_;
    }
    const std::vector<PointId> arrived = deliver(processes_, leaving, asked_ends);
    lists.insert(lists.end(), arrived.begin(), arrived.end());

    for (Size place = places.begin; place < places.end; ++place) {
      fetched.ask(cells_.row(place));
    }
    for (const PointId place : others) {
      fetched.ask(cells_.row(place));
    }
    for (PointId& item : lists) {
      item = fetched.ask(cells_.row(item));
    }
    fetched.fetch();
    return lists;
  }

  // The first place has the first slot that the surroundings have a list for.
  void visit_neighbors(Rows cells, Size first_place, const Surroundings& around, ThreadTeam& team) {
    team.for_chunks(cells.end - cells.begin, [&](Size chunk, int worker) {
      const Size cell = cells.begin + chunk;
      Scratch& scratch = scratch_[at(worker)];
      const Size first = cells_.begin(cell);
      const Size last = cells_.end(cell);
      for (Size place = first; place < last && !team.should_stop(worker); ++place) {
        visit_neighbors_of(place, place - first_place, around, scratch);
      }
      count_done((last - first + 1) / 2);
    });
  }

  void visit_neighbors_of(Size place, Size slot, const Surroundings& around, Scratch& scratch) {
    const Data* row = data_row(around, around.ids[slot], scratch.row);
    const PointId* known = around.lists + slot * found_first_;
    const Size length = points_.coordinate_row();
    scratch.seen.start((expanded() + 1) * found_first_ + 1);
    scratch.seen.insert(static_cast<PointId>(slot));
    scratch.nearest.start(request_.neighbors);
    const auto look_at = [&](PointId other) {
      const PointId id = around.ids[other];
      scratch.nearest.add({distance(row, data_row(around, id, scratch.other)), id});
    };
    for (Size j = 0; j < found_first_; ++j) {
      scratch.seen.insert(known[j]);
      look_at(known[j]);
    }
    scratch.nearest.drop_farthest();
    scratch.candidates.clear();
    for (Size j = 0; j < expanded(); ++j) {
      const PointId* theirs = around.lists + Size{known[j]} * found_first_;
      for (Size i = 0; i < found_first_; ++i) {
        if (scratch.seen.insert(theirs[i])) {
          scratch.candidates.push_back(theirs[i]);
        }
      }
    }
    const auto count = static_cast<Size>(scratch.candidates.size());
    scratch.bounds.resize(scratch.candidates.size());
    kernel_of_coordinates_.squared_distances_to(around.coordinates + slot * length,
                                                around.coordinates, scratch.candidates.data(),
                                                count, length, scratch.bounds.data());
    for (Size c = 0; c < count; ++c) {
      if (static_cast<double>(scratch.bounds[at(c)]) < scratch.nearest.limit()) {
        look_at(scratch.candidates[at(c)]);
      }
    }
    write(place, row, around, scratch);
  }

  void write(Size place, const Data* row, const Surroundings& around, Scratch& scratch) {
    std::vector<Candidate<double>>& found = scratch.nearest.sorted();
    if (request_.wants_more_than_data() || found.back().distance < kSmallestDistance) {
      for (Candidate<double>& candidate : found) {
        candidate.distance =
            kernel_.squared_distance(row, data_row(around, candidate.id, scratch.other),
                                     points_.features, points_.projection.scale);
      }
      std::sort(found.begin(), found.end());
    }
    found_rows_.write(place, found);
  }

  Size count_within(std::span<const PointId> sample, const Data* rows, const double* limits,
                    ThreadTeam& team) const;

  const NeighborsRequest<Data>& request_;
  Communicator& processes_;
  const PointSet<Data>& points_; // own rows
  Size all_rows_;
  ApproximateEffort effort_;
  WholeProjection projection_;
  Cells cells_; // of all points
  FoundRows found_rows_;
  Size found_first_; // neighbours of each point in the first round
  const DistanceKernels<Data>& kernel_;
  const DistanceKernels<float>& kernel_of_coordinates_ = kernels().distances.f32;
  LargeArray<PointId> first_found_; // of the points of own cells
  std::vector<Scratch> scratch_;
};

// Each process searches its own rows for the nearest of all samples. The farthest of the nearest of
// all is as far as a true neighbour may be.
template <typename Data>
double ApproximateSearch<Data>::recall(std::span<const PointId> sample, ThreadTeam& team) const {
  const Size k = request_.neighbors;
  const Size kept = k + 1; // the point itself is the first
  const auto queries_count = static_cast<Size>(sample.size());
  const Size dims = cells_.dims();
  const Rows own = rows_of(processes_.rank(), processes_.size(), all_rows_);
  std::vector<Size> ends; // of each process's samples
  for (int rank = 0; rank < processes_.size(); ++rank) {
    const Rows theirs = rows_of(rank, processes_.size(), all_rows_);
    ends.push_back(std::ranges::lower_bound(sample, theirs.end) - sample.begin());
  }
  const auto gather = [&](auto& values, Size width) {
    std::vector<Size> bytes = ends;
    for (Size& end : bytes) {
      end *= width * static_cast<Size>(sizeof(values[0]));
    }
    processes_.gather(reinterpret_cast<std::byte*>(values.data()), bytes);
  };
  std::vector<Data> data(at(queries_count * points_.features));
  std::vector<float> coordinates(at(queries_count * dims));
  std::vector<double> norms(sample.size());
  for (std::size_t q = 0; q < sample.size(); ++q) {
    if (!own.has(sample[q])) {
      continue;
    }
    const auto id = static_cast<PointId>(sample[q] - own.begin);
    points_.read(id, data.data() + static_cast<Size>(q) * points_.features);
    std::copy_n(points_.projection.row(id), dims, coordinates.data() + static_cast<Size>(q) * dims);
    norms[q] = points_.projection.squared_norms[id];
  }
  gather(data, points_.features);
  gather(coordinates, dims);
  gather(norms, 1);

  // The nearest of own rows to each query, and no number where there are too few.
  const auto lists = static_cast<std::size_t>(processes_.size());
  const Size list = queries_count * kept;
  std::vector<Data> nearest(lists * at(list), std::numeric_limits<Data>::infinity());
  if (points_.rows > 0) {
    const PointSet<Data> queries{
        data.data(),
        queries_count,
        points_.features,
        {coordinates.data(), dims, norms.data(), points_.projection.scale}};
    std::optional<Cells> own_cells;
    if (processes_.size() > 1) {
      own_cells.emplace(points_.projection, points_.rows, points_.features, team);
    }
    const Cells& cells = own_cells ? *own_cells : cells_;
    const Cells query_cells(queries.projection, queries.rows, queries.features, team);
    const SearchedPoints<Data> searched(points_, cells, /*as_bytes=*/false, 0, team);
    const SearchedPoints<Data> asked(queries, query_cells, /*as_bytes=*/false, 0, team);
    QueryLists<Data> found_lists(query_cells, std::min(kept, points_.rows));
    CellSearch<Data> search(searched, asked, found_lists, /*go_on=*/false, team);
    search.run(team, {}, [&](Size cell, int) {
      for (Size place = query_cells.begin(cell); place < query_cells.end(cell); ++place) {
        Data* to = nearest.data() + processes_.rank() * list + query_cells.row(place) * kept;
        for (const Candidate<Data>& candidate : found_lists.of(place).sorted()) {
          *to++ = candidate.distance;
        }
      }
    });
  }
  std::vector<Size> list_ends;
  for (Size end = list; list_ends.size() < lists; end += list) {
    list_ends.push_back(end * static_cast<Size>(sizeof(Data)));
  }
  processes_.gather(reinterpret_cast<std::byte*>(nearest.data()), list_ends);

  std::vector<double> limits(sample.size());
  std::vector<Data> all_nearest;
  for (Size q = 0; q < queries_count; ++q) {
    all_nearest.clear();
    for (std::size_t process = 0; process < lists; ++process) {
      const Data* from = nearest.data() + static_cast<Size>(process) * list + q * kept;
      all_nearest.insert(all_nearest.end(), from, from + kept);
    }
    std::nth_element(all_nearest.begin(), all_nearest.begin() + k, all_nearest.end());
    limits[at(q)] = static_cast<double>(all_nearest[at(k)]);
  }
  const Size hits = count_within(sample, data.data(), limits.data(), team);
  return static_cast<double>(sum(processes_, hits)) / static_cast<double>(queries_count * k);
}

// How many of the neighbours found for own samples are within the limits. Their rows are fetched
// for a few samples at a time, lest they take the memory of all.
template <typename Data>
Size ApproximateSearch<Data>::count_within(std::span<const PointId> sample, const Data* rows,
                                           const double* limits, ThreadTeam& team) const {
  constexpr std::size_t kAtOnce = 16;
  const Size k = request_.neighbors;
  const Rows own = rows_of(processes_.rank(), processes_.size(), all_rows_);
  FetchedPoints<Data> found(points_, all_rows_, processes_);
  std::vector<Data> read;
  Size hits = 0;
  for (std::size_t begin = 0; begin < sample.size(); begin += kAtOnce) {
    const std::size_t end = std::min(begin + kAtOnce, sample.size());
    const auto for_neighbors = [&](const auto& body) {
      for (std::size_t q = begin; q < end; ++q) {
        if (own.has(sample[q])) {
          const PointId* neighbors = request_.indices + (sample[q] - own.begin) * k;
          std::for_each_n(neighbors, k, [&](PointId neighbor) { body(q, neighbor); });
        }
      }
    };
    for_neighbors([&](std::size_t, PointId neighbor) { found.ask(neighbor); });
    found.fetch();
    for_neighbors([&](std::size_t q, PointId neighbor) {
      const Data* row = rows + static_cast<Size>(q) * points_.features;
      hits += distance(row, found.row(neighbor, read)) <= limits[q] ? 1 : 0;
    });
    found.clear();
    team.check();
  }
  return hits;
}

} // namespace

template <typename Data>
double approximate_neighbors(const NeighborsRequest<Data>& request, ApproximateEffort effort,
                             std::span<const PointId> sample, ThreadTeam& team) {
  const Step step("neighbours");
  ApproximateSearch<Data> search(request, effort, team);
  search.run(team);
  return search.recall(sample, team);
}

template double approximate_neighbors(const NeighborsRequest<float>&, ApproximateEffort,
                                      std::span<const PointId>, ThreadTeam&);
template double approximate_neighbors(const NeighborsRequest<double>&, ApproximateEffort,
                                      std::span<const PointId>, ThreadTeam&);

} // namespace acctsne
