// One step of gradient descent for a range of points, with everything the next iteration needs
// gathered on the way.
//
// Coordinates are worked on as one flat array, kLanes points (Dims vectors) at a time. Lane l of
// the v-th of those vectors belongs to axis (v kLanes + l) mod Dims, always the same one, so sums
// and bounds are kept per lane and sorted by axis in the end. The last few points, and points of
// many axes, go one by one.

inline void start_sums(int dims, UpdateSums sums) {
  for (int axis = 0; axis < dims; ++axis) {
    sums.position[axis] = 0;
    sums.lower[axis] = static_cast<double>(__builtin_inff());
    sums.upper[axis] = -static_cast<double>(__builtin_inff());
  }
  sums.squared_gradient = 0;
  sums.last_work = 0;
  sums.next_work = 0;
  sums.turned = 0;
}

template <typename Real, int Dims>
struct UpdateLanes {
  using S = Simd<Real>;
  using Vec = typename S::Vec;
  Vec position[Dims] = {};
  Vec squared_gradient = {};
  Vec last_work = {};
  Vec next_work = {};
  Vec turned = {};
  Vec lower[Dims];
  Vec upper[Dims];

  UpdateLanes() {
    for (int v = 0; v < Dims; ++v) {
      lower[v] = S::splat(Real(__builtin_inff()));
      upper[v] = S::splat(-Real(__builtin_inff()));
    }
  }

  // Adds the sums so far to `sums` and starts them again: they are kept in Real for a few points
  // only.
  void flush(UpdateSums sums) {
    for (int v = 0; v < Dims; ++v) {
      for (int lane = 0; lane < S::kLanes; ++lane) {
        sums.position[(v * S::kLanes + lane) % Dims] += static_cast<double>(position[v][lane]);
      }
      position[v] = Vec{};
    }
    const auto move = [](Vec& from, double& to) {
      for (int lane = 0; lane < S::kLanes; ++lane) {
        to += static_cast<double>(from[lane]);
      }
      from = Vec{};
    };
    move(squared_gradient, sums.squared_gradient);
    move(last_work, sums.last_work);
    move(next_work, sums.next_work);
    move(turned, sums.turned);
  }

  void add_bounds(UpdateSums sums) const {
    for (int v = 0; v < Dims; ++v) {
      for (int lane = 0; lane < S::kLanes; ++lane) {
        const int axis = (v * S::kLanes + lane) % Dims;
        const auto low = static_cast<double>(lower[v][lane]);
        const auto high = static_cast<double>(upper[v][lane]);
        sums.lower[axis] = low < sums.lower[axis] ? low : sums.lower[axis];
        sums.upper[axis] = high > sums.upper[axis] ? high : sums.upper[axis];
      }
    }
  }
};

// Replaces the coordinates of kLanes points by their sum over each point's axes.
template <typename Real, int Dims>
inline void sum_over_axes(typename Simd<Real>::Vec* values) {
  using S = Simd<Real>;
  if constexpr (Dims == 2) {
    for (int v = 0; v < Dims; ++v) {
      values[v] += S::swap_neighbors(values[v]);
    }
  } else if constexpr (Dims > 2) {
    Real flat[Dims * S::kLanes];
    for (int v = 0; v < Dims; ++v) {
      S::store(flat + v * S::kLanes, values[v]);
    }
    for (int i = 0; i < S::kLanes; ++i) {
      Real sum = 0;
      for (int axis = 0; axis < Dims; ++axis) {
        sum += flat[i * Dims + axis];
      }
      for (int axis = 0; axis < Dims; ++axis) {
        flat[i * Dims + axis] = sum;
      }
    }
    for (int v = 0; v < Dims; ++v) {
      values[v] = S::load(flat + v * S::kLanes);
    }
  }
}

