// Distances of rows of bytes (neighbors/byte_rows.hpp), as sums of whole numbers.

typedef RowInteger RowIntegers __attribute__((vector_size(kVectorBytes)));

// Adds the squares of the differences of two vectors of integers to the lanes of sums.
inline Simd<float>::IntVec add_squares(Simd<float>::IntVec sums, RowIntegers a, RowIntegers b) {
  using S = Simd<float>;
#if defined(__aarch64__)
  const uint8x16_t apart =
      vabdq_u8(reinterpret_cast<uint8x16_t>(a), reinterpret_cast<uint8x16_t>(b));
  const auto before = reinterpret_cast<uint32x4_t>(sums);
#if defined(__ARM_FEATURE_DOTPROD)
  return reinterpret_cast<S::IntVec>(vdotq_u32(before, apart, apart));
#else
  const uint16x8_t low = vmull_u8(vget_low_u8(apart), vget_low_u8(apart));
  const uint16x8_t high = vmull_high_u8(apart, apart);
  return reinterpret_cast<S::IntVec>(vpadalq_u16(vpadalq_u16(before, low), high));
#endif
#else
  const auto apart = reinterpret_cast<S::IntVec>(a - b);
  return S::add_products(sums, apart, apart);
#endif
}

// Rows are filled with zeros to a multiple of 64 integers.
template <typename Real>
void squared_distances_of_integers(const RowInteger* point, const RowInteger* rows,
                                   const PointId* named, Size count, Size dims, Real* distances) {
  using S = Simd<float>;
  constexpr Size kLanes = kVectorBytes / Size{sizeof(RowInteger)};
  constexpr int kSums = 2; // so many that none has to wait for its last addition
  const auto load = [](const RowInteger* from) {
    RowIntegers integers;
    __builtin_memcpy(&integers, from, sizeof integers);
    return integers;
  };
  for (Size i = 0; i < count; ++i) {
    const RowInteger* row = rows + Size{named[i]} * dims;
    S::IntVec sums[kSums] = {};
    for (Size d = 0; d < dims; d += kSums * kLanes) {
      for (int sum = 0; sum < kSums; ++sum) {
        const Size at = d + sum * kLanes;
        sums[sum] = add_squares(sums[sum], load(point + at), load(row + at));
      }
    }
    const S::IntVec lanes = sums[0] + sums[1];
    std::int32_t total = 0;
    for (int lane = 0; lane < S::kLanes; ++lane) {
      total += lanes[lane];
    }
    distances[i] = static_cast<Real>(total);
  }
}

template <typename Real>
bool to_bytes(const Real* from, Size count, std::uint8_t* to) {
  int others = 0;
  for (Size i = 0; i < count; ++i) {
    const Real within = from[i] < 0 ? Real(0) : from[i] > 255 ? Real(255) : from[i];
    const auto byte = static_cast<int>(within);
    others |= static_cast<Real>(byte) != from[i] ? 1 : 0;
    to[i] = static_cast<std::uint8_t>(byte);
  }
  return others == 0;
}

inline void bytes_to_integers(const std::uint8_t* from, Size count, RowInteger* to) {
  for (Size i = 0; i < count; ++i) {
    to[i] = from[i];
  }
}
