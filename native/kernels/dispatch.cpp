// Which kernels this CPU gets.
#include "kernels/dispatch.hpp"

#include "acctsne/platform.hpp"

#include <atomic>
#include <cstdlib>
#include <stdexcept>

namespace acctsne {

// The tables of one level, which its units define.
#define ACCTSNE_TABLES_OF(level_)                                                                  \
  namespace level_ {                                                                               \
  extern const Both<LinearKernels> kLinearKernels;                                                 \
  extern const SearchKernels kSearchKernels;                                                       \
  extern const Both<DistanceKernels> kDistanceKernels;                                             \
  extern const PerplexityKernels kPerplexityKernels;                                               \
  extern const Both<TreeKernels> kTreeKernels;                                                     \
  extern const Both<AttractiveKernels> kAttractiveKernels;                                         \
  extern const Both<AllPairsKernels> kAllPairsKernels;                                             \
  extern const Both<GridKernels> kGridKernels;                                                     \
  extern const Both<UpdateKernels> kUpdateKernels;                                                 \
  constexpr KernelTables kTables = {                                                               \
      .level = #level_,                                                                            \
      .linear = kLinearKernels,                                                                    \
      .search = kSearchKernels,                                                                    \
      .distances = kDistanceKernels,                                                               \
      .perplexity = kPerplexityKernels,                                                            \
      .tree = kTreeKernels,                                                                        \
      .attractive = kAttractiveKernels,                                                            \
      .all_pairs = kAllPairsKernels,                                                               \
      .grid = kGridKernels,                                                                        \
      .update = kUpdateKernels,                                                                    \
  };                                                                                               \
  }
ACCTSNE_TABLES_OF(baseline)
#ifdef ACCTSNE_BUILD_AVX2
ACCTSNE_TABLES_OF(avx2)
#endif
#ifdef ACCTSNE_BUILD_AVX512
ACCTSNE_TABLES_OF(avx512)
#endif
#undef ACCTSNE_TABLES_OF
#ifdef ACCTSNE_BUILD_DOTPROD
// The search alone multiplies bytes.
namespace dotprod {
extern const SearchKernels kSearchKernels;
extern const Both<DistanceKernels> kDistanceKernels;
constexpr KernelTables kTables = {
    .level = "dotprod",
    .linear = baseline::kLinearKernels,
    .search = kSearchKernels,
    .distances = kDistanceKernels,
    .perplexity = baseline::kPerplexityKernels,
    .tree = baseline::kTreeKernels,
    .attractive = baseline::kAttractiveKernels,
    .all_pairs = baseline::kAllPairsKernels,
    .grid = baseline::kGridKernels,
    .update = baseline::kUpdateKernels,
};
} // namespace dotprod
#endif

namespace {

struct Level {
  const KernelTables* tables;
  bool usable;
};

// Lowest first.
std::vector<Level> levels() {
  std::vector<Level> all;
  all.push_back({&baseline::kTables, true});
  [[maybe_unused]] const CpuWords cpu = read_cpu_words();
#ifdef ACCTSNE_BUILD_AVX2
  all.push_back({&avx2::kTables, runs_avx2(cpu)});
#endif
#ifdef ACCTSNE_BUILD_AVX512
  all.push_back({&avx512::kTables, runs_avx512(cpu)});
#endif
#ifdef ACCTSNE_BUILD_DOTPROD
  all.push_back({&dotprod::kTables, runs_dotprod(cpu)});
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

const KernelTables& find_level(std::string_view name) {
  for (const Level& level : levels()) {
    if (name == level.tables->level) {
      if (!level.usable) {
        throw std::invalid_argument(
            "SIMD level '" + std::string(name) +
            "' is not available on this CPU; available: " + joined(usable_levels()));
      }
      return *level.tables;
    }
  }
  throw std::invalid_argument("SIMD level '" + std::string(name) +
                              "' is not part of this build; built: " + joined(built_levels()));
}

const KernelTables& choose_level() {
  const char* forced = std::getenv("ACCTSNE_SIMD");
  if (forced != nullptr && forced[0] != '\0') {
    return find_level(forced);
  }
  const KernelTables* best = nullptr;
  for (const Level& level : levels()) {
    if (level.usable) {
      best = level.tables;
    }
  }
  return *best;
}

std::atomic<const KernelTables*> active{nullptr};

} // namespace

std::vector<std::string> built_levels() {
  std::vector<std::string> names;
  for (const Level& level : levels()) {
    names.emplace_back(level.tables->level);
  }
  return names;
}

std::vector<std::string> usable_levels() {
  std::vector<std::string> names;
  for (const Level& level : levels()) {
    if (level.usable) {
      names.emplace_back(level.tables->level);
    }
  }
  return names;
}

const KernelTables& kernels() {
  const KernelTables* table = active.load(std::memory_order_acquire);
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
