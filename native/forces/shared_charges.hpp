// How several processes charge one grid: each the tiles of it that most of its points lie in, with
// all points that reach into them, so that every node's sum is added in the order of points.
#pragma once

#include "acctsne/communicator.hpp"
#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "forces/convolution.hpp"
#include "kernels/grid.hpp"

#include <span>
#include <vector>

namespace acctsne {

// Columns of a strip, a power of two. At least 4, so that a point's four columns are in two strips
// at most.
inline constexpr Size kStripColumns = 8;

// Nodes of a column that are sent together or, if none has a charge, not at all. Half of them would
// save 4 % of the charges of a map of a million points.
inline constexpr Size kSegmentNodes = 8;

// Points whose charges are added up by themselves in a strip that has more: a sum of millions in
// float would swallow the next one. Whole blocks, so that a point's number decides with which
// others its charge is added up.
inline constexpr Size kPointsPerSum = 8 * kBlockRows;

// Points to charge a grid with, in the order of their numbers.
template <typename Real>
struct ChargingPoints {
  const Real* points; // count x dims
  Size count;
  std::span<const Size> part_ends; // of each kPointsPerSum numbers, where their points end
};

// The tiles of a grid: strips of columns, cut along y.
struct GridTiles {
  Size nodes[2] = {};
  Size strips = 0;
  Size a_strip = 0; // how many a strip has
  Size rows = 0;    // of a tile, a power of two

  GridTiles() = default;
  explicit GridTiles(const Size (&grid_nodes)[2]);

  Size count() const { return strips * a_strip; }
  // What a tile has of the grid, which ends within the last ones.
  Rows columns_of(Size tile) const {
    const Size first = tile / a_strip * kStripColumns;
    return {first, first + kStripColumns < nodes[0] ? first + kStripColumns : nodes[0]};
  }
  Rows rows_of(Size tile) const {
    const Size first = tile % a_strip * rows;
    return {first, first + rows < nodes[1] ? first + rows : nodes[1]};
  }
  Size nodes_of(Size tile) const {
    const Rows x = columns_of(tile);
    const Rows y = rows_of(tile);
    return (x.end - x.begin) * (y.end - y.begin);
  }
};

template <typename Real, int Dims>
class SharedCharges {
public:
  // Decides who charges which tiles of a grid of so many nodes, and sends points there. `points`
  // are all of `count`, of which own ones are read.
  void send_points(const GridGeometry<Real>& geometry, const Size (&nodes)[2], const Real* points,
                   Size count, Communicator& processes, ThreadTeam& team);

  // Those that reach into tiles of this process.
  ChargingPoints<Real> points() const {
    return {arrived_.data(), static_cast<Size>(arrived_.size()) / Dims, part_ends_};
  }
  // Points of all processes whose first column is in a strip.
  Size points_in(Size strip) const { return in_strips_[static_cast<std::size_t>(strip)]; }

  // Completes a grid that was charged with points() by the other processes' tiles.
  void gather_tiles(GridConvolution<Real>& grid, Communicator& processes, ThreadTeam& team);

private:
  static constexpr std::int32_t kNobody = -1;
  static constexpr std::int32_t kSeveral = -2;

  void count_points(const GridGeometry<Real>& geometry, const Real* points, Rows own,
                    Communicator& processes, ThreadTeam& team);
  void choose_owners(int processes);
  template <typename Body>
  void for_tiles(Size name, Body&& body) const;
  template <typename Body>
  void for_owners(Size name, Body&& body) const;
  template <typename Body>
  void for_runs(Rows own, Size begin, Size end, Body&& body) const;
  template <typename Body>
  void for_segments(GridConvolution<Real>& grid, Size tile, Body&& body) const;

  GridTiles tiles_;
  std::vector<std::uint32_t> names_;      // of the tiles that own points reach into
  std::vector<std::uint32_t> of_workers_; // counts of own points by name
  std::vector<std::uint32_t> counts_;     // of each process, by tile and then by strip
  std::vector<Size> in_strips_;
  std::vector<std::int32_t> owners_;      // of each tile, kNobody if nothing reaches into it
  std::vector<std::int32_t> sole_owners_; // of all tiles of a name, or kSeveral
  std::vector<Size> places_;              // chunks x processes: where a chunk's next point goes
  std::vector<Real> leaving_;
  std::vector<Real> arrived_;
  std::vector<Size> part_ends_;
  std::vector<Size> by_owner_;         // tiles that have an owner
  std::vector<std::uint64_t> charged_; // of these tiles: a bit for each segment
  std::vector<Size> starts_;           // of these tiles, in charges_
  std::vector<Real> charges_;          // of all segments with charges
};

} // namespace acctsne
