// An iteration between two relabellings asks the system for no memory.
#include "optimize/loop.hpp"

#include "check.hpp"
#include "data.hpp"
#include "optimizer.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<long> allocations{0};

void* counted(void* memory) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return memory != nullptr ? memory : throw std::bad_alloc();
}

} // namespace

// All other forms of new call one of these two. Were one of new and delete inlined and the other
// not, gcc would take them for a mismatched pair.
[[gnu::noinline]] void* operator new(std::size_t size) {
  return counted(std::malloc(size > 0 ? size : 1));
}
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto step = static_cast<std::size_t>(alignment);
  return counted(std::aligned_alloc(step, (size / step + 1) * step));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

using namespace acctsne;

TEST(iterations_do_not_allocate) {
  for_reals_in<1, 2, 3, 5>([]<typename Real, int Dims>() {
    constexpr Size kCount = kRacesOnly ? 1000 : 5000;
    const Csr<Real> P = make_joint<Real>(kCount, 20);
    std::vector<std::uint8_t> held(kCount);
    std::fill_n(held.begin(), kCount / 2, std::uint8_t{1});
    std::vector<Real> initial = make_cloud<Real>(Cloud::clustered, kCount, Dims);
    for (const Method method : {Method::barnes_hut, Method::fft, Method::exact}) {
      if ((Dims > 2 && method == Method::fft) || (Dims > 3 && method == Method::barnes_hut)) {
        continue;
      }
      for (const int threads : {1, 3}) {
        RepulsionOptions options;
        options.method = method;
        const auto optimizer = make_optimizer<Real>(P.view(), initial.data(), Dims, options);
        ThreadTeam team(threads);
        Phase phase;
        phase.iterations = 2;       // the first ones make room for everything
        phase.learning_rate = 1e-6; // the grid stays as it is
        optimizer->run(phase, team, {});
        const long before = allocations.load();
        phase.iterations = 10;
        optimizer->run(phase, team, {});
        optimizer->hold(held);
        const long then = allocations.load();
        CHECK_EQUAL(then - before, 1L); // the room for what is held
        optimizer->run(phase, team, {});
        CHECK_EQUAL(allocations.load() - then, 0L);
      }
    }
  });
}

int main() {
  return check::run_tests();
}
