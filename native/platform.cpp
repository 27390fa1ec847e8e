// The processor asked by its own instructions: compilers' runtime libraries, which could do it, are
// not there on every system.
#include "acctsne/platform.hpp"

#if defined(__linux__)
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>
#endif
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#elif !defined(__aarch64__)
#include <thread>
#endif

namespace acctsne {
namespace {

constexpr std::uint32_t bit(int position) {
  return 1u << position;
}

// Numbers of bits: Intel's Software Developer's Manual, volume 2, CPUID, and volume 1, 13.3.
constexpr std::uint32_t kFma = bit(12);
constexpr std::uint32_t kOsXsave = bit(27);
constexpr std::uint32_t kAvx = bit(28);
constexpr std::uint32_t kF16c = bit(29);
constexpr std::uint32_t kAvx2 = bit(5);
constexpr std::uint32_t kAvx512F = bit(16);
constexpr std::uint32_t kAvx512Dq = bit(17);
constexpr std::uint32_t kAvx512Cd = bit(28);
constexpr std::uint32_t kAvx512Bw = bit(30);
constexpr std::uint32_t kAvx512Vl = bit(31);
constexpr std::uint32_t kAvx512Vnni = bit(11);
constexpr std::uint32_t kSavesAvx = bit(1) | bit(2);
constexpr std::uint32_t kSavesAvx512 = bit(5) | bit(6) | bit(7);
// HWCAP_ASIMDDP of Linux's asm/hwcap.h, which older headers lack.
constexpr std::uint32_t kDotProducts = bit(20);

constexpr bool has_all(std::uint64_t word, std::uint32_t bits) {
  return (word & bits) == bits;
}

#if defined(__x86_64__)
std::uint64_t read_saved_registers() {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  // The intrinsic would need a compiler's flag for the whole file.
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  std::uint64_t saved = (std::uint64_t{high} << 32) | low;
#if defined(__APPLE__)
  // macOS saves what AVX-512 adds from a thread's first such instruction on, and does not say so
  // before.
  saved |= kSavesAvx512;
#endif
  return saved;
}
#endif

} // namespace

CpuWords read_cpu_words() {
  CpuWords cpu;
#if defined(__x86_64__)
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  std::uint32_t c = 0;
  std::uint32_t d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) != 0) {
    cpu.leaf1_ecx = c;
  }
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
    cpu.leaf7_ebx = b;
    cpu.leaf7_ecx = c;
  }
  if (has_all(cpu.leaf1_ecx, kOsXsave)) {
    cpu.saved = read_saved_registers();
  }
#elif defined(__aarch64__) && defined(__linux__)
  cpu.hwcap = getauxval(AT_HWCAP);
#endif
  return cpu;
}

bool runs_avx2(const CpuWords& cpu) {
  return has_all(cpu.saved, kSavesAvx) && has_all(cpu.leaf1_ecx, kOsXsave | kAvx | kFma | kF16c) &&
         has_all(cpu.leaf7_ebx, kAvx2);
}

bool runs_avx512(const CpuWords& cpu) {
  return runs_avx2(cpu) && has_all(cpu.saved, kSavesAvx512) &&
         has_all(cpu.leaf7_ebx, kAvx512F | kAvx512Dq | kAvx512Cd | kAvx512Bw | kAvx512Vl) &&
         has_all(cpu.leaf7_ecx, kAvx512Vnni);
}

bool runs_dotprod(const CpuWords& cpu) {
  return has_all(cpu.hwcap, kDotProducts);
}

void relax_cpu() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  // ISB holds the thread up as long as x86's PAUSE does; YIELD does nothing on most CPUs.
  __asm__ volatile("isb" ::: "memory");
#else
  std::this_thread::yield();
#endif
}

void discard_pages([[maybe_unused]] void* begin, [[maybe_unused]] std::size_t bytes) {
#if defined(__linux__)
  // Whole pages only: what is beside them belongs to others.
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t first = (start + page - 1) / page * page;
  const std::uintptr_t last = (start + bytes) / page * page;
  if (first < last) {
    madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
  }
#endif
}

} // namespace acctsne
