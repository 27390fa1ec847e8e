// The map that new points are placed into, as a Python class for each precision.
#include "optimize/place.hpp"

#include "bind/native_call.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

namespace acctsne {
namespace {

// It stays as it is.
template <typename Real>
class BoundMap {
public:
  BoundMap(Input2<Real> positions, const RepulsionOptions& options)
      : positions_(std::move(positions)), options_(options) {
    const auto finite = [](Real value) { return std::isfinite(value); };
    require(count() >= 1, "the map has no points");
    require(count() <= kMostPoints &&
                std::all_of(positions_.data(), positions_.data() + positions_.size(), finite),
            "the map has too many points, or a position that is not finite");
  }

  // Returns the positions that the new points end at.
  Output<Real> place(Input2<PointId> neighbors, Input2<Real> weights, Input2<Real> initial,
                     const Phase& phase, int threads, const Progress& progress) const {
    const std::size_t new_points = initial.shape(0);
    const std::size_t dims = initial.shape(1);
    require(positions_.shape(1) == dims, "the map and the positions differ in columns");
    require(neighbors.shape(0) == new_points && weights.shape(0) == new_points &&
                neighbors.shape(1) == weights.shape(1),
            "neighbors, weights and positions differ in shape");
    require(std::all_of(neighbors.data(), neighbors.data() + neighbors.size(),
                        [this](PointId j) { return j >= 0 && j < count(); }),
            "a neighbour's index is out of range");
    require(phase.momentum.has_value(), "new points need a momentum");
    std::vector<Real> positions(initial.data(), initial.data() + initial.size());
    std::atomic<Size> done{0};
    PythonPoll poll(progress, [&done] { return done.load(std::memory_order_relaxed); });
    run_native(threads, poll, [&](ThreadTeam& team) {
      place_points<Real>(
          {
              .map = positions_.data(),
              .map_points = count(),
              .dims = static_cast<int>(dims),
              .neighbors = neighbors.data(),
              .weights = weights.data(),
              .count = static_cast<Size>(new_points),
              .k = static_cast<Size>(neighbors.shape(1)),
              .positions = positions.data(),
              .options = options_,
              .phase = phase,
              .done = &done,
          },
          team);
    });
    return to_numpy(std::move(positions), {new_points, dims});
  }

private:
  Size count() const { return static_cast<Size>(positions_.shape(0)); }

  Input2<Real> positions_;
  RepulsionOptions options_;
};

template <typename Real>
void bind_map(nb::module_& m, const char* name) {
  using Bound = BoundMap<Real>;
  nb::class_<Bound>(m, name)
      .def(nb::init<Input2<Real>, const RepulsionOptions&>(), "positions"_a.noconvert(),
           "options"_a)
      .def("place", &Bound::place, "neighbors"_a.noconvert(), "weights"_a.noconvert(),
           "initial"_a.noconvert(), "phase"_a, "threads"_a, "progress"_a.none() = nb::none());
}

} // namespace

void bind_maps(nb::module_& m) {
  bind_map<float>(m, "Map32");
  bind_map<double>(m, "Map64");
}

} // namespace acctsne
