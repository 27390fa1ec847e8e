// One step of gradient descent for a range of points, with everything the next iteration needs
// gathered on the way.

template <typename Real, int Dims>
void update_points(const UpdateParameters<Real>& parameters, Size begin, Size end,
                   const Real* attractive, const Real* repulsive, Real* points, Real* updates,
                   Real* gains, UpdateSums& sums) {
  // Delta-bar-delta constants of the original t-SNE, the same in every package.
  constexpr Real kGainIncrease = Real(0.2);
  constexpr Real kGainDecay = Real(0.8);
  constexpr Real kSmallestGain = Real(0.01);

  Real lower[Dims];
  Real upper[Dims];
  double position[Dims] = {};
  for (int axis = 0; axis < Dims; ++axis) {
    lower[axis] = Real(__builtin_inff());
    upper[axis] = -Real(__builtin_inff());
  }
  double squared_gradient = 0;
  const Real max_step2 = parameters.max_step * parameters.max_step;

  for (Size i = begin; i < end; ++i) {
    Real step[Dims];
    Real step2 = 0;
    for (int axis = 0; axis < Dims; ++axis) {
      const Size at = i * Dims + axis;
      const Real gradient =
          parameters.attraction_scale * attractive[at] + parameters.repulsion_scale * repulsive[at];
      const bool same_direction = updates[at] * gradient < Real(0);
      Real gain = same_direction ? gains[at] + kGainIncrease : gains[at] * kGainDecay;
      gain = gain > kSmallestGain ? gain : kSmallestGain;
      gains[at] = gain;
      const Real scaled = gain * gradient;
      squared_gradient += static_cast<double>(scaled) * static_cast<double>(scaled);
      step[axis] = parameters.momentum * updates[at] - parameters.learning_rate * scaled;
      step2 += step[axis] * step[axis];
    }
    const Real shorten = step2 > max_step2
                             ? parameters.max_step / static_cast<Real>(__builtin_sqrt(step2))
                             : Real(1);
    for (int axis = 0; axis < Dims; ++axis) {
      const Size at = i * Dims + axis;
      const Real update = step[axis] * shorten;
      const Real moved = points[at] - parameters.shift[axis] + update;
      updates[at] = update;
      points[at] = moved;
      position[axis] += static_cast<double>(moved);
      lower[axis] = moved < lower[axis] ? moved : lower[axis];
      upper[axis] = moved > upper[axis] ? moved : upper[axis];
    }
  }
  for (int axis = 0; axis < Dims; ++axis) {
    sums.position[axis] = position[axis];
    sums.lower[axis] = static_cast<double>(lower[axis]);
    sums.upper[axis] = static_cast<double>(upper[axis]);
  }
  sums.squared_gradient = squared_gradient;
}
