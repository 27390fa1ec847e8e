// Which table of kernels this CPU gets.
#include "kernels/dispatch.hpp"

#include <atomic>
#include <cstdlib>
#include <stdexcept>

namespace acctsne {

namespace baseline {
extern const KernelTable kTable;
}
#ifdef ACCTSNE_BUILD_AVX2
namespace avx2 {
extern const KernelTable kTable;
}
#endif
#ifdef ACCTSNE_BUILD_AVX512
namespace avx512 {
extern const KernelTable kTable;
}
#endif

namespace {

struct Level {
  const KernelTable* table;
  bool usable;
};

// Lowest first. __builtin_cpu_supports asks the CPU and, through XGETBV, the operating system.
std::vector<Level> levels() {
  std::vector<Level> all;
  all.push_back({&baseline::kTable, true});
#ifdef ACCTSNE_BUILD_AVX2
  all.push_back({&avx2::kTable, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                                    __builtin_cpu_supports("f16c")});
#endif
#ifdef ACCTSNE_BUILD_AVX512
  all.push_back({&avx512::kTable,
                 __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                     __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                     __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512vnni")});
#endif
  return all;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

const KernelTable& find_level(std::string_view name) {
  for (const Level& level : levels()) {
    if (name == level.table->level) {
      if (!level.usable) {
        throw std::invalid_argument(
            "SIMD level '" + std::string(name) +
            "' is not available on this CPU; available: " + joined(usable_levels()));
      }
      return *level.table;
    }
  }
  throw std::invalid_argument("SIMD level '" + std::string(name) +
                              "' is not part of this build; built: " + joined(built_levels()));
}

const KernelTable& choose_level() {
  const char* forced = std::getenv("ACCTSNE_SIMD");
  if (forced != nullptr && forced[0] != '\0') {
    return find_level(forced);
  }
  const KernelTable* best = nullptr;
  for (const Level& level : levels()) {
    if (level.usable) {
      best = level.table;
    }
  }
  return *best;
}

std::atomic<const KernelTable*> active{nullptr};

} // namespace

std::vector<std::string> built_levels() {
  std::vector<std::string> names;
  for (const Level& level : levels()) {
    names.emplace_back(level.table->level);
  }
  return names;
}

std::vector<std::string> usable_levels() {
  std::vector<std::string> names;
  for (const Level& level : levels()) {
    if (level.usable) {
      names.emplace_back(level.table->level);
    }
  }
  return names;
}

const KernelTable& kernels() {
  const KernelTable* table = active.load(std::memory_order_acquire);
  if (table == nullptr) {
    table = &choose_level();
    active.store(table, std::memory_order_release);
  }
  return *table;
}

void use_level(std::string_view name) {
  active.store(&find_level(name), std::memory_order_release);
}

} // namespace acctsne
