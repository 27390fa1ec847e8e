// Step 6, repulsive forces: the method that a layout asks for.
#pragma once

#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "forces/output_kernel.hpp"

#include <memory>
#include <span>

namespace acctsne {

enum class Method { automatic, exact, barnes_hut, fft };
inline constexpr int kMethods = 4;

// What users call the methods, and for how many dimensions they serve; 0 for any number.
struct MethodEntry {
  const char* name;
  int most_dims;
};
inline constexpr MethodEntry kMethodTable[kMethods] = {
    {"auto", 0}, {"exact", 0}, {"barnes_hut", 3}, {"fft", 2}};

struct RepulsionOptions {
  Method method = Method::automatic;
  double angle = 0.5;        // of Barnes-Hut
  double force_error = 0.02; // aim of the grid
  OutputKernel output_kernel = {};
};

template <typename Real>
class Repulsion {
public:
  virtual ~Repulsion() = default;

  // Fills force with sum_j q_ij (u_i - u_j) / (1 + |u_i - u_j|^2) and returns Z, for points u
  // within [lower, upper], in the output kernel's unit.
  virtual double forces(const Real* points, Size count, const Real* lower, const Real* upper,
                        Real* force, StepSeconds& seconds, ThreadTeam& team) = 0;

  // The positions of an earlier call that the next one still depends on; empty if there are none.
  virtual std::span<const Real> kept() const { return {}; }
  // Goes on as after that call; without positions, as if there had been none.
  virtual void keep(std::span<const Real>, ThreadTeam&) {}

  // What the last call used.
  Method used() const { return used_; }

protected:
  Method used_ = Method::automatic;
};

// Beyond kCompiledDims only all pairs are left: automatic chooses them, other methods throw
// std::invalid_argument.
template <typename Real>
std::unique_ptr<Repulsion<Real>> make_repulsion(int dims, const RepulsionOptions& options);

} // namespace acctsne
