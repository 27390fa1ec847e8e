// Step 6, repulsive forces: the method that a layout asks for.
#pragma once

#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "forces/repulsive_exact.hpp"
#include "forces/repulsive_fft.hpp"
#include "forces/repulsive_tree.hpp"
#include "forces/similarity.hpp"
#include "tree/tree.hpp"

#include <type_traits>

namespace acctsne {

enum class Method { automatic, exact, barnes_hut, fft };
inline constexpr int kMethods = 4;

struct RepulsionOptions {
  Method method = Method::automatic;
  double angle = 0.5;        // of Barnes-Hut
  double force_error = 0.02; // aim of the grid
  Similarity similarity = {};
};

template <typename Real, int Dims>
class Repulsion {
public:
  explicit Repulsion(const RepulsionOptions& options)
      : options_(options), tree_repulsion_(options.similarity.exponent),
        exact_(options.similarity.exponent), fft_(options.similarity.exponent) {}

  // Fills force with sum_j q_ij (u_i - u_j) / (1 + |u_i - u_j|^2) and returns Z, for points u
  // within [lower, upper], in the similarity's unit.
  double forces(const Real* points, Size count, const Real* lower, const Real* upper, Real* force,
                StepSeconds& seconds, ThreadTeam& team);

  // What the last call used.
  Method used() const { return used_; }

private:
  Method choose(Size count, const Real* lower, const Real* upper) const;
  double grid_step() const {
    return grid_step_for_error(options_.force_error, options_.similarity.exponent);
  }

  RepulsionOptions options_;
  Method used_ = Method::automatic;
  Tree<Real, Dims> tree_;
  TreeRepulsion<Real, Dims> tree_repulsion_;
  ExactRepulsion<Real, Dims> exact_;
  // The grid has no third dimension.
  struct NoFft {
    explicit NoFft(double) {}
  };
  std::conditional_t<Dims <= 2, FftRepulsion<Real, Dims == 1 ? 1 : 2>, NoFft> fft_;
};

} // namespace acctsne
