// Matrix products by tiles, and operations on rows (linear/, neighbors/centred_rows.cpp).

// The sums of a tile, two vectors of the right panel and one broadcast: 31 of the 32 vector
// registers of AVX-512, 15 of the 16 of AVX2 and SSE2.
inline constexpr int kProductVectors = 2;
#if defined(__AVX512F__)
inline constexpr int kProductRows = 14;
#else
inline constexpr int kProductRows = 6;
#endif

template <typename Real>
void multiply_tile(const Real* left, const Real* right, Size depth, Real* product, Size stride) {
  using S = Simd<Real>;
  typename S::Vec sums[kProductRows][kProductVectors] = {};
  for (Size k = 0; k < depth; ++k) {
    typename S::Vec columns[kProductVectors];
    unrolled<kProductVectors>([&](auto v) __attribute__((always_inline)) {
      columns[v] = S::load(right + v * S::kLanes);
    });
    unrolled<kProductRows>([&](auto r) __attribute__((always_inline)) {
      const typename S::Vec row = S::splat(left[r]);
      unrolled<kProductVectors>(
          [&](auto v) __attribute__((always_inline)) { sums[r][v] += row * columns[v]; });
    });
    left += kProductRows;
    right += kProductVectors * S::kLanes;
  }
  unrolled<kProductRows>([&](auto r) __attribute__((always_inline)) {
    unrolled<kProductVectors>([&](auto v) __attribute__((always_inline)) {
      Real* to = product + r * stride + v * S::kLanes;
      S::store(to, S::load(to) + sums[r][v]);
    });
  });
}

template <typename Real>
void pack_transposed(const Real* columns, Size stride, Size depth, Real* panel) {
  using S = Simd<Real>;
  constexpr int kWidth = kProductVectors * S::kLanes;
  for (int first = 0; first < kWidth; first += S::kLanes) {
    const Real* from = columns + first * stride;
    Size k = 0;
    for (; k + S::kLanes <= depth; k += S::kLanes) {
      typename S::Vec square[S::kLanes];
      for (int lane = 0; lane < S::kLanes; ++lane) {
        square[lane] = S::load(from + lane * stride + k);
      }
      transpose<Real>(square);
      for (int lane = 0; lane < S::kLanes; ++lane) {
        S::store(panel + (k + lane) * kWidth + first, square[lane]);
      }
    }
    for (; k < depth; ++k) {
      for (int lane = 0; lane < S::kLanes; ++lane) {
        panel[k * kWidth + first + lane] = from[lane * stride + k];
      }
    }
  }
}

template <typename Real>
Real dot(const Real* a, const Real* b, Size count) {
  using S = Simd<Real>;
  constexpr int kSums = 4;
  typename S::Vec sums[kSums] = {};
  Size i = 0;
  for (; i + kSums * S::kLanes <= count; i += kSums * S::kLanes) {
    unrolled<kSums>([&](auto s) __attribute__((always_inline)) {
      sums[s] += S::load(a + i + s * S::kLanes) * S::load(b + i + s * S::kLanes);
    });
  }
  for (; i + S::kLanes <= count; i += S::kLanes) {
    sums[0] += S::load(a + i) * S::load(b + i);
  }
  Real total = S::sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
  for (; i < count; ++i) {
    total += a[i] * b[i];
  }
  return total;
}

template <typename Real>
void add_multiple(Real factor, const Real* from, Size count, Real* to) {
  using S = Simd<Real>;
  Size i = 0;
  for (; i + S::kLanes <= count; i += S::kLanes) {
    S::store(to + i, S::load(to + i) + factor * S::load(from + i));
  }
  for (; i < count; ++i) {
    to[i] += factor * from[i];
  }
}

template <typename Real>
void rotate(Real cosine, Real sine, Size count, Real* a, Real* b) {
  using S = Simd<Real>;
  Size i = 0;
  for (; i + S::kLanes <= count; i += S::kLanes) {
    const typename S::Vec x = S::load(a + i);
    const typename S::Vec y = S::load(b + i);
    S::store(a + i, cosine * x - sine * y);
    S::store(b + i, sine * x + cosine * y);
  }
  for (; i < count; ++i) {
    const Real x = a[i];
    const Real y = b[i];
    a[i] = cosine * x - sine * y;
    b[i] = sine * x + cosine * y;
  }
}

template <typename Real>
Real largest_size(const Real* numbers, Size count) {
  using S = Simd<Real>;
  constexpr int kChains = 4;
  typename S::Vec largest[kChains] = {};
  const auto meet = [](typename S::Vec& most, typename S::Vec v) __attribute__((always_inline)) {
    const typename S::Vec size = v < Real(0) ? -v : v;
    most = size > most ? size : most;
  };
  Size i = 0;
  for (; i + kChains * S::kLanes <= count; i += kChains * S::kLanes) {
    unrolled<kChains>([&](auto c) __attribute__((always_inline)) {
      meet(largest[c], S::load(numbers + i + c * S::kLanes));
    });
  }
  Real most = 0;
  for (; i < count; ++i) {
    const Real size = numbers[i] < 0 ? -numbers[i] : numbers[i];
    most = size > most ? size : most;
  }
  for (int c = 0; c < kChains; ++c) {
    for (int lane = 0; lane < S::kLanes; ++lane) {
      most = largest[c][lane] > most ? largest[c][lane] : most;
    }
  }
  return most;
}

template <typename Real, typename To>
double centre_row(const Real* row, double scale, const double* centre, Size count, To* to) {
  using S = Simd<double>;
  typedef To ToVec __attribute__((vector_size(S::kLanes * sizeof(To))));
  S::Vec sums[2] = {};
  Size i = 0;
  for (; i + 2 * S::kLanes <= count; i += 2 * S::kLanes) {
    unrolled<2>([&](auto v) __attribute__((always_inline)) {
      const Size at = i + v * S::kLanes;
      const ToVec moved =
          __builtin_convertvector(load_as_double(row + at) * scale - S::load(centre + at), ToVec);
      __builtin_memcpy(to + at, &moved, sizeof moved);
      const S::Vec rounded = __builtin_convertvector(moved, S::Vec);
      sums[v] += rounded * rounded;
    });
  }
  double total = S::sum(sums[0] + sums[1]);
  for (; i < count; ++i) {
    to[i] = static_cast<To>(static_cast<double>(row[i]) * scale - centre[i]);
    total += static_cast<double>(to[i]) * static_cast<double>(to[i]);
  }
  return total;
}
