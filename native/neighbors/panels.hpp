// The points of a search in the order of their cells, packed for the tile kernel.
#pragma once

#include "kernels/kernels.hpp"
#include "neighbors/cells.hpp"
#include "neighbors/points.hpp"

#include <memory>
#include <vector>

namespace acctsne {

class CellPanels {
public:
  CellPanels(const Projection& projection, Size rows, Size features, ThreadTeam& team);

  Size cells() const { return cells_; }
  Size dims() const { return dims_; }
  Size width() const { return width_; }
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
  void copy_query(Size place, float* coordinates, float& norm, float* rests) const;

private:
  void set_stages();
  void pack_cell(const Projection& projection, Size cell);

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

} // namespace acctsne