// Shortens the steps of kLanes points that exceed the longest. Rare, so point by point.
template <typename Real, int Dims>
inline void clip_steps(Real max_step, typename Simd<Real>::Vec* steps) {
  using S = Simd<Real>;
  Real flat[Dims * S::kLanes];
  for (int v = 0; v < Dims; ++v) {
    S::store(flat + v * S::kLanes, steps[v]);
  }
  for (int i = 0; i < S::kLanes; ++i) {
    Real length2 = 0;
    for (int axis = 0; axis < Dims; ++axis) {
      length2 += flat[i * Dims + axis] * flat[i * Dims + axis];
    }
    const Real shorter = shortened(length2, max_step);
    for (int axis = 0; axis < Dims; ++axis) {
      flat[i * Dims + axis] *= shorter;
    }
  }
  for (int v = 0; v < Dims; ++v) {
    steps[v] = S::load(flat + v * S::kLanes);
  }
}

// Moves points [begin, end) one by one and adds to the sums.
template <typename Real, StepRule Rule>
void move_points(int dims, const UpdateParameters<Real>& parameters,
                 const UpdateArrays<Real>& arrays, Size begin, Size end, UpdateSums sums) {
  for (Size i = begin; i < end; ++i) {
    const Size at = i * dims;
    const auto gradient_of = [&](Size c) {
      return parameters.attraction_scale * arrays.attractive[c] +
             parameters.repulsion_scale * arrays.repulsive[c];
    };
    Real length2 = 0;
    Real turn = 0;
    Real growth = 0;
    for (Size c = at; c < at + dims; ++c) {
      const Real last = arrays.updates[c];
      const Real gradient = gradient_of(c);
      Real scaled = gradient;
      if constexpr (Rule == StepRule::delta_bar_delta) {
        arrays.gains[c] = DeltaBarDelta<Real>::gain(arrays.gains[c], last, gradient);
        scaled = arrays.gains[c] * gradient;
        sums.squared_gradient += static_cast<double>(scaled) * static_cast<double>(scaled);
      } else {
        scaled = arrays.gains[c] * arrays.preconditioner[c] * gradient;
        sums.squared_gradient += static_cast<double>(gradient) * static_cast<double>(gradient);
      }
      const Real step = next_step(parameters.momentum, last, parameters.learning_rate, scaled);
      sums.last_work += static_cast<double>(gradient) * static_cast<double>(last);
      turn += step * last;
      growth += step * step - last * last;
      length2 += step * step;
      arrays.updates[c] = step;
    }
    const Real shorter = shortened(length2, parameters.max_step);
    for (int axis = 0; axis < dims; ++axis) {
      const Size c = at + axis;
      const Real shift = parameters.shift != nullptr ? parameters.shift[axis] : Real(0);
      if constexpr (Rule == StepRule::heavy_ball) {
        const Real gain = HeavyBall<Real>::gain(arrays.gains[c], turn, growth);
        sums.turned += gain < arrays.gains[c] ? 1 : 0;
        arrays.gains[c] = gain;
      }
      arrays.updates[c] *= shorter;
      sums.next_work +=
          static_cast<double>(gradient_of(c)) * static_cast<double>(arrays.updates[c]);
      const Real moved = arrays.points[c] - shift + arrays.updates[c];
      arrays.points[c] = moved;
      const auto position = static_cast<double>(moved);
      sums.position[axis] += position;
      sums.lower[axis] = position < sums.lower[axis] ? position : sums.lower[axis];
      sums.upper[axis] = position > sums.upper[axis] ? position : sums.upper[axis];
    }
  }
}

