// Step 6, repulsive forces: the method that a layout asks for.
#pragma once

#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "forces/repulsive_exact.hpp"
#include "forces/repulsive_fft.hpp"
#include "forces/repulsive_tree.hpp"
#include "tree/tree.hpp"

#include <type_traits>

namespace acctsne {

enum class Method { automatic, exact, barnes_hut, fft };
inline constexpr int kMethods = 4;

struct RepulsionOptions {
  Method method = Method::automatic;
  double angle = 0.5;        // of Barnes-Hut
  double force_error = 0.02; // aim of the grid
};

template <typename Real, int Dims>
class Repulsion {
public:
  explicit Repulsion(const RepulsionOptions& options) : options_(options) {}

  // Fills force with sum_j (y_i - y_j) / (1 + d^2)^2 and returns Z, for points within [lower,
  // upper].
  double forces(const Real* points, Size count, const Real* lower, const Real* upper, Real* force,
                StepSeconds& seconds, ThreadTeam& team);

  // What the last call used.
  Method used() const { return used_; }

private:
  Method choose(Size count, const Real* lower, const Real* upper) const;

  RepulsionOptions options_;
  Method used_ = Method::automatic;
  Tree<Real, Dims> tree_;
  TreeRepulsion<Real, Dims> tree_repulsion_;
  ExactRepulsion<Real, Dims> exact_;
  // The grid has no third dimension.
  struct NoFft {};
  std::conditional_t<Dims <= 2, FftRepulsion<Real, Dims == 1 ? 1 : 2>, NoFft> fft_;
};

} // namespace acctsne
