// Which levels a CPU runs: by words of CPUs that are not here, and by what Linux says of this one.
// Memory that is returned to the system.
#include "acctsne/large_array.hpp"
#include "acctsne/platform.hpp"

#include "check.hpp"
#include "data.hpp"

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <set>
#include <sstream>
#include <vector>

using namespace acctsne;

namespace {

constexpr CpuWords kEverything{~0u, ~0u, ~0u, ~std::uint64_t{0}, ~std::uint64_t{0}};

// Every bit set but one of the word that it is cleared in.
template <typename Word>
CpuWords all_but(Word CpuWords::* word, int bit) {
  CpuWords cpu = kEverything;
  cpu.*word &= ~(Word{1} << bit);
  return cpu;
}

} // namespace

TEST(a_level_needs_every_bit) {
  CHECK(runs_avx2(kEverything));
  CHECK(runs_avx512(kEverything));
  CHECK(runs_dotprod(kEverything));
  CHECK(!runs_avx2(CpuWords{}));
  CHECK(!runs_avx512(CpuWords{}));
  CHECK(!runs_dotprod(CpuWords{}));
  // FMA, OSXSAVE, AVX and F16C; AVX2.
  for (const int bit : {12, 27, 28, 29}) {
    CHECK(!runs_avx2(all_but(&CpuWords::leaf1_ecx, bit)));
  }
  CHECK(!runs_avx2(all_but(&CpuWords::leaf7_ebx, 5)));
  // AVX-512 F, DQ, CD, BW and VL; VNNI.
  for (const int bit : {16, 17, 28, 30, 31}) {
    CHECK(runs_avx2(all_but(&CpuWords::leaf7_ebx, bit)));
    CHECK(!runs_avx512(all_but(&CpuWords::leaf7_ebx, bit)));
  }
  CHECK(!runs_avx512(all_but(&CpuWords::leaf7_ecx, 11)));
  CHECK(!runs_avx512(all_but(&CpuWords::leaf7_ebx, 5)));
  CHECK(!runs_dotprod(all_but(&CpuWords::hwcap, 20)));
}

TEST(a_system_that_does_not_save_the_registers_has_no_level) {
  for (const int bit : {1, 2}) {
    CHECK(!runs_avx2(all_but(&CpuWords::saved, bit)));
  }
  for (const int bit : {5, 6, 7}) {
    CHECK(runs_avx2(all_but(&CpuWords::saved, bit)));
    CHECK(!runs_avx512(all_but(&CpuWords::saved, bit)));
  }
}

#if defined(__linux__) && defined(__x86_64__)
TEST(this_cpu_is_what_linux_says) {
  std::ifstream file("/proc/cpuinfo");
  std::set<std::string> flags;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("flags", 0) == 0) {
      std::istringstream words(line);
      for (std::string word; words >> word;) {
        flags.insert(word);
      }
      break;
    }
  }
  CHECK(!flags.empty());
  const auto all = [&](std::initializer_list<const char*> names) {
    bool found = true;
    for (const char* name : names) {
      found = found && flags.count(name) > 0;
    }
    return found;
  };
  const CpuWords cpu = read_cpu_words();
  const bool avx2 = all({"avx", "avx2", "fma", "f16c"});
  CHECK_EQUAL(runs_avx2(cpu), avx2);
  CHECK_EQUAL(runs_avx512(cpu), avx2 && all({"avx512f", "avx512dq", "avx512cd", "avx512bw",
                                             "avx512vl", "avx512_vnni"}));
}
#endif

TEST(discarding_leaves_what_is_beside_it) {
  constexpr std::size_t kBytes = 1 << 20;
  std::vector<unsigned char> values(kBytes, 7);
  const std::size_t begin = 5000;
  const std::size_t end = kBytes - 5000;
  discard_pages(values.data() + begin, end - begin);
  bool same = true;
  for (std::size_t i = 0; i < kBytes; ++i) {
    same = same && (values[i] == 7 || (i >= begin && i < end));
  }
  CHECK(same);
#ifdef __linux__
  CHECK_EQUAL(int{values[kBytes / 2]}, 0); // pages that come back are clear
#endif
  values.assign(kBytes, 8);
  discard_pages(values.data() + 1, 100); // no whole page
  CHECK(values == std::vector<unsigned char>(kBytes, 8));
}

TEST(large_arrays_are_filled_and_returned) {
  for (const int threads : kThreadCounts) {
    for (const std::size_t size : {std::size_t{0}, std::size_t{3}, std::size_t{10000019}}) {
      LargeArray<std::int32_t> array = make_large_array<std::int32_t>(size, threads);
      std::fill_n(array.get(), size, 3);
      array = make_large_array<std::int32_t>(size, threads);
      std::fill_n(array.get(), size, 4);
      CHECK(size == 0 || array[size - 1] == 4);
    }
  }
  CHECK(check::throws<std::bad_alloc>(
      [&] { make_large_array<double>(std::numeric_limits<std::size_t>::max() / 4, 2); }));
}

int main() {
  return check::run_tests();
}
