// What every unit of kernels begins with. Units are compiled once per instruction set; the build
// names it by ACCTSNE_LEVEL, the namespace, and ACCTSNE_VECTOR_BYTES, and reads this but once for
// each: the compiler's header of all instructions takes longer than most kernels.
#pragma once

#include "acctsne/types.hpp"

#include <cstdint>
#include <type_traits>
#include <utility>

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace acctsne::ACCTSNE_LEVEL {

inline constexpr int kVectorBytes = ACCTSNE_VECTOR_BYTES;

#include "kernels/simd-inl.hpp"

} // namespace acctsne::ACCTSNE_LEVEL
