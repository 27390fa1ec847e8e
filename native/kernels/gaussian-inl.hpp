// One row of Gaussian weights and the three sums that a Newton step on its bandwidth needs.

inline void gaussian_row(const double* distances, const double* mask, Size count, double beta,
                         double* weights, double* sums) {
  using S = Simd<double>;
  S::Vec total = {};
  S::Vec first = {};
  S::Vec second = {};
  for (Size j = 0; j < count; j += S::kLanes) {
    const S::Vec d = S::load(distances + j);
    const S::Vec w = S::load(mask + j) * S::exp_negative(-beta * d);
    S::store(weights + j, w);
    total += w;
    first += w * d;
    second += w * d * d;
  }
  sums[0] = S::sum(total);
  sums[1] = S::sum(first);
  sums[2] = S::sum(second);
}
