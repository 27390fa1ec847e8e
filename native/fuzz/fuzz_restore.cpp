// An optimiser that is to go on from a state of any kind, as a damaged file may have it.
//
// Promised by Python: P is sound, and a phase has the ranges of TSNE's parameters. The state may be
// anything; what is not refused must be gone on from.
#include "fuzz/input.hpp"
#include "optimize/loop.hpp"

#include <limits>

using namespace acctsne;
using namespace acctsne::fuzz;

namespace {

// Each point is drawn to the next one.
template <typename Real>
Csr<Real> ring(Size rows) {
  Csr<Real> P;
  P.offsets.push_back(0);
  for (Size i = 0; i < rows; ++i) {
    for (const Size j : {(i + 1) % rows, (i + rows - 1) % rows}) {
      P.columns.push_back(static_cast<PointId>(j));
      P.values.push_back(static_cast<Real>(0.5 / static_cast<double>(rows)));
    }
    P.offsets.push_back(static_cast<EdgeId>(P.columns.size()));
  }
  return P;
}

template <typename Real>
std::vector<Real> of_state(Input& input, Size numbers) {
  const auto kind = input.ConsumeIntegral<std::uint8_t>();
  if (kind == 255) {
    numbers = input.ConsumeIntegralInRange<Size>(0, 300);
  }
  return kind % 4 == 0 ? any_numbers<Real>(input, numbers)
                       : fuzz::numbers<Real>(input, numbers, 1e12);
}

template <typename Real>
OptimizerState<Real> any_state(Input& input, Size rows, int dims) {
  OptimizerState<Real> state;
  state.points = of_state<Real>(input, rows * dims);
  state.updates = of_state<Real>(input, rows * dims);
  state.gains = of_state<Real>(input, rows * dims);
  state.mean = of_state<Real>(input, dims);
  state.kept = of_state<Real>(input, input.ConsumeBool() ? rows * dims : 0);
  state.order = permutation(input, rows);
  if (input.ConsumeIntegral<std::uint8_t>() % 8 == 0 && rows > 0) {
    state.order[at(input.ConsumeIntegralInRange<Size>(0, rows - 1))] =
        input.ConsumeIntegral<PointId>();
  }
  const bool odd = input.ConsumeIntegral<std::uint8_t>() % 8 == 0;
  state.iterations =
      odd ? input.ConsumeIntegral<Size>() >> 1 : input.ConsumeIntegralInRange<Size>(0, 600);
  state.relabelled_at =
      odd ? input.ConsumeIntegral<Size>() : input.ConsumeIntegralInRange<Size>(-1, 600);
  state.friction.friction = odd ? input.ConsumeFloatingPoint<double>()
                                : input.ConsumeFloatingPointInRange<double>(0.01, 0.1);
  state.friction.work = odd ? input.ConsumeFloatingPoint<double>() : 0;
  return state;
}

template <typename Real>
void go_on(Input& input, ThreadTeam& team) {
  const int dims = input.ConsumeIntegralInRange<int>(1, 5);
  const Size rows = input.ConsumeIntegralInRange<Size>(2, 40);
  const Csr<Real> matrix = ring<Real>(rows);
  MatrixRows<Real> P(matrix.view());
  RepulsionOptions options;
  options.method = dims > kCompiledDims
                       ? Method::automatic
                       : input.PickValueInArray({Method::automatic, Method::barnes_hut,
                                                 dims > 2 ? Method::exact : Method::fft});
  std::vector<Real> initial(at(rows * dims));
  std::iota(initial.begin(), initial.end(), Real(0));
  OneProcess alone;
  const auto optimizer = make_optimizer<Real>(P, initial.data(), dims, options, alone, team);
  const OptimizerState<Real> state = any_state<Real>(input, rows, dims);
  if (!accepts([&] { optimizer->restore(state); })) {
    // Nothing has changed.
    EXPECT(optimizer->iterations() == 0 && optimizer->points() == initial);
    return;
  }
  EXPECT(optimizer->state().points == state.points);
  EXPECT(optimizer->state().order == state.order);
  Phase phase;
  phase.iterations = input.ConsumeIntegralInRange<Size>(0, 4);
  phase.exaggeration = input.ConsumeFloatingPointInRange<double>(0.1, 100);
  phase.learning_rate = input.ConsumeFloatingPointInRange<double>(0.1, 1e6);
  phase.rule = input.ConsumeBool() ? StepRule::heavy_ball : StepRule::delta_bar_delta;
  if (input.ConsumeBool()) {
    phase.momentum = input.ConsumeFloatingPointInRange<double>(0, 0.999);
  }
  phase.max_step = input.ConsumeBool() ? 5 : std::numeric_limits<double>::infinity();
  phase.report_every = {1};
  std::vector<std::uint8_t> fixed;
  if (input.ConsumeBool()) {
    fixed.assign(at(rows), input.ConsumeIntegral<std::uint8_t>());
  }
  optimizer->hold(fixed);
  try {
    optimizer->run(phase, team, [](const Report&) { return false; });
  } catch (const std::domain_error&) {
    return; // numbers that grow beyond all bounds
  }
  EXPECT(optimizer->iterations() == state.iterations + phase.iterations);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  choose_level(input);
  ThreadTeam team(choose_threads(input));
  with_real(input, [&]<typename Real>() { go_on<Real>(input, team); });
  return 0;
}
