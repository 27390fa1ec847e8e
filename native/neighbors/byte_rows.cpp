// Rows of bytes, compared as whole numbers.
#include "neighbors/byte_rows.hpp"

#include "kernels/dispatch.hpp"

#include <algorithm>
#include <atomic>

namespace acctsne {
namespace {

// So many that their squared differences add up to no more than 32 bits hold.
constexpr Size kMostFeatures = (Size{1} << 31) / (255 * 255) - ByteRows::kPadding;

// With fewer there is little to fetch.
constexpr Size kFewestFeatures = 64;

} // namespace

template <typename Data>
std::optional<ByteRows> ByteRows::of(const PointSet<Data>& points, const Cells& cells,
                                     ThreadTeam& team) {
  if (points.projection.scale != 1 || points.features < kFewestFeatures ||
      points.features > kMostFeatures) {
    return std::nullopt;
  }
  ByteRows bytes(points.rows, chunk_count(points.features, kPadding) * kPadding, team.size());
  const auto to_bytes = kernels().distances.of<Data>().to_bytes;
  std::atomic<bool> all{true};
  team.for_chunks(cells.count(), [&](Size cell, int) {
    std::vector<Data> read;
    for (Size place = cells.begin(cell); place < cells.end(cell) && all; ++place) {
      std::uint8_t* row = bytes.values_.get() + place * bytes.length_;
      if (!to_bytes(points.row(cells.row(place), read), points.features, row)) {
        all = false;
      }
      std::fill(row + points.features, row + bytes.length_, std::uint8_t{0});
    }
  });
  return all ? std::optional<ByteRows>(std::move(bytes)) : std::nullopt;
}

template std::optional<ByteRows> ByteRows::of(const PointSet<float>&, const Cells&, ThreadTeam&);
template std::optional<ByteRows> ByteRows::of(const PointSet<double>&, const Cells&, ThreadTeam&);

} // namespace acctsne
