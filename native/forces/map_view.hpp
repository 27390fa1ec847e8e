// The points of a map as the methods of repulsion see them, and their bounds.
#pragma once

#include "acctsne/types.hpp"

#include <algorithm>
#include <vector>

namespace acctsne {

// Points in the output kernel's unit.
template <typename Real>
struct MapView {
  const Real* points; // count x dims
  Size count;
  const Real* lower; // these two: the points' bounds, one value an axis
  const Real* upper;
};

// The bounds of points that come without.
template <typename Real>
class Bounds {
public:
  Bounds(const Real* points, Size count, int dims)
      : points_(points), count_(count), lower_(points, points + dims), upper_(lower_) {
    for (Size i = 0; i < count; ++i) {
      for (int axis = 0; axis < dims; ++axis) {
        const Real value = points[i * dims + axis];
        Real& low = lower_[at(axis)];
        Real& high = upper_[at(axis)];
        low = std::min(low, value);
        high = std::max(high, value);
      }
    }
  }

  MapView<Real> map() const { return {points_, count_, lower_.data(), upper_.data()}; }

private:
  const Real* points_;
  Size count_;
  std::vector<Real> lower_;
  std::vector<Real> upper_;
};

} // namespace acctsne
