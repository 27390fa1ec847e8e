// How several processes charge one grid: each the tiles of it that most of its points lie in, with
// all points that reach into them, so that every node's sum is added in the order of points.
#pragma once

#include "acctsne/communicator.hpp"
#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "forces/charge_spreader.hpp"
#include "forces/grid.hpp"
#include "forces/grid_tiles.hpp"
#include "forces/shared_blocks.hpp"
#include "kernels/grid.hpp"

#include <span>
#include <vector>

namespace acctsne {

// Nodes of a column that are sent together or, if none has a charge, not at all. Fewer would save
// little (docs/tuning.md).
inline constexpr Size kSegmentNodes = 8;

template <typename Real, int Dims>
class SharedCharges {
public:
  // For a grid of so many nodes, of which every process needs the whole, or what some of its
  // blocks take.
  void divide(const Size (&nodes)[2]);
  void divide(const Size (&nodes)[2], const GridBlocks& blocks);

  // Decides who charges which tiles, and sends points there. `points` are all of `count`, of which
  // own ones are read.
  void send_points(const GridGeometry<Real>& geometry, const Real* points, Size count,
                   Communicator& processes, ThreadTeam& team);

  // Those that reach into tiles of this process.
  ChargingPoints<Real> points() const {
    return {arrived_.data(), static_cast<Size>(arrived_.size()) / Dims, part_ends_, in_strips_};
  }

  // Completes a grid that was charged with points() by what this process needs of the others'
  // tiles.
  void exchange_tiles(Grid<Real>& grid, Communicator& processes, ThreadTeam& team);

  // Of the last points: which blocks each process needs.
  const SharedBlocks& blocks() const { return blocks_; }

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
  void for_segments(Grid<Real>& grid, Size tile, Body&& body) const;

  // Tiles on their way, by process.
  struct Shipment {
    std::vector<Size> tiles;
    std::vector<Size> tile_ends;        // of each process
    std::vector<std::uint64_t> charged; // a bit for each segment, those of a tile in its own words
    std::vector<Size> starts;           // of each tile, in charges
    std::vector<Real> charges;          // of the segments with charges

    void clear();
    // From what is charged of the tiles, so many words of each: where they start.
    void make_room(Size words);
  };
  Size words_of_tile() const;
  void list_tiles(const Communicator& processes);
  template <typename Body>
  void for_charged(Grid<Real>& grid, Shipment& shipment, ThreadTeam& team, Body&& body) const;

  GridTiles tiles_;
  bool in_blocks_ = false;
  SharedBlocks blocks_;
  std::vector<std::uint32_t> names_;      // of the tiles that own points reach into
  std::vector<std::uint32_t> of_workers_; // counts of own points by name
  std::vector<std::uint32_t> counts_;     // of each process, by tile and then by strip
  std::vector<Size> in_strips_;           // points of all processes by strip of the first column
  std::vector<std::int32_t> owners_;      // of each tile, kNobody if nothing reaches into it
  std::vector<std::int32_t> sole_owners_; // of all tiles of a name, or kSeveral
  std::vector<Size> places_;              // chunks x processes: where a chunk's next point goes
  std::vector<Real> leaving_;
  std::vector<Real> arrived_;
  std::vector<Size> part_ends_;
  std::vector<std::vector<Size>> of_owners_; // tiles
  Shipment leaving_tiles_;
  Shipment arriving_tiles_;
};

} // namespace acctsne
