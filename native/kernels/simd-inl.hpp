// Vectors of the width that this translation unit is compiled for, on the compiler's vector
// extensions.
//
// Included inside a namespace named after the instruction set, so that no two units share an inline
// function: the linker would keep one copy of it for all CPUs. For the same reason nothing here
// calls into std.

template <typename Real, int Bytes = kVectorBytes>
struct Simd {
  static constexpr int kLanes = Bytes / static_cast<int>(sizeof(Real));
  typedef Real Vec __attribute__((vector_size(Bytes)));
  using Int = std::conditional_t<sizeof(Real) == 4, std::int32_t, std::int64_t>;
  typedef Int IntVec __attribute__((vector_size(Bytes)));

  static Vec load(const Real* from) {
    Vec v;
    __builtin_memcpy(&v, from, sizeof v);
    return v;
  }
  static void store(Real* to, Vec v) { __builtin_memcpy(to, &v, sizeof v); }
  // Half-precision numbers, where the instruction set converts them.
#if defined(__F16C__)
  static constexpr bool kHalves = sizeof(Real) == 4 && Bytes == 32;
#elif defined(__aarch64__)
  static constexpr bool kHalves = sizeof(Real) == 4 && Bytes == 16;
#else
  static constexpr bool kHalves = false;
#endif
  static Vec load_halves([[maybe_unused]] const std::uint16_t* from) {
#if defined(__F16C__)
    if constexpr (kHalves) {
      return reinterpret_cast<Vec>(
          _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
    }
#elif defined(__aarch64__)
    if constexpr (kHalves) {
      return reinterpret_cast<Vec>(vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from))));
    }
#endif
    return Vec{};
  }
  static void store_halves([[maybe_unused]] std::uint16_t* to, [[maybe_unused]] Vec v) {
#if defined(__F16C__)
    if constexpr (kHalves) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                       _mm256_cvtps_ph(reinterpret_cast<__m256>(v), _MM_FROUND_TO_NEAREST_INT));
    }
#elif defined(__aarch64__)
    if constexpr (kHalves) {
      vst1_u16(to, vreinterpret_u16_f16(vcvt_f16_f32(reinterpret_cast<float32x4_t>(v))));
    }
#endif
  }

  // Subtracting 0 keeps the sign of -0, so that the compiler leaves the broadcast alone.
  static Vec splat(Real x) { return x - Vec{}; }

  // Sums of products, of which each lane gets two. NEON adds a product as it multiplies if it may
  // keep those of the lower lanes and of the upper ones apart until the end.
#if defined(__aarch64__)
  struct ProductSums {
    int32x4_t low;
    int32x4_t high;
  };
#else
  using ProductSums = IntVec;