template <typename Real, int Dims, StepRule Rule>
void move_groups(const UpdateParameters<Real>& parameters, const UpdateArrays<Real>& arrays,
                 Size begin, Size end, UpdateSums sums) {
  using S = Simd<Real>;
  using Vec = typename S::Vec;
  constexpr int kFlat = Dims * S::kLanes;
  constexpr int kGroupsPerFlush = 32;

  Vec shift[Dims] = {};
  for (int v = 0; v < Dims && parameters.shift != nullptr; ++v) {
    for (int lane = 0; lane < S::kLanes; ++lane) {
      shift[v][lane] = parameters.shift[(v * S::kLanes + lane) % Dims];
    }
  }
  // A step that no coordinate takes longer than this is short enough.
  const Real longest_coordinate = parameters.max_step / Real(Dims);

  UpdateLanes<Real, Dims> lanes;
  int groups = 0;
  Size at = begin * Dims;
  for (; at + kFlat <= end * Dims; at += kFlat) {
    Vec gradients[Dims];
    Vec steps[Dims];
    Vec turn[Dims];
    Vec growth[Dims];
    typename S::IntVec any_long = {};
    for (int v = 0; v < Dims; ++v) {
      const Size c = at + v * S::kLanes;
      const Vec last = S::load(arrays.updates + c);
      const Vec gain = S::load(arrays.gains + c);
      gradients[v] = parameters.attraction_scale * S::load(arrays.attractive + c) +
                     parameters.repulsion_scale * S::load(arrays.repulsive + c);
      Vec scaled;
      if constexpr (Rule == StepRule::delta_bar_delta) {
        const Vec next_gain = DeltaBarDelta<Real>::gain(gain, last, gradients[v]);
        S::store(arrays.gains + c, next_gain);
        scaled = next_gain * gradients[v];
        lanes.squared_gradient += scaled * scaled;
      } else {
        scaled = gain * S::load(arrays.preconditioner + c) * gradients[v];
        lanes.squared_gradient += gradients[v] * gradients[v];
      }
      steps[v] = next_step(parameters.momentum, last, parameters.learning_rate, scaled);
      lanes.last_work += gradients[v] * last;
      turn[v] = steps[v] * last;
      growth[v] = steps[v] * steps[v] - last * last;
      any_long |= (steps[v] > longest_coordinate) | (steps[v] < -longest_coordinate);
    }
    if constexpr (Rule == StepRule::heavy_ball) {
      sum_over_axes<Real, Dims>(turn);
      sum_over_axes<Real, Dims>(growth);
      for (int v = 0; v < Dims; ++v) {
        const Vec gain = S::load(arrays.gains + at + v * S::kLanes);
        const Vec next_gain = HeavyBall<Real>::gain(gain, turn[v], growth[v]);
        lanes.turned += next_gain < gain ? S::splat(1) : Vec{};
        S::store(arrays.gains + at + v * S::kLanes, next_gain);
      }
    }
    typename S::Int found = 0;
    for (int lane = 0; lane < S::kLanes; ++lane) {
      found |= any_long[lane];
    }
    if (found != 0) {
      clip_steps<Real, Dims>(parameters.max_step, steps);
    }
    for (int v = 0; v < Dims; ++v) {
      const Size c = at + v * S::kLanes;
      const Vec moved = S::load(arrays.points + c) - shift[v] + steps[v];
      S::store(arrays.updates + c, steps[v]);
      S::store(arrays.points + c, moved);
      lanes.next_work += gradients[v] * steps[v];
      lanes.position[v] += moved;
      lanes.lower[v] = moved < lanes.lower[v] ? moved : lanes.lower[v];
      lanes.upper[v] = moved > lanes.upper[v] ? moved : lanes.upper[v];
    }
    if (++groups == kGroupsPerFlush) {
      lanes.flush(sums);
      groups = 0;
    }
  }
  lanes.flush(sums);
  lanes.add_bounds(sums);
  move_points<Real, Rule>(Dims, parameters, arrays, at / Dims, end, sums);
}

template <typename Real, int Dims>
void update_points(int any_dims, const UpdateParameters<Real>& parameters,
                   const UpdateArrays<Real>& arrays, Size begin, Size end, UpdateSums sums) {
  const auto update = [&]<StepRule Rule>() {
    if constexpr (Dims == kAnyDims) {
      start_sums(any_dims, sums);
      move_points<Real, Rule>(any_dims, parameters, arrays, begin, end, sums);
    } else {
      start_sums(Dims, sums);
      move_groups<Real, Dims, Rule>(parameters, arrays, begin, end, sums);
    }
  };
  if (parameters.rule == StepRule::delta_bar_delta) {
    update.template operator()<StepRule::delta_bar_delta>();
  } else {
    update.template operator()<StepRule::heavy_ball>();
  }
}
