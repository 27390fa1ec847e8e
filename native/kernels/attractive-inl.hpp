// Attractive forces (the paper's Algorithm 2) and the part of the KL divergence that shares their
// pass over P.

// How many edges ahead the positions of neighbours are prefetched. Tuned on nothing yet but the
// paper's remark that one row ahead is enough: a row holds about 130 edges at perplexity 30.
inline constexpr EdgeId kPrefetchDistance = 64;

// Calls visit(weights, differences) with a vector of edges at a time; missing lanes at the row's
// end have p = 0.
template <typename Real, int Dims, typename Visit>
inline void visit_row(const PointId* columns, const Real* values, const Real* points, EdgeId begin,
                      EdgeId end, EdgeId last, const Real* y, Visit&& visit) {
  using S = Simd<Real>;
  using Vec = typename S::Vec;
  for (EdgeId edge = begin; edge < end; edge += S::kLanes) {
    Real neighbors[Dims][S::kLanes];
    Vec p;
    if (edge + S::kLanes <= end) {
      p = S::load(values + edge);
      for (int lane = 0; lane < S::kLanes; ++lane) {
        const Real* point = points + static_cast<Size>(columns[edge + lane]) * Dims;
        for (int axis = 0; axis < Dims; ++axis) {
          neighbors[axis][lane] = point[axis];
        }
      }
      if (edge + kPrefetchDistance + S::kLanes <= last) {
        for (int lane = 0; lane < S::kLanes; ++lane) {
          const PointId column = columns[edge + kPrefetchDistance + lane];
          __builtin_prefetch(points + static_cast<Size>(column) * Dims);
        }
      }
    } else {
      Real rest[S::kLanes] = {};
      for (int lane = 0; lane < S::kLanes; ++lane) {
        const bool present = edge + lane < end;
        const Real* point = present ? points + static_cast<Size>(columns[edge + lane]) * Dims : y;
        rest[lane] = present ? values[edge + lane] : Real(0);
        for (int axis = 0; axis < Dims; ++axis) {
          neighbors[axis][lane] = point[axis];
        }
      }
      p = S::load(rest);
    }
    Vec difference[Dims];
    for (int axis = 0; axis < Dims; ++axis) {
      difference[axis] = y[axis] - S::load(neighbors[axis]);
    }
    visit(p, difference);
  }
}

template <typename Real, int Dims>
void attractive_rows(const EdgeId* offsets, const PointId* columns, const Real* values,
                     const Real* points, Size begin, Size end, Real* force) {
  using S = Simd<Real>;
  using Vec = typename S::Vec;
  for (Size i = begin; i < end; ++i) {
    Vec sums[Dims] = {};
    visit_row<Real, Dims>(columns, values, points, offsets[i], offsets[i + 1], offsets[end],
                          points + i * Dims, [&](Vec p, const Vec* difference) {
                            Vec one_plus_d2 = S::splat(1);
                            for (int axis = 0; axis < Dims; ++axis) {
                              one_plus_d2 += difference[axis] * difference[axis];
                            }
                            const Vec weight = p / one_plus_d2;
                            for (int axis = 0; axis < Dims; ++axis) {
                              sums[axis] += weight * difference[axis];
                            }
                          });
    for (int axis = 0; axis < Dims; ++axis) {
      force[i * Dims + axis] = S::sum(sums[axis]);
    }
  }
}

template <typename Real, int Dims>
double cross_entropy_rows(const EdgeId* offsets, const PointId* columns, const Real* values,
                          const Real* points, Size begin, Size end) {
  using S = Simd<Real>;
  using Vec = typename S::Vec;
  double total = 0;
  for (Size i = begin; i < end; ++i) {
    Vec row = {};
    visit_row<Real, Dims>(columns, values, points, offsets[i], offsets[i + 1], offsets[end],
                          points + i * Dims, [&](Vec p, const Vec* difference) {
                            Vec one_plus_d2 = S::splat(1);
                            for (int axis = 0; axis < Dims; ++axis) {
                              one_plus_d2 += difference[axis] * difference[axis];
                            }
                            row += p * S::log_from_one(one_plus_d2);
                          });
    total += static_cast<double>(S::sum(row));
  }
  return total;
}
