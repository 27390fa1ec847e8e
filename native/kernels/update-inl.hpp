// One step of gradient descent for a range of points, with everything the next iteration needs
// gathered on the way.
//
// Coordinates are worked on as one flat array, kLanes points (Dims vectors) at a time. Lane l of
// the v-th of those vectors belongs to axis (v kLanes + l) mod Dims, always the same one, so sums
// and bounds are kept per lane and sorted by axis in the end.

// Delta-bar-delta constants of the original t-SNE, the same in every package.
template <typename Real>
struct GainRule {
  static constexpr Real kIncrease = Real(0.2);
  static constexpr Real kDecay = Real(0.8);
  static constexpr Real kSmallest = Real(0.01);
};

inline void start_sums(int dims, UpdateSums sums) {
  for (int axis = 0; axis < dims; ++axis) {
    sums.position[axis] = 0;
    sums.lower[axis] = static_cast<double>(__builtin_inff());
    sums.upper[axis] = -static_cast<double>(__builtin_inff());
  }
  sums.squared_gradient = 0;
}

template <typename Real, int Dims>
struct UpdateLanes {
  using S = Simd<Real>;
  using Vec = typename S::Vec;
  Vec position[Dims] = {};
  Vec squared_gradient = {};
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
    for (int lane = 0; lane < S::kLanes; ++lane) {
      sums.squared_gradient += static_cast<double>(squared_gradient[lane]);
    }
    squared_gradient = Vec{};
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
    if (length2 > max_step * max_step) {
      const Real shorten = max_step / static_cast<Real>(__builtin_sqrt(length2));
      for (int axis = 0; axis < Dims; ++axis) {
        flat[i * Dims + axis] *= shorten;
      }
    }
  }
  for (int v = 0; v < Dims; ++v) {
    steps[v] = S::load(flat + v * S::kLanes);
  }
}

template <typename Real, int Dims>
void update_points(int, const UpdateParameters<Real>& parameters, Size begin, Size end,
                   const Real* attractive, const Real* repulsive, Real* points, Real* updates,
                   Real* gains, UpdateSums sums) {
  using S = Simd<Real>;
  using Vec = typename S::Vec;
  using Rule = GainRule<Real>;
  constexpr int kFlat = Dims * S::kLanes;
  constexpr int kGroupsPerFlush = 32;

  start_sums(Dims, sums);
  Vec shift[Dims] = {};
  for (int v = 0; v < Dims && parameters.shift != nullptr; ++v) {
    for (int lane = 0; lane < S::kLanes; ++lane) {
      shift[v][lane] = parameters.shift[(v * S::kLanes + lane) % Dims];
    }
  }
  // A step that no coordinate takes longer than this is short enough.
  const Real longest_coordinate = parameters.max_step / Real(Dims);

  UpdateLanes<Real, Dims> lanes;
  const auto update_group = [&](const Real* attraction, const Real* repulsion, Real* point,
                                Real* update, Real* gain) {
    Vec steps[Dims];
    typename S::IntVec any_long = {};
    for (int v = 0; v < Dims; ++v) {
      const Vec last = S::load(update + v * S::kLanes);
      const Vec gradient = parameters.attraction_scale * S::load(attraction + v * S::kLanes) +
                           parameters.repulsion_scale * S::load(repulsion + v * S::kLanes);
      const Vec old_gain = S::load(gain + v * S::kLanes);
      Vec new_gain =
          last * gradient < Real(0) ? old_gain + Rule::kIncrease : old_gain * Rule::kDecay;
      new_gain = new_gain > Rule::kSmallest ? new_gain : S::splat(Rule::kSmallest);
      S::store(gain + v * S::kLanes, new_gain);
      const Vec scaled = new_gain * gradient;
      lanes.squared_gradient += scaled * scaled;
      steps[v] = parameters.momentum * last - parameters.learning_rate * scaled;
      any_long |= (steps[v] > longest_coordinate) | (steps[v] < -longest_coordinate);
    }
    typename S::Int found = 0;
    for (int lane = 0; lane < S::kLanes; ++lane) {
      found |= any_long[lane];
    }
    if (found != 0) {
      clip_steps<Real, Dims>(parameters.max_step, steps);
    }
    for (int v = 0; v < Dims; ++v) {
      const Vec moved = S::load(point + v * S::kLanes) - shift[v] + steps[v];
      S::store(update + v * S::kLanes, steps[v]);
      S::store(point + v * S::kLanes, moved);
      lanes.position[v] += moved;
      lanes.lower[v] = moved < lanes.lower[v] ? moved : lanes.lower[v];
      lanes.upper[v] = moved > lanes.upper[v] ? moved : lanes.upper[v];
    }
  };

  Size at = begin * Dims;
  int groups = 0;
  for (; at + kFlat <= end * Dims; at += kFlat) {
    update_group(attractive + at, repulsive + at, points + at, updates + at, gains + at);
    if (++groups == kGroupsPerFlush) {
      lanes.flush(sums);
      groups = 0;
    }
  }
  lanes.flush(sums);
  lanes.add_bounds(sums);

  // The last few points: a group filled up with copies of the first of them, whose sums are then
  // taken point by point.
  const Size left = end * Dims - at;
  if (left > 0) {
    const Real* given[] = {attractive + at, repulsive + at, points + at, updates + at, gains + at};
    Real copies[5][kFlat];
    for (int array = 0; array < 5; ++array) {
      for (int i = 0; i < kFlat; ++i) {
        copies[array][i] = given[array][i < left ? i : i % Dims];
      }
    }
    lanes = UpdateLanes<Real, Dims>();
    update_group(copies[0], copies[1], copies[2], copies[3], copies[4]);
    lanes.add_bounds(sums);
    for (Size i = 0; i < left; ++i) {
      const Real gradient =
          parameters.attraction_scale * copies[0][i] + parameters.repulsion_scale * copies[1][i];
      const auto scaled = static_cast<double>(copies[4][i] * gradient);
      sums.squared_gradient += scaled * scaled;
      sums.position[i % Dims] += static_cast<double>(copies[2][i]);
      points[at + i] = copies[2][i];
      updates[at + i] = copies[3][i];
      gains[at + i] = copies[4][i];
    }
  }
}

