// Spreads points over a grid: the first part of step 6 on a grid.
#pragma once

#include "acctsne/communicator.hpp"
#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "forces/grid.hpp"
#include "forces/grid_tiles.hpp"
#include "kernels/grid.hpp"

#include <span>
#include <vector>

namespace acctsne {

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
  std::span<const Size> in_strips; // of each strip: points that all processes have; empty for one
};

template <typename Real, int Dims>
class ChargeSpreader {
public:
  // Replaces what the grid holds by the points' charges.
  void spread(const GridGeometry<Real>& geometry, const ChargingPoints<Real>& charging,
              Grid<Real>& grid, ThreadTeam& team);

private:
  // Points of a full strip that are added up by themselves.
  struct Part {
    Size first_column;
    const PointId* begin;
    const PointId* end;
  };

  void sort_and_clear(const GridGeometry<Real>& geometry, const ChargingPoints<Real>& charging,
                      Size strips, Grid<Real>& grid, ThreadTeam& team);
  void spread_in_parts(const GridGeometry<Real>& geometry, const ChargingPoints<Real>& charging,
                       Size parity, Grid<Real>& grid, ThreadTeam& team);

  // Points in the order of the strips of grid columns that they fall into.
  std::vector<PointId> ids_;
  std::vector<std::int32_t> strip_of_;
  std::vector<std::uint32_t> strip_starts_;
  std::vector<std::uint32_t> in_strips_; // points of each
  std::vector<std::uint32_t> histograms_;
  std::vector<bool> is_full_; // of each strip: its points' charges are added up by parts
  std::vector<Part> parts_;   // of the points of full strips
  std::vector<Real> part_columns_;
};

} // namespace acctsne
