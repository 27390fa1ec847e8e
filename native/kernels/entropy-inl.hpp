// Entropy of probabilities (forces/edges.cpp).

// The sum of p log p, in double. Probabilities are 0 or normal numbers up to 1.
template <typename Real>
double negative_entropy(const Real* probabilities, Size count) {
  using S = Simd<double>;
  S::Vec sum = {};
  const auto add = [&](const Real* from) {
    const S::Vec p = load_as_double(from);
    const S::Vec inverse = p > 0 ? 1 / p : S::splat(1);
    sum -= p * S::log_from_one(inverse);
  };
  Size i = 0;
  for (; i + S::kLanes <= count; i += S::kLanes) {
    add(probabilities + i);
  }
  Real padded[S::kLanes] = {};
  for (Size lane = 0; i + lane < count; ++lane) {
    padded[lane] = probabilities[i + lane];
  }
  add(padded);
  return S::sum(sum);
}
