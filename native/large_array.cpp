// Returns the memory of large arrays to the system by several threads: one would take long. They do
// so in blocks, each by whoever comes to it first.
#include "acctsne/large_array.hpp"

#include "acctsne/parallel.hpp"
#include "acctsne/platform.hpp"

#include <algorithm>

namespace acctsne {
namespace {

// Some ms of the system's time; a team starts in a tenth of one.
constexpr std::size_t kLarge = std::size_t{1} << 25;
constexpr std::size_t kBlock = std::size_t{1} << 22;

} // namespace

void ReturnPages::operator()(void* memory) const noexcept {
  if (bytes >= kLarge) {
    try {
      const Size blocks = chunk_count(static_cast<Size>(bytes), Size{kBlock});
      ThreadTeam team(static_cast<int>(std::min<Size>(threads, blocks)));
      team.for_chunks(blocks, [&](Size block, int) {
        const std::size_t begin = at(block) * kBlock;
        discard_pages(static_cast<std::byte*>(memory) + begin, std::min(kBlock, bytes - begin));
      });
    } catch (...) {
      discard_pages(memory, bytes); // by this thread, if the system has no others
    }
  }
  ::operator delete(memory, kCacheLine);
}

} // namespace acctsne
