// Each point adds cubic B-spline weights to 4 x 4 nodes. Points are sorted by strips of columns;
// strips with even numbers, then with odd ones, are worked on in parallel, so no two threads meet
// and the order of additions is fixed.
#include "forces/charge_spreader.hpp"

#include "kernels/dispatch.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace acctsne {
namespace {

// Points of a chunk that is sorted into strips: so few that many threads have even shares, unless
// the chunks' histograms would be too many to add up one by one.
Size points_per_chunk(Size count) {
  constexpr Size kFewestPoints = 512;
  constexpr Size kMostChunks = 256;
  return std::max(kFewestPoints, chunk_count(count, kMostChunks));
}

} // namespace

template <typename Real, int Dims>
void ChargeSpreader<Real, Dims>::spread(const GridGeometry<Real>& geometry,
                                        const ChargingPoints<Real>& charging, Grid<Real>& grid,
                                        ThreadTeam& team) {
  const Step step("repulsive: spread");
  const Size strips = chunk_count(grid.nodes(0), kStripColumns);
  sort_and_clear(geometry, charging, strips, grid, team);
  is_full_.resize(at(strips));
  for (std::size_t strip = 0; strip < at(strips); ++strip) {
    const Size own = strip_starts_[strip + 1] - strip_starts_[strip];
    is_full_[strip] =
        (charging.in_strips.empty() ? own : charging.in_strips[strip]) > kPointsPerSum;
  }
  const auto kernel = kernels().grid.of<Real>().spread_points[Dims - 1];
  for (Size parity = 0; parity < 2; ++parity) {
    team.for_chunks((strips - parity + 1) / 2, [&](Size chunk, int) {
      const std::size_t strip = at(2 * chunk + parity);
      if (!is_full_[strip]) {
        const Size begin = strip_starts_[strip];
        kernel(geometry, charging.points, ids_.data() + begin, strip_starts_[strip + 1] - begin,
               grid.column(0));
      }
    });
    spread_in_parts(geometry, charging, parity, grid, team);
  }
}

// Sorts the points into strips, and clears the grid in one of the loops that this takes.
template <typename Real, int Dims>
void ChargeSpreader<Real, Dims>::sort_and_clear(const GridGeometry<Real>& geometry,
                                                const ChargingPoints<Real>& charging, Size strips,
                                                Grid<Real>& grid, ThreadTeam& team) {
  const Size grain = points_per_chunk(charging.count);
  const Size chunks = chunk_count(charging.count, grain);
  ids_.resize(at(charging.count));
  strip_of_.resize(at(charging.count));
  strip_starts_.resize(at(strips + 1));
  histograms_.resize(at(chunks * strips));

  parallel_for(team, charging.count, grain, [&](Size begin, Size end) {
    std::uint32_t* histogram = histograms_.data() + begin / grain * strips;
    std::fill_n(histogram, strips, 0u);
    for (Size i = begin; i < end; ++i) {
      const Real node = (charging.points[i * Dims] - geometry.lower[0]) * geometry.inverse_step;
      const auto strip = static_cast<std::int32_t>(node) / static_cast<std::int32_t>(kStripColumns);
      strip_of_[at(i)] = strip;
      ++histogram[strip];
    }
  });
  // No thread helps here, so histograms are gone through as they lie in memory.
  in_strips_.assign(at(strips), 0u);
  for (Size chunk = 0; chunk < chunks; ++chunk) {
    std::uint32_t* histogram = histograms_.data() + chunk * strips;
    for (Size strip = 0; strip < strips; ++strip) {
      const std::uint32_t before = in_strips_[at(strip)];
      in_strips_[at(strip)] += histogram[strip];
      histogram[strip] = before;
    }
  }
  strip_starts_[0] = 0;
  std::partial_sum(in_strips_.begin(), in_strips_.end(), strip_starts_.begin() + 1);
  team.for_chunks(chunks + grid.clear_chunks(), [&](Size chunk, int) {
    if (chunk >= chunks) {
      grid.clear_chunk(chunk - chunks);
      return;
    }
    const Size begin = chunk * grain;
    const Size end = std::min(begin + grain, charging.count);
    std::uint32_t* next = histograms_.data() + chunk * strips;
    std::transform(next, next + strips, strip_starts_.begin(), next, std::plus<>());
    for (Size i = begin; i < end; ++i) {
      ids_[next[strip_of_[at(i)]]++] = static_cast<PointId>(i);
    }
  });
}

// The full strips of one parity. Parts of their points are spread over columns of their own, which
// are then added to the grid's in the order of the parts.
template <typename Real, int Dims>
void ChargeSpreader<Real, Dims>::spread_in_parts(const GridGeometry<Real>& geometry,
                                                 const ChargingPoints<Real>& charging, Size parity,
                                                 Grid<Real>& grid, ThreadTeam& team) {
  parts_.clear();
  for (std::size_t strip = at(parity); strip < is_full_.size(); strip += 2) {
    const PointId* last = ids_.data() + strip_starts_[strip + 1];
    for (const PointId* ids = ids_.data() + strip_starts_[strip]; is_full_[strip] && ids < last;) {
      const Size part_end = *std::ranges::upper_bound(charging.part_ends, Size{*ids});
      const PointId* next = std::lower_bound(ids, last, part_end);
      parts_.push_back({static_cast<Size>(strip) * kStripColumns, ids, next});
      ids = next;
    }
  }
  if (parts_.empty()) {
    return;
  }
  const auto kernel = kernels().grid.of<Real>().spread_points[Dims - 1];
  constexpr Size kColumns = kStripColumns + 3; // a point's four may reach into the next strip
  const Size part_size = kColumns * grid.stride();
  constexpr Size kAtOnce = 64; // enough for many threads, few enough to stay in caches
  part_columns_.resize(at(kAtOnce * part_size));
  for (Size first = 0; first < static_cast<Size>(parts_.size()); first += kAtOnce) {
    const std::span<const Part> some =
        std::span(parts_).subspan(at(first), std::min(at(kAtOnce), parts_.size() - at(first)));
    team.for_chunks(static_cast<Size>(some.size()), [&](Size i, int) {
      const Part& part = some[at(i)];
      Real* columns = part_columns_.data() + i * part_size;
      std::fill_n(columns, part_size, Real(0));
      // The kernel counts nodes from the grid's first column.
      GridGeometry<Real> of_part = geometry;
      of_part.first_column = part.first_column;
      kernel(of_part, charging.points, part.begin, part.end - part.begin, columns);
    });
    team.for_chunks(kColumns, [&](Size column, int) {
      const Real* from = part_columns_.data() + column * grid.stride();
      for (const Part& part : some) {
        if (part.first_column + column < grid.nodes(0)) {
          Real* to = grid.column(part.first_column + column);
          std::transform(from, from + grid.stride(), to, to, std::plus<>());
        }
        from += part_size;
      }
    });
  }
}

template class ChargeSpreader<float, 1>;
template class ChargeSpreader<float, 2>;
template class ChargeSpreader<double, 1>;
template class ChargeSpreader<double, 2>;

} // namespace acctsne
