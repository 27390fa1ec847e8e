// Step 6, repulsive forces: which method, and the steps it is made of.
#include "forces/repulsive.hpp"

#include "forces/repulsive_exact.hpp"
#include "forces/repulsive_fft.hpp"
#include "forces/repulsive_tree.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <type_traits>

namespace acctsne {
namespace {

// Cost of one evaluation in nanoseconds on one thread: float32, uniform maps of 300 to 300000
// points over 10 to 450 units, on an Emerald Rapids core with AVX2 and AVX-512 kernels, which agree
// within 30 %. Threads and double precision change all three by about the same factor,
// so only the ratios matter.
constexpr double kExactPair = 0.25;
constexpr double kTreePoint = 10; // per point and level, log2 of the points
constexpr double kTreeFixed = 5'000;
constexpr double kFftPoint = 27;
constexpr double kFftNode = 0.25; // per node transformed, times log2 of their number
constexpr double kFftFixed = 40'000;
// A similarity with another exponent than 1 takes a logarithm and an exponential: how much longer
// all pairs and the tree then take. float32 with AVX2 and AVX-512, 2-D and 3-D: 3.4 to 4.8 and 1.4
// to 1.8. The grid's work stays the same.
constexpr double kExactAnyPower = 4;
constexpr double kTreeAnyPower = 1.6;

// A map of so few dimensions that there is a tree for it.
template <typename Real, int Dims>
class MapRepulsion final : public Repulsion<Real> {
public:
  explicit MapRepulsion(const RepulsionOptions& options)
      : options_(options), tree_(options.angle, options.output_kernel.exponent),
        exact_(Dims, options.output_kernel.exponent), fft_(options.output_kernel.exponent) {}

  double forces(const Real* points, Size count, const Real* lower, const Real* upper, Real* force,
                StepSeconds& seconds, ThreadTeam& team) override;

  std::span<const Real> kept() const override { return tree_.built_from(); }
  void keep(std::span<const Real> points, ThreadTeam& team) override {
    tree_.build_from(points, team);
  }

private:
  Method choose(Size count, const Real* lower, const Real* upper) const;
  double grid_step() const {
    return grid_step_for_error(options_.force_error, options_.output_kernel.exponent);
  }

  RepulsionOptions options_;
  TreeRepulsion<Real, Dims> tree_;
  ExactRepulsion<Real> exact_;
  // The grid has no third dimension.
  struct NoFft {
    explicit NoFft(double) {}
  };
  std::conditional_t<Dims <= 2, FftRepulsion<Real, Dims == 1 ? 1 : 2>, NoFft> fft_;
};

template <typename Real, int Dims>
Method MapRepulsion<Real, Dims>::choose(Size count, const Real* lower, const Real* upper) const {
  const auto n = static_cast<double>(count);
  const bool any_power = options_.output_kernel.exponent != 1;
  const double exact = (any_power ? kExactAnyPower : 1) * kExactPair * n * n;
  const double tree =
      kTreeFixed + (any_power ? kTreeAnyPower : 1) * kTreePoint * n * std::log2(n + 2);
  double fft = HUGE_VAL;
  if constexpr (Dims <= 2) {
    const double step = grid_step();
    if (FftRepulsion<Real, Dims>::nodes_needed(lower, upper, step) <=
        static_cast<double>(kMaxGridNodes)) {
      const double nodes = FftRepulsion<Real, Dims>::nodes_transformed(lower, upper, step);
      fft = kFftFixed + kFftPoint * n + kFftNode * nodes * std::log2(nodes);
    }
  }
  if (options_.method == Method::fft) {
    return std::isfinite(fft) ? Method::fft : Method::barnes_hut;
  }
  if (options_.method != Method::automatic) {
    return options_.method;
  }
  if (exact <= tree && exact <= fft) {
    return Method::exact;
  }
  return tree <= fft ? Method::barnes_hut : Method::fft;
}

template <typename Real, int Dims>
double MapRepulsion<Real, Dims>::forces(const Real* points, Size count, const Real* lower,
                                        const Real* upper, Real* force, StepSeconds& seconds,
                                        ThreadTeam& team) {
  this->used_ = choose(count, lower, upper);
  if (this->used_ == Method::exact) {
    const StepTimer timer(seconds.repulsive);
    return exact_.forces(points, count, force, team);
  }
  if constexpr (Dims <= 2) {
    if (this->used_ == Method::fft) {
      const StepTimer timer(seconds.repulsive);
      return fft_.forces(points, count, lower, upper, grid_step(), force, team);
    }
  }
  return tree_.forces(points, count, lower, upper, force, seconds, team);
}

template <typename Real>
class AllPairs final : public Repulsion<Real> {
public:
  AllPairs(int dims, const RepulsionOptions& options)
      : exact_(dims, options.output_kernel.exponent) {
    this->used_ = Method::exact;
  }

  double forces(const Real* points, Size count, const Real*, const Real*, Real* force,
                StepSeconds& seconds, ThreadTeam& team) override {
    const StepTimer timer(seconds.repulsive);
    return exact_.forces(points, count, force, team);
  }

private:
  ExactRepulsion<Real> exact_;
};

} // namespace

template <typename Real>
std::unique_ptr<Repulsion<Real>> make_repulsion(int dims, const RepulsionOptions& options) {
  if (dims > kCompiledDims) {
    if (options.method != Method::automatic && options.method != Method::exact) {
      throw std::invalid_argument("the tree and the grid have at most 3 dimensions");
    }
    return std::make_unique<AllPairs<Real>>(dims, options);
  }
  return with_dims(dims, [&](auto d) -> std::unique_ptr<Repulsion<Real>> {
    return std::make_unique<MapRepulsion<Real, d()>>(options);
  });
}

template std::unique_ptr<Repulsion<float>> make_repulsion(int, const RepulsionOptions&);
template std::unique_ptr<Repulsion<double>> make_repulsion(int, const RepulsionOptions&);

} // namespace acctsne
