// An iteration between two relabellings asks the system for no memory.
#include "optimize/loop.hpp"

#include "check.hpp"
#include "data.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<long> allocations{0};
} // namespace

void* operator new(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size > 0 ? size : 1)) {
    return memory;
  }
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

using namespace acctsne;

TEST(iterations_do_not_allocate) {
  for_reals_in<1, 2, 3, 5>([]<typename Real, int Dims>() {
    constexpr Size kCount = 5000;
    const Csr<Real> P = make_joint<Real>(kCount, 20);
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
        CHECK_EQUAL(allocations.load() - before, 0L);
      }
    }
  });
}

int main() {
  return check::run_tests();
}