#endif

  // Each lane holds two 16-bit integers: adds the products of the first ones and of the second ones
  // to the lane of sum.
  static ProductSums add_products(ProductSums sum, IntVec a, IntVec b)
    requires(sizeof(Real) == 4)
  {
#if defined(__AVX512VNNI__)
    return reinterpret_cast<IntVec>(_mm512_dpwssd_epi32(reinterpret_cast<__m512i>(sum),
                                                        reinterpret_cast<__m512i>(a),
                                                        reinterpret_cast<__m512i>(b)));
#elif defined(__AVX2__)
    return sum + reinterpret_cast<IntVec>(
                     _mm256_madd_epi16(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
#elif defined(__SSE2__)
    return sum + reinterpret_cast<IntVec>(
                     _mm_madd_epi16(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
#elif defined(__aarch64__)
    const auto x = reinterpret_cast<int16x8_t>(a);
    const auto y = reinterpret_cast<int16x8_t>(b);
    return {vmlal_s16(sum.low, vget_low_s16(x), vget_low_s16(y)), vmlal_high_s16(sum.high, x, y)};
#else
    return sum + ((a << 16) >> 16) * ((b << 16) >> 16) + (a >> 16) * (b >> 16);
#endif
  }
  static IntVec lanes_of(ProductSums sum)
    requires(sizeof(Real) == 4)
  {
#if defined(__aarch64__)
    return reinterpret_cast<IntVec>(vpaddq_s32(sum.low, sum.high));
#else
    return sum;
#endif
  }

  // The compiler makes a comparison and a choice of the ternary operator.
  static Vec max(Vec a, Vec b)
    requires(sizeof(Real) == 4)
  {
#if defined(__AVX512F__)
    if constexpr (Bytes == 64) {
      return reinterpret_cast<Vec>(
          _mm512_max_ps(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b)));
    }
#elif defined(__AVX2__)
    return reinterpret_cast<Vec>(
        _mm256_max_ps(reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b)));
#endif
    return a > b ? a : b;
  }

  // Lanes are added pairwise: log2(lanes) roundings instead of lanes.
  static Real sum(Vec v) {
    return sum_halves<kLanes / 2>(v, std::make_integer_sequence<int, kLanes>{});
  }
  template <int Half, int... Lane>
  static Real sum_halves(Vec v, std::integer_sequence<int, Lane...> lanes) {
    v += __builtin_shufflevector(v, v, (Lane ^ Half)...);
    if constexpr (Half > 1) {
      return sum_halves<Half / 2>(v, lanes);
    } else {
      return v[0];
    }
  }

  // Lanes 0 and 1 exchanged, 2 and 3, and so on.
  static Vec swap_neighbors(Vec v) {
    return swap_neighbors(v, std::make_integer_sequence<int, kLanes>{});
  }
  template <int... Lane>
  static Vec swap_neighbors(Vec v, std::integer_sequence<int, Lane...>) {
    return __builtin_shufflevector(v, v, (Lane ^ 1)...);
  }

  // 1 / x to about the last bit, for x >= 1; practically 0 for infinity.
  static Vec reciprocal(Vec x) {
    // Newton's step makes infinity times zero of it otherwise.
    [[maybe_unused]] constexpr Real kLargest = Real(1e37);
#if defined(__AVX512F__)
    if constexpr (sizeof(Real) == 4) {
      x = reinterpret_cast<Vec>(
          _mm512_min_ps(reinterpret_cast<__m512>(x), _mm512_set1_ps(kLargest)));
      const Vec r = reinterpret_cast<Vec>(_mm512_rcp14_ps(reinterpret_cast<__m512>(x)));
      return r * (Real(2) - x * r); // one step of Newton's: 14 bits become 28
    }
#elif defined(__AVX2__)
    if constexpr (sizeof(Real) == 4) {
      x = reinterpret_cast<Vec>(
          _mm256_min_ps(reinterpret_cast<__m256>(x), _mm256_set1_ps(kLargest)));
      const Vec r = reinterpret_cast<Vec>(_mm256_rcp_ps(reinterpret_cast<__m256>(x)));
      return r * (Real(2) - x * r); // 12 bits become 23
    }
#endif
    return Real(1) / x;
  }

  // exp(x) for x <= 0; values below about -87 (float) and -708 (double) become 0.
  static Vec exp_negative(Vec x) {
    constexpr Real kLog2E = Real(1.44269504088896340736);
    constexpr Real kLowest = sizeof(Real) == 4 ? Real(-87) : Real(-708);
    // ln 2 in two parts, the first with few bits, so that whole * ln 2 is exact.
    constexpr Real kLn2High = sizeof(Real) == 4 ? Real(0.693359375) : Real(0.693147180369123816490);
    constexpr Real kLn2Low =
        sizeof(Real) == 4 ? Real(-2.12194440054690582e-4) : Real(1.90821492927058770002e-10);

    const Vec shifted = x * kLog2E + kRounding;
    const Vec whole = shifted - kRounding;
    const Vec r = (x - whole * kLn2High) - whole * kLn2Low;
    // |r| <= ln(2) / 2, so degree 7 (13) reaches the last bit of float (double).
    constexpr int kDegree = sizeof(Real) == 4 ? 7 : 13;
    return x >= kLowest ? power_series<Base::e, kDegree>(r) * power_of_two(shifted) : Vec{};
  }

  // log(x) for finite x >= 1.
  static Vec log_from_one(Vec x) {
    const LogParts parts(x);
    return parts.exponent * kLn2 + parts.log_mantissa;
  }

  // log2(x) for finite x >= 1; relative error 2.2 epsilon.
  static Vec log2_from_one(Vec x) {
    constexpr Real kLog2E = Real(1.44269504088896340736);
    const LogParts parts(x);
    return parts.log_mantissa * kLog2E + parts.exponent;
  }

  // 2^x for x <= 0, 0 where that is not a normal number; relative error 2.1 epsilon.
  static Vec exp2_negative(Vec x) {
    constexpr Real kLowest = Real(1 - kExponentBias);
    const Vec shifted = x + kRounding;
    const Vec r = x - (shifted - kRounding);
    // |r| <= 1/2, so degree 6 (12) leaves 1.2e-7 (1.7e-16).
    constexpr int kDegree = sizeof(Real) == 4 ? 6 : 12;
    return x >= kLowest ? power_series<Base::two, kDegree>(r) * power_of_two(shifted) : Vec{};
  }

private:
  using Word = std::make_unsigned_t<Int>;
  typedef Word WordVec __attribute__((vector_size(Bytes)));
  static constexpr int kExponentBias = sizeof(Real) == 4 ? 127 : 1023;
  static constexpr int kMantissaBits = sizeof(Real) == 4 ? 23 : 52;
  static constexpr Real kLn2 = Real(0.693147180559945309417);

  static WordVec words(Vec x) {
    WordVec bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
  }
  static Vec reals(WordVec bits) {
    Vec x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
  }

  // x = 2^exponent mantissa, with the mantissa within sqrt(1/2) and sqrt(2).
  struct LogParts {
    Vec exponent;
    Vec log_mantissa;

    explicit LogParts(Vec x) {
      constexpr Word kOneBits = Word(kExponentBias) << kMantissaBits;
      // How far the bits of sqrt(1/2) lie below those of 1.
      constexpr Word kToOne =
          Word(Real(2 - 1.41421356237309504880) * Real(Word(1) << kMantissaBits));
      // atanh's series in s^2 <= 0.0295: five terms reach float's last bit, eleven double's.
      constexpr int kTerms = sizeof(Real) == 4 ? 5 : 11;

      const WordVec bits = words(x);
      const WordVec power = (bits - (kOneBits - kToOne)) >> kMantissaBits;
      // Put behind the bits of 2^mantissa_bits, a small integer is added to it.
      constexpr Real kInteger = Real(Word(1) << kMantissaBits);
      exponent = reals(power | words(splat(kInteger))) - kInteger;
      const Vec mantissa = reals(bits - (power << kMantissaBits));
      const Vec s = (mantissa - Real(1)) / (mantissa + Real(1));
      const Vec s2 = s * s;
      Vec series = splat(Real(1) / Real(2 * kTerms - 1));
      for (int k = kTerms - 2; k >= 0; --k) {
        series = series * s2 + Real(1) / Real(2 * k + 1);
      }
      log_mantissa = Real(2) * s * series;
    }
  };

  // Adding this rounds a number to an integer, which is then in the sum's lowest bits.
  static constexpr Real kRounding = Real(1.5) * Real(Int(1) << kMantissaBits);
  static Vec power_of_two(Vec shifted) {
    return reals((words(shifted) << kMantissaBits) + (Word(kExponentBias) << kMantissaBits));
  }

  // The Taylor series of exp, or of 2^x, by Horner's rule.
  enum class Base { e, two };
  template <Base kBase, int kDegree>
  static Vec power_series(Vec x) {
    constexpr Coefficients<kDegree> coefficients(kBase == Base::e ? 1.0 : 0.693147180559945309417);
    Vec series = splat(coefficients.of[kDegree]);
    for (int k = kDegree - 1; k >= 0; --k) {
      series = series * x + coefficients.of[k];
    }
    return series;
  }
  template <int kDegree>
  struct Coefficients {
    Real of[kDegree + 1] = {};
    explicit constexpr Coefficients(double rate) {
      double coefficient = 1;
      for (int k = 0; k <= kDegree; ++k) {
        of[k] = static_cast<Real>(coefficient);
        coefficient *= rate / (k + 1);
      }
    }
  };
};

// The next vector's worth of numbers, as doubles.
template <typename Real>
inline Simd<double>::Vec load_as_double(const Real* from) {
  if constexpr (sizeof(Real) == 8) {
    return Simd<double>::load(from);
  } else {
    typedef float Half __attribute__((vector_size(kVectorBytes / 2)));
    Half half;
    __builtin_memcpy(&half, from, sizeof half);
    return __builtin_convertvector(half, Simd<double>::Vec);
  }
}

// Calls body(0), body(1) and so on, each number being a type, which keeps arrays that it indexes in
// registers.
template <int kCount, typename Body>
[[gnu::always_inline]] inline void unrolled(const Body& body) {
  const auto call = [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
    (body(std::integral_constant<int, I>{}), ...);
  };
  call(std::make_integer_sequence<int, kCount>{});
}
