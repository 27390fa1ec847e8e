// Rows of data read as numbers to compute with, however they are stored.
#include "neighbors/points.hpp"

#include <cmath>
#include <cstring>

namespace acctsne {
namespace {

// The bits of a half, moved to where a float has them, are the number times 2^-112: subnormal ones
// too. There are no infinities: data is finite.
float from_half(std::uint16_t half) {
  const std::uint32_t magnitude = static_cast<std::uint32_t>(half & 0x7fff) << 13;
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000) << 16;
  const float value = std::bit_cast<float>(magnitude) * 0x1p112f;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
}

// Numbers one after the other have a loop of their own, which the compiler can make vectors of.
template <typename Number, typename Data, typename Convert>
void read_numbers(const std::byte* from, Size count, Size stride, Data* to, Convert&& convert) {
  if (stride == Size{sizeof(Number)}) {
    for (Size f = 0; f < count; ++f) {
      Number number;
      std::memcpy(&number, from + f * Size{sizeof(Number)}, sizeof number);
      to[f] = static_cast<Data>(convert(number));
    }
    return;
  }
  for (Size f = 0; f < count; ++f) {
    Number number;
    std::memcpy(&number, from + f * stride, sizeof number);
    to[f] = static_cast<Data>(convert(number));
  }
}

} // namespace

template <typename Data>
void PointSet<Data>::read(PointId id, Data* to) const {
  const std::byte* from = stored_row(id);
  const Size stride = layout.packed ? number_bytes() : layout.number_stride;
  const auto as_it_is = [](auto number) { return number; };
  switch (layout.stored) {
  case Stored::half:
    read_numbers<std::uint16_t>(from, features, stride, to, from_half);
    break;
  case Stored::byte:
    read_numbers<std::uint8_t>(from, features, stride, to, as_it_is);
    break;
  case Stored::as_computed:
    read_numbers<Data>(from, features, stride, to, as_it_is);
    break;
  }
}

template <typename Data>
void PointSet<Data>::copy_stored(PointId id, std::byte* to) const {
  const std::byte* from = stored_row(id);
  const Size bytes = number_bytes();
  const Size stride = layout.packed ? bytes : layout.number_stride;
  for (Size f = 0; f < features; ++f) {
    std::memcpy(to + f * bytes, from + f * stride, at(bytes));
  }
}

template <typename Data>
void PointSet<Data>::lay_out_coordinates(PointId id, float* to, Size length) const {
  const Size dims = projection.dims;
  const float* from = projection.row(id);
  double squared_residual = projection.squared_norms[id];
  for (Size d = 0; d < dims; ++d) {
    to[d] = from[d];
    squared_residual -= static_cast<double>(from[d]) * static_cast<double>(from[d]);
  }
  to[dims] =
      dims < features ? static_cast<float>(std::sqrt(std::max(squared_residual, 0.0))) : 0.0f;
  std::fill(to + dims + 1, to + length, 0.0f);
}

template struct PointSet<float>;
template struct PointSet<double>;

} // namespace acctsne
