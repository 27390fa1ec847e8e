// Distances of rows of bytes (neighbors/byte_rows.hpp), as sums of whole numbers.

// Rows are filled with zeros to whole cache lines.
template <typename Real>
void squared_distances_of_integers(const std::int16_t* point, const std::int16_t* rows,
                                   const PointId* named, Size count, Size dims, Real* distances) {
  using S = Simd<float>;
  typedef std::int16_t Integers __attribute__((vector_size(kVectorBytes)));
  constexpr Size kLanes = kVectorBytes / 2;
  constexpr int kSums = 2; // so many that none has to wait for its last addition
  const auto load = [](const std::int16_t* from) {
    Integers integers;
    __builtin_memcpy(&integers, from, sizeof integers);
    return integers;
  };
  for (Size i = 0; i < count; ++i) {
    const std::int16_t* row = rows + Size{named[i]} * dims;
    S::IntVec sums[kSums] = {};
    for (Size d = 0; d < dims; d += kSums * kLanes) {
      for (int sum = 0; sum < kSums; ++sum) {
        const Integers apart = load(point + d + sum * kLanes) - load(row + d + sum * kLanes);
        const auto pairs = reinterpret_cast<S::IntVec>(apart);
        sums[sum] = S::add_products(sums[sum], pairs, pairs);
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

inline void widen_bytes(const std::uint8_t* from, Size count, std::int16_t* to) {
  for (Size i = 0; i < count; ++i) {
    to[i] = from[i];
  }
}
