// Arrays that a parallel loop fills. They are not cleared, so that their pages are touched first by
// the threads that do. The system takes memory back page by page, which takes one thread tenths of
// a second for a GB: where an array is large, as many threads return its pages as have filled them.
// They begin with a cache line, so that what a vector loads at once lies in one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>

namespace acctsne {

inline constexpr std::align_val_t kCacheLine{64};

struct ReturnPages {
  std::size_t bytes = 0;
  int threads = 1;

  void operator()(void* memory) const noexcept;
};

template <typename T>
using LargeArray = std::unique_ptr<T[], ReturnPages>;

template <typename T>
LargeArray<T> make_large_array(std::size_t size, int threads) {
  static_assert(std::is_trivially_default_constructible_v<T> &&
                std::is_trivially_destructible_v<T>);
  if (size > PTRDIFF_MAX / sizeof(T)) {
    throw std::bad_array_new_length();
  }
  const std::size_t bytes = size * sizeof(T);
  return {static_cast<T*>(::operator new(bytes, kCacheLine)), ReturnPages{bytes, threads}};
}

} // namespace acctsne
