// One row of the search for bandwidths: its distances without their unit, and its Gaussian weights
// with the three sums that a Newton step needs.

template <typename Real>
inline RowUnit normalize_row(const Real* given, const double* mask, Size count, Size padded,
                             double* distances) {
  using S = Simd<double>;
  for (Size j = 0; j < count; ++j) {
    distances[j] = static_cast<double>(given[j]);
  }
  for (Size j = count; j < padded; ++j) {
    distances[j] = distances[0];
  }
  S::Vec least = S::load(distances);
  S::Vec most = least;
  for (Size j = S::kLanes; j < padded; j += S::kLanes) {
    const S::Vec d = S::load(distances + j);
    least = d < least ? d : least;
    most = d > most ? d : most;
  }
  double smallest = least[0];
  double largest = most[0];
  for (int lane = 1; lane < S::kLanes; ++lane) {
    smallest = least[lane] < smallest ? least[lane] : smallest;
    largest = most[lane] > largest ? most[lane] : largest;
  }
  const double range = largest - smallest;
  if (!(range > 0)) {
    for (Size j = 0; j < padded; ++j) {
      distances[j] = 0;
    }
    return {smallest, 0};
  }
  // By the range first: a sum of the distances themselves may overflow.
  S::Vec total = {};
  for (Size j = 0; j < padded; j += S::kLanes) {
    const S::Vec d = S::load(mask + j) * ((S::load(distances + j) - smallest) / range);
    S::store(distances + j, d);
    total += d;
  }
  const double mean = S::sum(total) / static_cast<double>(count);
  const double factor = 1 / mean;
  for (Size j = 0; j < padded; j += S::kLanes) {
    S::store(distances + j, S::load(distances + j) * factor);
  }
  return {smallest, range * mean};
}

inline GaussianSums gaussian_row(const double* distances, const double* mask, Size padded,
                                 double beta, double* weights) {
  using S = Simd<double>;
  S::Vec total = {};
  S::Vec first = {};
  S::Vec second = {};
  for (Size j = 0; j < padded; j += S::kLanes) {
    const S::Vec d = S::load(distances + j);
    const S::Vec w = S::load(mask + j) * S::exp_negative(-beta * d);
    S::store(weights + j, w);
    const S::Vec weighted = w * d;
    total += w;
    first += weighted;
    second += weighted * d;
  }
  return {S::sum(total), S::sum(first), S::sum(second)};
}
