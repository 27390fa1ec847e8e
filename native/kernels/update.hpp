// What the update asks of the kernels: a step of many points, and what it sums on the way.
#pragma once

#include "acctsne/types.hpp"
#include "kernels/variants.hpp"

namespace acctsne {

// What update_points gathers over its range, besides moving the points: a view of size(dims)
// numbers.
struct UpdateSums {
  static constexpr Size size(int dims) { return 3 * dims + 4; }
  UpdateSums(double* numbers, int dims)
      : position(numbers), lower(numbers + dims), upper(numbers + 2 * dims),
        squared_gradient(numbers[3 * dims]), last_work(numbers[3 * dims + 1]),
        next_work(numbers[3 * dims + 2]), turned(numbers[3 * dims + 3]) {}

  double* position; // these three: one value an axis
  double* lower;
  double* upper;
  double& squared_gradient; // of delta-bar-delta scaled by the gains, as scikit-learn has it
  double& last_work;        // products of the gradient and the step that led here
  double& next_work;        // products of the gradient and the step from here
  double& turned;           // coordinates of points whose step turned round and grew
};

// How a gradient becomes a step (kernels/step_rule-inl.hpp).
enum class StepRule { delta_bar_delta, heavy_ball };

template <typename Real>
struct UpdateParameters {
  // Both times the gradient scale of the output kernel over its unit, which is 1 for one degree of
  // freedom.
  Real attraction_scale; // 4 * exaggeration
  Real repulsion_scale;  // -4 / Z
  Real learning_rate;    // in scikit-learn's unit: the gradient carries its factor 4
  Real momentum;
  Real max_step;     // steps longer than this are shortened to it
  const Real* shift; // taken from every position: the mean before this step; null for nothing
  StepRule rule;
};

// Coordinates of all points, those of a point side by side.
template <typename Real>
struct UpdateArrays {
  const Real* attractive;
  const Real* repulsive;
  const Real* preconditioner; // of the heavy ball
  Real* points;
  Real* updates; // the last step
  Real* gains;
};

template <typename Real>
struct UpdateKernels {
  // optimize/update.cpp: one step of gradient descent for points [begin, end).
  using UpdatePoints = void (*)(int dims, const UpdateParameters<Real>& parameters,
                                const UpdateArrays<Real>& arrays, Size begin, Size end,
                                UpdateSums sums);
  ByDims<UpdatePoints> update_points;
};

} // namespace acctsne