// The same for any number of axes, point by point: beside the repulsion of so many axes this takes
// no time.
template <typename Real>
void any_update_points(int dims, const UpdateParameters<Real>& parameters, Size begin, Size end,
                       const Real* attractive, const Real* repulsive, Real* points, Real* updates,
                       Real* gains, UpdateSums sums) {
  using Rule = GainRule<Real>;
  start_sums(dims, sums);
  double squared_gradient = 0;
  for (Size i = begin; i < end; ++i) {
    const Size at = i * dims;
    Real length2 = 0;
    for (Size c = at; c < at + dims; ++c) {
      const Real gradient =
          parameters.attraction_scale * attractive[c] + parameters.repulsion_scale * repulsive[c];
      const Real gain =
          updates[c] * gradient < Real(0) ? gains[c] + Rule::kIncrease : gains[c] * Rule::kDecay;
      gains[c] = gain > Rule::kSmallest ? gain : Rule::kSmallest;
      const Real scaled = gains[c] * gradient;
      squared_gradient += static_cast<double>(scaled) * static_cast<double>(scaled);
      updates[c] = parameters.momentum * updates[c] - parameters.learning_rate * scaled;
      length2 += updates[c] * updates[c];
    }
    const Real shorten = length2 > parameters.max_step * parameters.max_step
                             ? parameters.max_step / static_cast<Real>(__builtin_sqrt(length2))
                             : Real(1);
    for (int axis = 0; axis < dims; ++axis) {
      const Real shift = parameters.shift != nullptr ? parameters.shift[axis] : Real(0);
      updates[at + axis] *= shorten;
      const Real moved = points[at + axis] - shift + updates[at + axis];
      points[at + axis] = moved;
      const auto position = static_cast<double>(moved);
      sums.position[axis] += position;
      sums.lower[axis] = position < sums.lower[axis] ? position : sums.lower[axis];
      sums.upper[axis] = position > sums.upper[axis] ? position : sums.upper[axis];
    }
  }
  sums.squared_gradient = squared_gradient;
}
