// Transposes a square of kLanes vectors in place: log2(kLanes) rounds of exchanging halves.

template <typename Real, int Half, int... Lane>
inline void exchange_halves(typename Simd<Real>::Vec& a, typename Simd<Real>::Vec& b,
                            std::integer_sequence<int, Lane...>) {
  constexpr int kLanes = Simd<Real>::kLanes;
  const auto low =
      __builtin_shufflevector(a, b, ((Lane & Half) == 0 ? Lane : kLanes + Lane - Half)...);
  const auto high =
      __builtin_shufflevector(a, b, ((Lane & Half) == 0 ? Lane + Half : kLanes + Lane)...);
  a = low;
  b = high;
}

template <typename Real, int Half = Simd<Real>::kLanes / 2>
inline void transpose(typename Simd<Real>::Vec* rows) {
  constexpr int kLanes = Simd<Real>::kLanes;
  for (int i = 0; i < kLanes; ++i) {
    if ((i & Half) == 0) {
      exchange_halves<Real, Half>(rows[i], rows[i + Half],
                                  std::make_integer_sequence<int, kLanes>{});
    }
  }
  if constexpr (Half > 1) {
    transpose<Real, Half / 2>(rows);
  }
}
