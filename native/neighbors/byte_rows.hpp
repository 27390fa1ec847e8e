// The rows of data whose numbers are bytes, as those of images are, in the order of places. Their
// distances are sums of whole numbers, and they take a quarter of the memory of floats to fetch.
#pragma once

#include "acctsne/large_array.hpp"
#include "neighbors/cells.hpp"

#include <cstdint>
#include <optional>

namespace acctsne {

class ByteRows {
public:
  // Nothing if a number is not a byte.
  template <typename Data>
  static std::optional<ByteRows> of(const PointSet<Data>& points, const Cells& cells,
                                    ThreadTeam& team);

  // Features, and zeros to a multiple of kPadding.
  static constexpr Size kPadding = 64;
  Size length() const { return length_; }
  const std::uint8_t* row(Size place) const { return values_.get() + place * length_; }

private:
  ByteRows(Size rows, Size length, int threads)
      : length_(length), values_(make_large_array<std::uint8_t>(at(rows * length), threads)) {}

  Size length_;
  LargeArray<std::uint8_t> values_;
};

} // namespace acctsne
