// Step 6, repulsive forces: the table of methods, and the choice among them.
#include "forces/repulsive.hpp"

#include "forces/repulsive_exact.hpp"
#include "forces/repulsive_fft.hpp"
#include "forces/repulsive_tree.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace acctsne {

// The later, the less a method's cost grows with the map. A table that has not a line for each name
// in Method does not compile.
const std::array<MethodEntry, kMethods> kMethodTable = std::to_array<MethodEntry>({
    {"exact", 0, kExactMakers},
    {"barnes_hut", kCompiledDims, kTreeMakers},
    {"fft", 2, kFftMakers},
});

namespace {

void require_service(Method method, int dims) {
  if (method != Method::automatic) {
    const MethodEntry& entry = entry_of(method);
    if (!entry.serves(dims)) {
      throw std::invalid_argument(std::string(entry.name) + " serves up to " +
                                  std::to_string(entry.most_dims) + " dimensions");
    }
  }
}

} // namespace

template <typename Real>
double Repulsion<Real>::forces(const MapView<Real>& map, Real* force, ThreadTeam& team) {
  StepSeconds unused;
  RowSums z;
  z.start(map.count, kSumRows);
  forces(map, one_process, force, z, unused, team);
  return z.total();
}

template <typename Real>
ChosenRepulsion<Real>::ChosenRepulsion(int dims, const RepulsionOptions& options)
    : wanted_(options.method) {
  require_service(wanted_, dims);
  for (int method = 0; method < kMethods; ++method) {
    const MethodEntry& entry = entry_of(static_cast<Method>(method));
    if (entry.serves(dims)) {
      methods_[method] = entry.make.of<Real>().repulsion(dims, options);
    }
  }
}

// A method that is asked for but cannot serve the map gives way to the cheapest.
template <typename Real>
Method ChosenRepulsion<Real>::choose(const MapView<Real>& map) const {
  const auto cost = [&](int method) {
    return methods_[method] ? methods_[method]->cost(map) : HUGE_VAL;
  };
  if (wanted_ != Method::automatic && std::isfinite(cost(static_cast<int>(wanted_)))) {
    return wanted_;
  }
  int cheapest = 0;
  for (int method = 1; method < kMethods; ++method) {
    if (cost(method) < cost(cheapest)) {
      cheapest = method;
    }
  }
  return static_cast<Method>(cheapest);
}

template <typename Real>
bool ChosenRepulsion<Real>::needs_all_points(const MapView<Real>& map) const {
  return methods_[static_cast<int>(choose(map))]->needs_all_points();
}

template <typename Real>
void ChosenRepulsion<Real>::forces(const MapView<Real>& map, Communicator& processes, Real* force,
                                   RowSums& z, StepSeconds& seconds, ThreadTeam& team) {
  used_ = choose(map);
  methods_[static_cast<int>(used_)]->forces(map, processes, force, z, seconds, team);
}

template <typename Real>
double ChosenRepulsion<Real>::forces(const MapView<Real>& map, Real* force, ThreadTeam& team) {
  used_ = choose(map);
  return methods_[static_cast<int>(used_)]->forces(map, force, team);
}

template <typename Real>
std::span<const Real> ChosenRepulsion<Real>::kept() const {
  for (const auto& method : methods_) {
    if (method && !method->kept().empty()) {
      return method->kept();
    }
  }
  return {};
}

template <typename Real>
void ChosenRepulsion<Real>::keep(std::span<const Real> points, ThreadTeam& team) {
  for (const auto& method : methods_) {
    if (method) {
      method->keep(points, team);
    }
  }
}

template <typename Real>
std::unique_ptr<RepulsiveField<Real>>
make_field(int dims, const MapView<Real>& map, const RepulsionOptions& options, ThreadTeam& team) {
  require_service(options.method, dims);
  if (options.method != Method::automatic) {
    return entry_of(options.method).make.of<Real>().field(dims, map, options, team);
  }
  auto entry = kMethodTable.rbegin();
  while (!entry->serves(dims)) {
    ++entry;
  }
  return entry->make.of<Real>().field(dims, map, options, team);
}

#define ACCTSNE_INSTANTIATE(Real)                                                                  \
  template class Repulsion<Real>;                                                                  \
  template class ChosenRepulsion<Real>;                                                            \
  template std::unique_ptr<RepulsiveField<Real>> make_field(int, const MapView<Real>&,             \
                                                            const RepulsionOptions&, ThreadTeam&);
ACCTSNE_INSTANTIATE(float)
ACCTSNE_INSTANTIATE(double)
#undef ACCTSNE_INSTANTIATE

} // namespace acctsne
