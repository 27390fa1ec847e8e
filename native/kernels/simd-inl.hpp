// Vectors of the width that this translation unit is compiled for, on the compiler's vector
// extensions.
//
// Included inside a namespace named after the instruction set, so that no two units share an inline
// function: the linker would keep one copy of it for all CPUs. For the same reason nothing here
// calls into std.

template <typename Real>
struct Simd {
  static constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(Real));
  typedef Real Vec __attribute__((vector_size(kVectorBytes)));
  using Int = std::conditional_t<sizeof(Real) == 4, std::int32_t, std::int64_t>;
  typedef Int IntVec __attribute__((vector_size(kVectorBytes)));

  static Vec load(const Real* from) {
    Vec v;
    __builtin_memcpy(&v, from, sizeof v);
    return v;
  }
  static void store(Real* to, Vec v) { __builtin_memcpy(to, &v, sizeof v); }
  // Half-precision numbers, where the instruction set converts them.
#if defined(__F16C__)
  static constexpr bool kHalves = sizeof(Real) == 4;
#else
  static constexpr bool kHalves = false;
#endif
  static Vec load_halves([[maybe_unused]] const std::uint16_t* from) {
#if defined(__AVX512F__)
    if constexpr (kHalves) {
      return reinterpret_cast<Vec>(
          _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))));
    }
#elif defined(__F16C__)
    if constexpr (kHalves) {
      return reinterpret_cast<Vec>(
          _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
    }
#endif
    return Vec{};
  }
  static void store_halves([[maybe_unused]] std::uint16_t* to, [[maybe_unused]] Vec v) {
#if defined(__AVX512F__)
    if constexpr (kHalves) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                          _mm512_cvtps_ph(reinterpret_cast<__m512>(v), _MM_FROUND_TO_NEAREST_INT));
    }
#elif defined(__F16C__)
    if constexpr (kHalves) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                       _mm256_cvtps_ph(reinterpret_cast<__m256>(v), _MM_FROUND_TO_NEAREST_INT));
    }
#endif
  }

  static Vec splat(Real x) { return Vec{} + x; }

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
    constexpr int kExponentBias = sizeof(Real) == 4 ? 127 : 1023;
    constexpr int kMantissaBits = sizeof(Real) == 4 ? 23 : 52;
    // ln 2 in two parts, the first with few bits, so that n * ln 2 is exact.
    constexpr Real kLn2High = sizeof(Real) == 4 ? Real(0.693359375) : Real(0.693147180369123816490);
    constexpr Real kLn2Low =
        sizeof(Real) == 4 ? Real(-2.12194440054690582e-4) : Real(1.90821492927058770002e-10);
    constexpr int kDegree = sizeof(Real) == 4 ? 7 : 13;

    const IntVec underflow = x < kLowest;
    x = underflow ? splat(kLowest) : x;
    const IntVec n = __builtin_convertvector(x * kLog2E - Real(0.5), IntVec); // rounds, as x <= 0
    const Vec whole = __builtin_convertvector(n, Vec);
    const Vec r = (x - whole * kLn2High) - whole * kLn2Low;
    // Taylor series by Horner's rule; |r| <= ln(2) / 2, so degree 7 (13) reaches the last bit of
    // float (double).
    Vec series = splat(1);
    for (int k = kDegree; k > 0; --k) {
      series = series * (r * (Real(1) / Real(k))) + Real(1);
    }
    const IntVec power_bits = (n + Int(kExponentBias)) << kMantissaBits;
    Vec power;
    __builtin_memcpy(&power, &power_bits, sizeof power);
    return underflow ? Vec{} : series * power;
  }

  // log(x) for finite x >= 1.
  static Vec log_from_one(Vec x) {
    constexpr int kExponentBias = sizeof(Real) == 4 ? 127 : 1023;
    constexpr int kMantissaBits = sizeof(Real) == 4 ? 23 : 52;
    constexpr Int kMantissaMask = (Int(1) << kMantissaBits) - 1;
    constexpr Real kLn2 = Real(0.693147180559945309417);
    // atanh's series in s^2 <= 0.0295: five terms reach float's last bit, eleven double's.
    constexpr int kTerms = sizeof(Real) == 4 ? 5 : 11;

    IntVec bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    IntVec exponent = (bits >> kMantissaBits) - Int(kExponentBias);
    const IntVec mantissa_bits = (bits & kMantissaMask) | (Int(kExponentBias) << kMantissaBits);
    Vec mantissa;
    __builtin_memcpy(&mantissa, &mantissa_bits, sizeof mantissa);
    const IntVec large = mantissa > Real(1.41421356237309504880);
    mantissa = large ? mantissa * Real(0.5) : mantissa;
    exponent = large ? exponent + Int(1) : exponent;
    const Vec s = (mantissa - Real(1)) / (mantissa + Real(1));
    const Vec s2 = s * s;
    Vec series = splat(Real(1) / Real(2 * kTerms - 1));
    for (int k = kTerms - 2; k >= 0; --k) {
      series = series * s2 + Real(1) / Real(2 * k + 1);
    }
    return __builtin_convertvector(exponent, Vec) * kLn2 + Real(2) * s * series;
  }
};
