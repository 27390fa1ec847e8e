// Which cells are likely to hold neighbours of a query: if the points of a cell were normally
// distributed along the axes, their squared distances from the query would have a known mean and
// variance. A cell is visited if the z-score of the query's k-th distance so far, its deviations
// below the mean, is small enough. That spares queries in dense regions most visits, and gives
// those in sparse ones what they need.
#include "neighbors/probe.hpp"

#include "kernels/dispatch.hpp"

#include <numeric>

namespace acctsne {

CellProbe::CellProbe(const Cells& cells, const CellPanels& panels, bool residuals, Size kept,
                     Size nearby, double z_score, ThreadTeam& team)
    : kernels_(kernels().search), cells_(cells), panels_(panels), residuals_(residuals),
      kept_(kept),
      // Enough candidates must be there.
      nearby_(std::max(nearby, chunk_count(kept + 1, kCellPoints) + 1)),
      squared_z_score_(static_cast<float>(z_score * z_score)),
      variances_(at(cells.count() * cells.dims()), 0.0f), no_residuals_(at(panels.width()), 0.0f) {
  team.for_chunks(cells_.count(), [&](Size cell, int) { measure_cell(cell); });
}

void CellProbe::measure_cell(Size cell) {
  const Size dims = cells_.dims();
  const Size width = panels_.width();
  const auto count = static_cast<float>(cells_.end(cell) - cells_.begin(cell));
  for (Size d = 0; d < dims; ++d) {
    float sum = 0;
    for (Size place = cells_.begin(cell); place < cells_.end(cell); ++place) {
      const Size first = place / width * width;
      const float apart = panels_.panel(first)[d * width + place - first] - cells_.centre(cell)[d];
      sum += apart * apart;
    }
    variances_[at(cell * dims + d)] = sum / count;
  }
}

bool CellProbe::search(Size cell, PointId* places, Scratch& scratch, ThreadTeam& team,
                       int worker) const {
  prepare(cell, scratch);
  order_visits(cell, scratch);
  for (const Size visited : scratch.visits) {
    if (team.should_stop(worker)) {
      return false;
    }
    find_active(cell, visited, scratch);
    for (std::size_t a = 0; a < scratch.active.size(); a += kTileQueries) {
      const auto in_tile = std::min<std::size_t>(kTileQueries, scratch.active.size() - a);
      visit_tiles(cell, visited, scratch.active.data() + a, static_cast<int>(in_tile), scratch);
    }
  }
  for (NearestPlaces& nearest : scratch.nearest) {
    nearest.write(places);
    places += kept_;
  }
  return true;
}

void CellProbe::prepare(Size cell, Scratch& scratch) const {
  const Size dims = cells_.dims();
  const Size first = cells_.begin(cell);
  const Size count = cells_.end(cell) - first;
  scratch.coordinates.resize(at(kCellPoints * dims));
  scratch.means.resize(at(kCellPoints));
  scratch.spreads.resize(at(kCellPoints));
  scratch.tile.resize(at(kTileQueries * panels_.width()));
  scratch.nearest.resize(at(count));
  for (Size q = 0; q < count; ++q) {
    panels_.copy_coordinates(first + q, scratch.coordinates.data() + q * dims);
    scratch.nearest[at(q)].start(kept_);
  }
}

// The nearest cells, by their centres; the queries' own comes first.
void CellProbe::order_visits(Size cell, Scratch& scratch) const {
  const Size cells = cells_.count();
  std::vector<float>& distances = scratch.centre_distances;
  distances.resize(at(cells));
  kernels_.distances_to_rows(cells_.centre(cell), cells_.centre(0), cells, cells_.dims(),
                             cells_.dims(), distances.data());
  distances[at(cell)] = -1;
  scratch.visits.resize(at(cells));
  std::iota(scratch.visits.begin(), scratch.visits.end(), Size{0});
  const auto nearer = [&](Size a, Size b) {
    const float left = distances[at(a)];
    const float right = distances[at(b)];
    return left < right || (left == right && a < b);
  };
  const auto nearby = scratch.visits.begin() + std::min(nearby_, cells);
  std::partial_sort(scratch.visits.begin(), nearby, scratch.visits.end(), nearer);
  scratch.visits.erase(nearby, scratch.visits.end());
}

void CellProbe::find_active(Size cell, Size visited, Scratch& scratch) const {
  const Size dims = cells_.dims();
  const Size first = cells_.begin(cell);
  const auto count = static_cast<Size>(scratch.nearest.size());
  for (Size q = 0; q < count; q += panels_.width()) {
    kernels_.spread_of_distances(panels_.panel(first + q), dims, cells_.centre(visited),
                                 variances_.data() + visited * dims, scratch.means.data() + q,
                                 scratch.spreads.data() + q);
  }
  scratch.active.clear();
  for (Size q = 0; q < count; ++q) {
    const auto at = static_cast<std::size_t>(q);
    const float beyond = scratch.means[at] - scratch.nearest[at].limit();
    if (beyond <= 0 || beyond * beyond < squared_z_score_ * scratch.spreads[at]) {
      scratch.active.push_back(static_cast<int>(q));
    }
  }
}

void CellProbe::visit_tiles(Size cell, Size visited, const int* active, int count,
                            Scratch& scratch) const {
  const auto dims = static_cast<std::size_t>(cells_.dims());
  const Size first = cells_.begin(cell);
  const Size width = panels_.width();
  ProbeQueries queries;
  for (int q = 0; q < kTileQueries; ++q) {
    const auto from = static_cast<std::size_t>(active[q < count ? q : 0]);
    queries.coordinates[q] = scratch.coordinates.data() + from * dims;
    queries.limits[q] = q < count ? scratch.nearest[from].limit() : -1;
    queries.residuals[q] = residuals_ ? *panels_.residuals(first + static_cast<Size>(from)) : 0;
  }
  for (Size place = cells_.begin(visited); place < cells_.end(visited); place += width) {
    const float* residuals = residuals_ ? panels_.residuals(place) : no_residuals_.data();
    std::uint64_t hits[kTileQueries];
    if (!kernels_.probe_tile(queries, panels_.panel(place), residuals, panels_.stages(), hits,
                             scratch.tile.data())) {
      continue;
    }
    for (int q = 0; q < count; ++q) {
      const float* distances = scratch.tile.data() + q * width;
      const Size own = first + active[q];
      NearestPlaces& nearest = scratch.nearest[at(active[q])];
      for (std::uint64_t mask = hits[q]; mask != 0; mask &= mask - 1) {
        const Size lane = std::countr_zero(mask);
        if (place + lane < cells_.rows() && place + lane != own) {
          nearest.add(distances[lane], place + lane);
        }
      }
      queries.limits[q] = nearest.limit();
    }
  }
}

} // namespace acctsne
