// Between grids whose steps differ by kCoarseness = 4 (forces/coarse_grid.cpp). A cubic B-spline
// of the coarse grid is a sum of 13 of the fine one, so that going over loses nothing: charges go
// to the coarse grid with these weights, and a potential comes back with the same.
//
// Coarse coefficient j takes part in the fine ones 4 j - 9 ... 4 j + 3: the last one of the four
// that begin at 4 (j - 3), and all of the next three fours.

// Along y, one line. `fine` has 12 zeros before it and zeros behind it.
template <typename Real>
void coarsen_line(const Real* fine, Size coarse_nodes, Real* coarse) {
  using N = Nodes<Real>;
  for (Size j = 0; j < coarse_nodes; ++j) {
    typename N::Four sum = {};
    for (int four = 0; four < 4; ++four) {
      sum += N::load(TwoScale<Real>::kWeights + 4 * four) * N::load(fine + 4 * (j + four - 3));
    }
    coarse[j] = N::sum(sum);
  }
}

// The way back. Writes fours of fine coefficients, and reads three coarse ones more than fours.
template <typename Real>
void refine_line(const Real* coarse, Size fours, Real* fine) {
  using N = Nodes<Real>;
  for (Size i = 0; i < fours; ++i) {
    typename N::Four sum = {};
    for (int four = 0; four < 4; ++four) {
      sum += N::load(TwoScale<Real>::kWeights + 4 * four) * coarse[i + 3 - four];
    }
    N::store(fine + 4 * i, sum);
  }
}

// Along x: adds lines, each times its weight, to another. `length` is a multiple of the lanes.
template <typename Real>
void add_lines(const Real* const* lines, const Real* weights, int count, Size length, Real* to) {
  using S = Simd<Real>;
  for (Size y = 0; y < length; y += S::kLanes) {
    auto sum = S::load(to + y);
    for (int i = 0; i < count; ++i) {
      sum += S::load(lines[i] + y) * weights[i];
    }
    S::store(to + y, sum);
  }
}
