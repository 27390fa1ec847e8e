// Step 6, repulsive forces: what a method of computing them is, the table of methods, and the
// choice among them.
#pragma once

#include "acctsne/communicator.hpp"
#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "forces/map_view.hpp"
#include "forces/output_kernel.hpp"
#include "kernels/variants.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace acctsne {

// Methods in the order of their table, and last the choice of the cheapest.
enum class Method { exact, barnes_hut, fft, automatic };
inline constexpr int kMethods = static_cast<int>(Method::automatic);
inline constexpr const char* kAutomaticName = "auto";

struct RepulsionOptions {
  Method method = Method::automatic;
  double angle = 0.5;        // of Barnes-Hut
  double force_error = 0.02; // aim of the grid
  OutputKernel output_kernel = {};
};

// One method, for maps of one dimension.
template <typename Real>
class Repulsion {
public:
  virtual ~Repulsion() = default;

  // Nanoseconds that one evaluation takes on one thread; infinite for a map that the method cannot
  // serve. Threads and double precision change all methods by about the same factor, so only the
  // ratios matter.
  virtual double cost(const MapView<Real>& map) const = 0;

  // Whether every process must know the positions of all points, or of its own only.
  virtual bool needs_all_points() const { return true; }

  // Fills the forces on own rows, sum_j q_ij (u_i - u_j) / (1 + |u_i - u_j|^2), and adds what they
  // contribute to Z = sum_i sum_{j != i} q_ij.
  virtual void forces(const MapView<Real>& map, Communicator& processes, Real* force, RowSums& z,
                      StepSeconds& seconds, ThreadTeam& team) = 0;
  // The same by one process for all rows; returns Z.
  double forces(const MapView<Real>& map, Real* force, ThreadTeam& team);

  // The positions of an earlier call that the next one still depends on; empty if there are none.
  virtual std::span<const Real> kept() const { return {}; }
  // Goes on as after that call; without positions, as if there had been none.
  virtual void keep(std::span<const Real>, ThreadTeam&) {}
};

// The repulsion of a fixed map on any position, for points that are placed into it. What it gives
// depends on the map and the position alone.
template <typename Real>
class RepulsiveField {
public:
  virtual ~RepulsiveField() = default;

  // Fills force with sum_j q_j (u - u_j) / (1 + |u - u_j|^2) and returns z = sum_j q_j, over all
  // points of the map.
  virtual double at(const Real* u, Real* force) const = 0;
};

// How a method is made, and its field. Both for the given number of dimensions.
template <typename Real>
struct MethodMakers {
  std::unique_ptr<Repulsion<Real>> (*repulsion)(int dims, const RepulsionOptions& options);
  std::unique_ptr<RepulsiveField<Real>> (*field)(int dims, const MapView<Real>& map,
                                                 const RepulsionOptions& options, ThreadTeam& team);
};

// What users call a method, and for how many dimensions it serves; 0 for any number.
struct MethodEntry {
  const char* name;
  int most_dims;
  const Both<MethodMakers>& make;

  bool serves(int dims) const { return most_dims == 0 || dims <= most_dims; }
};
extern const std::array<MethodEntry, kMethods> kMethodTable;

// The line of a method; automatic has none.
inline const MethodEntry& entry_of(Method method) {
  return kMethodTable[static_cast<std::size_t>(method)];
}

// The method that the options name, or the cheapest for each map.
template <typename Real>
class ChosenRepulsion {
public:
  // Throws std::invalid_argument if the method does not serve so many dimensions.
  ChosenRepulsion(int dims, const RepulsionOptions& options);

  // As Repulsion has them, of the method that serves this map.
  bool needs_all_points(const MapView<Real>& map) const;
  void forces(const MapView<Real>& map, Communicator& processes, Real* force, RowSums& z,
              StepSeconds& seconds, ThreadTeam& team);
  double forces(const MapView<Real>& map, Real* force, ThreadTeam& team);
  // The method of the last call.
  Method used() const { return used_; }

  // As Repulsion has them, of whichever method keeps anything.
  std::span<const Real> kept() const;
  void keep(std::span<const Real> points, ThreadTeam& team);

private:
  Method choose(const MapView<Real>& map) const;

  Method wanted_;
  Method used_ = Method::automatic;
  std::unique_ptr<Repulsion<Real>> methods_[kMethods]; // null where one does not serve
};

// The field of the method that the options name, or of the one whose cost grows least with the map.
template <typename Real>
std::unique_ptr<RepulsiveField<Real>> make_field(int dims, const MapView<Real>& map,
                                                 const RepulsionOptions& options, ThreadTeam& team);

} // namespace acctsne
