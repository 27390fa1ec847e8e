// What differs between processors and operating systems. Nothing else in the core asks which one it
// runs on, but for the kernels, which are compiled for an instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace acctsne {

// What a CPU and its operating system say of themselves. x86-64: registers of the instruction CPUID
// and, by XGETBV, the registers that the system saves when it switches threads. arm64: Linux's word
// AT_HWCAP.
struct CpuWords {
  std::uint32_t leaf1_ecx = 0;
  std::uint32_t leaf7_ebx = 0;
  std::uint32_t leaf7_ecx = 0;
  std::uint64_t saved = 0;
  std::uint64_t hwcap = 0;
};

// Of the CPU that this runs on; zeros in what other kinds would say.
CpuWords read_cpu_words();

// Whether the kernels of a level may run: the CPU has all instructions that their flags in
// CMakeLists.txt allow the compiler, and the system saves the registers.
bool runs_avx2(const CpuWords& cpu);
bool runs_avx512(const CpuWords& cpu);
bool runs_dotprod(const CpuWords& cpu);

// Tells the CPU that a thread spins, so that it leaves more to the core's other thread.
void relax_cpu();

// Tells the system that the values in a part of an array, which is about to be returned, are no
// longer needed. They may be anything from then on.
void discard_pages(void* begin, std::size_t bytes);

} // namespace acctsne
