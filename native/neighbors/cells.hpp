// Cells: the points in an order that keeps close ones together, cut into runs of equal length.
#pragma once

#include "acctsne/parallel.hpp"
#include "neighbors/points.hpp"

#include <algorithm>
#include <vector>

namespace acctsne {

// Points of a cell; the last one may have fewer. A multiple of every panel width.
inline constexpr Size kCellPoints = 256;

// A position in the order is called a place.
class Cells {
public:
  // The leading columns of the projection are those with the largest variance; `features` is how
  // many numbers a point had before it was projected.
  Cells(const Projection& projection, Size rows, Size features, ThreadTeam& team);

  Size count() const { return static_cast<Size>(radii_.size()); }
  Size rows() const { return rows_; }
  Size dims() const { return dims_; }
  Size begin(Size cell) const { return cell * kCellPoints; }
  Size end(Size cell) const { return std::min((cell + 1) * kCellPoints, rows_); }
  PointId row(Size place) const { return order_[at(place)]; }
  const PointId* order() const { return order_.data(); } // the rows of all places

  const float* centre(Size cell) const { return centres_.data() + cell * dims_; }
  // Of the bounding sphere of the cell's points, about the centre, what rounding may have done to
  // them included; and that alone.
  double radius(Size cell) const { return radii_[at(cell)]; }
  double rounding(Size cell) const { return roundings_[at(cell)]; }

  // What rounding of the centred and rotated coordinates may do to |q|^2 + |p|^2 - 2 q p, relative
  // to |q|^2 + |p|^2.
  double slack() const { return slack_; }

private:
  void measure(const Projection& projection, Size cell);

  Size rows_;
  Size dims_;
  double slack_;
  std::vector<PointId> order_;
  std::vector<float> centres_;
  std::vector<double> radii_;
  std::vector<double> roundings_;
};

} // namespace acctsne
