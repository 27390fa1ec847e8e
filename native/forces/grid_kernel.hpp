// The kernel that the grid convolves with, (1 + r^2)^-exponent, whole or cut in two.
//
// The near part is zero from kNearReach on, so that its transform needs that much padding and not
// the map's width. The far part is smooth, so that a grid with kCoarseness times the step holds it.
//   far  = a (c1^2 + r^2)^-exponent + b (c2^2 + r^2)^-exponent, nearly
//   near = whole - far
// With a + b = 1 and a c1^2 + b c2^2 = 1 the two leading terms of whole and far at large r agree,
// and what is left of the near part there, less than 1 % of the whole, fades out between half of
// the reach and the reach.
//
// Wider c would make the two grids agree better with one, and want a longer reach.
#pragma once

#include <algorithm>
#include <cmath>

namespace acctsne {

enum class KernelPart { whole, near, far };

inline constexpr double kNearReach = 12;

class GridKernel {
public:
  explicit GridKernel(double exponent) : exponent_(exponent) {}
  double exponent() const { return exponent_; }

  double operator()(KernelPart part, double r2) const {
    const double whole = power(1 + r2);
    if (part == KernelPart::whole) {
      return whole;
    }
    const double near =
        (whole - kWeight1 * power(kSquare1 + r2) - kWeight2 * power(kSquare2 + r2)) *
        fading(2 * std::sqrt(r2) / kNearReach - 1);
    return part == KernelPart::near ? near : whole - near;
  }

  // Its value at r2 less that at far2, also where the two hardly differ.
  double above(KernelPart part, double r2, double far2) const {
    if (part != KernelPart::whole) {
      return (*this)(part, r2) - (*this)(part, far2);
    }
    if (exponent_ == 1) {
      return (far2 - r2) / ((1 + r2) * (1 + far2)); // in a tenth of the time of what follows
    }
    const double log_of_ratio = exponent_ * (std::log1p(far2) - std::log1p(r2));
    // Where the ratio of the two would overflow, the smaller one is nothing beside the other.
    return log_of_ratio < kLargestLog ? power(1 + far2) * std::expm1(log_of_ratio) : power(1 + r2);
  }

private:
  static constexpr double kLargestLog = 700; // a little less than that of the largest double
  static constexpr double kSquare1 = 5 * 5;
  static constexpr double kSquare2 = 8 * 8;
  static constexpr double kWeight1 = (kSquare2 - 1) / (kSquare2 - kSquare1);
  static constexpr double kWeight2 = 1 - kWeight1;

  double power(double base) const { return exponent_ == 1 ? 1 / base : std::pow(base, -exponent_); }
  // From 1 at 0 to 0 at 1, with three continuous derivatives.
  static double fading(double t) {
    t = std::clamp(t, 0.0, 1.0);
    return 1 - t * t * t * t * (35 + t * (-84 + t * (70 - 20 * t)));
  }

  double exponent_;
};

} // namespace acctsne
