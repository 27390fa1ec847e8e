// Morton codes (the paper's Algorithm 1): scale each coordinate to a cell number, spread its bits,
// interleave.

template <int Dims>
inline std::uint64_t spread_bits(std::uint64_t cell) {
  if constexpr (Dims == 1) {
    return cell;
  } else if constexpr (Dims == 2) {
    cell = (cell | (cell << 16)) & 0x0000FFFF0000FFFFull;
    cell = (cell | (cell << 8)) & 0x00FF00FF00FF00FFull;
    cell = (cell | (cell << 4)) & 0x0F0F0F0F0F0F0F0Full;
    cell = (cell | (cell << 2)) & 0x3333333333333333ull;
    return (cell | (cell << 1)) & 0x5555555555555555ull;
  } else {
    cell = (cell | (cell << 32)) & 0x001F00000000FFFFull;
    cell = (cell | (cell << 16)) & 0x001F0000FF0000FFull;
    cell = (cell | (cell << 8)) & 0x100F00F00F00F00Full;
    cell = (cell | (cell << 4)) & 0x10C30C30C30C30C3ull;
    return (cell | (cell << 2)) & 0x1249249249249249ull;
  }
}

template <typename Real, int Dims>
void morton_codes(const Real* points, Size count, const Real* lower, Real scale,
                  MortonCode* codes) {
  // The last cell, in a form that Real holds exactly: the upper edge of the box, and whatever
  // rounding puts above it, belong to that cell instead of wrapping round to cell 0.
  constexpr std::int32_t kLastCell =
      static_cast<std::int32_t>((std::int64_t{1} << kMortonBits<Dims>)-1);
  constexpr Real kLimit =
      sizeof(Real) == 4 && kMortonBits<Dims> == 31 ? Real(2147483520) : Real(kLastCell);
  for (Size i = 0; i < count; ++i) {
    std::uint64_t code = 0;
    for (int axis = 0; axis < Dims; ++axis) {
      Real cell = (points[i * Dims + axis] - lower[axis]) * scale;
      cell = cell < kLimit ? cell : kLimit;
      cell = cell > Real(0) ? cell : Real(0);
      const std::uint64_t bits = static_cast<std::uint32_t>(static_cast<std::int32_t>(cell));
      code |= spread_bits<Dims>(bits) << axis;
    }
    codes[i] = code;
  }
}
