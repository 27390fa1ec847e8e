// The Python module acctsne._core: arrays in, arrays out, the interpreter lock released, Ctrl-C and
// progress polled.
//
// Shapes and values are checked in Python before anything here is called; what is checked again is
// what would crash.
#include "acctsne/csr.hpp"
#include "acctsne/parallel.hpp"
#include "affinities/perplexity.hpp"
#include "affinities/symmetrize.hpp"
#include "forces/attractive.hpp"
#include "forces/repulsive_exact.hpp"
#include "kernels/dispatch.hpp"
#include "neighbors/exact.hpp"
#include "optimize/loop.hpp"
#include "tree/tree.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <stdexcept>
#include <string>

namespace nb = nanobind;
using namespace nb::literals;

namespace acctsne {
namespace {

template <typename T>
using Input1 = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Input2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Changed in place.
template <typename T>
using InOut2 = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <typename T>
nb::ndarray<nb::numpy, T> to_numpy(std::vector<T>&& values, std::vector<std::size_t> shape) {
  auto* held = new std::vector<T>(std::move(values));
  nb::capsule owner(held, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::ndarray<nb::numpy, T>(held->data(), shape.size(), shape.data(), owner);
}

template <typename T>
nb::ndarray<nb::numpy, T> to_numpy(std::span<const T> values, std::vector<std::size_t> shape) {
  return to_numpy(std::vector<T>(values.begin(), values.end()), std::move(shape));
}

void require(bool condition, const char* message) {
  if (!condition) {
    throw std::invalid_argument(message);
  }
}

// Asked by the thread team every 50 ms: takes the interpreter lock, handles signals, reports
// progress. A Python error, such as KeyboardInterrupt, is kept and cancels the work.
class PythonPoll {
public:
  using Count = std::function<Size()>;
  PythonPoll(nb::object progress, Count count)
      : progress_(std::move(progress)), count_(std::move(count)) {}

  bool operator()() {
    const nb::gil_scoped_acquire locked;
    return !guarded([&] {
      if (PyErr_CheckSignals() != 0) {
        nb::raise_python_error();
      }
      if (!progress_.is_none() && count_) {
        progress_(count_());
      }
    });
  }

  // Runs Python code under the lock; false, with the error kept, if it raised.
  template <typename Body>
  bool guarded(Body&& body) {
    try {
      body();
      return true;
    } catch (...) {
      failure_ = std::current_exception();
      return false;
    }
  }

  void rethrow() const {
    if (failure_) {
      std::rethrow_exception(failure_);
    }
  }

private:
  nb::object progress_;
  Count count_;
  std::exception_ptr failure_;
};

// Runs body(team) without the interpreter lock on a team of its own.
template <typename Body>
void run_native(int threads, PythonPoll& poll, Body&& body) {
  {
    const nb::gil_scoped_release unlocked;
    ThreadTeam team(threads, [&poll] { return poll(); });
    try {
      body(team);
    } catch (const Cancelled&) {
      // The reason is in the poll.
    }
  }
  poll.rethrow();
}

template <typename Body>
void run_native(int threads, Body&& body) {
  PythonPoll poll(nb::none(), {});
  run_native(threads, poll, body);
}

template <typename Data, typename Real>
nb::tuple neighbors_as(Input2<Data> X, Input2<float> coordinates, Input1<double> squared_norms,
                       double scale, Size k, Size most_cells, int threads,
                       const nb::object& progress) {
  const auto rows = static_cast<Size>(X.shape(0));
  require(k >= 1 && k < rows, "n_neighbors must be in [1, n_samples - 1]");
  require(rows < std::numeric_limits<PointId>::max() / 2, "too many samples");
  require(coordinates.shape(0) == X.shape(0) && squared_norms.shape(0) == X.shape(0) &&
              coordinates.shape(1) >= 1,
          "the projection does not fit the data");
  const auto stored = static_cast<std::size_t>(rows * k);
  std::vector<PointId> indices(stored);
  std::vector<Real> distances(stored);
  std::atomic<Size> done{0};
  PythonPoll poll(progress, [&done] { return done.load(std::memory_order_relaxed); });
  const Projection projection{coordinates.data(), static_cast<Size>(coordinates.shape(1)),
                              squared_norms.data(), scale};
  run_native(threads, poll, [&](ThreadTeam& team) {
    exact_neighbors<Data, Real>({X.data(), rows, static_cast<Size>(X.shape(1)), projection, k,
                                 indices.data(), distances.data(), most_cells, &done},
                                team);
  });
  const std::vector<std::size_t> shape{X.shape(0), static_cast<std::size_t>(k)};
  return nb::make_tuple(to_numpy(std::move(indices), shape), to_numpy(std::move(distances), shape));
}

template <typename Data>
nb::tuple nearest_neighbors(Input2<Data> X, Input2<float> coordinates, Input1<double> squared_norms,
                            double scale, Size k, bool in_double, Size most_cells, int threads,
                            const nb::object& progress) {
  const auto run = in_double ? neighbors_as<Data, double> : neighbors_as<Data, float>;
  return run(X, coordinates, squared_norms, scale, k, most_cells, threads, progress);
}

template <typename Real>
nb::tuple perplexity(Input2<Real> squared_distances, double perplexity, int threads) {
  const auto rows = static_cast<Size>(squared_distances.shape(0));
  const auto k = static_cast<Size>(squared_distances.shape(1));
  require(k >= 1, "at least one neighbour is needed");
  std::vector<Real> conditional(static_cast<std::size_t>(rows * k));
  std::vector<double> betas(static_cast<std::size_t>(rows));
  Size missed = 0;
  run_native(threads, [&](ThreadTeam& team) {
    missed = search_perplexity<Real>(
        {squared_distances.data(), rows, k, perplexity, conditional.data(), betas.data()}, team);
  });
  return nb::make_tuple(
      to_numpy(std::move(conditional), {squared_distances.shape(0), squared_distances.shape(1)}),
      to_numpy(std::move(betas), {squared_distances.shape(0)}), missed);
}

template <typename Real>
nb::tuple symmetrized(InOut2<PointId> indices, InOut2<Real> conditional, int threads) {
  const auto rows = static_cast<Size>(indices.shape(0));
  const auto k = static_cast<Size>(indices.shape(1));
  require(conditional.shape(0) == indices.shape(0) && conditional.shape(1) == indices.shape(1),
          "indices and conditional differ in shape");
  require(std::all_of(indices.data(), indices.data() + rows * k,
                      [rows](PointId j) { return j >= 0 && j < rows; }),
          "a neighbour's index is out of range");
  Csr<Real> joint;
  run_native(threads, [&](ThreadTeam& team) {
    joint = symmetrize(indices.data(), conditional.data(), rows, k, team);
  });
  const std::size_t edges = joint.columns.size();
  return nb::make_tuple(to_numpy(std::move(joint.offsets), {indices.shape(0) + 1}),
                        to_numpy(std::move(joint.columns), {edges}),
                        to_numpy(std::move(joint.values), {edges}));
}

// Calls body with the dimension as a compile-time constant.
template <typename Body>
auto with_dims(std::size_t dims, Body&& body) {
  switch (dims) {
  case 1:
    return body(std::integral_constant<int, 1>{});
  case 2:
    return body(std::integral_constant<int, 2>{});
  case 3:
    return body(std::integral_constant<int, 3>{});
  default:
    throw std::invalid_argument("an embedding has 1, 2 or 3 dimensions");
  }
}

template <typename Real>
nb::tuple exact_repulsion(Input2<Real> Y, Input1<PointId> rows, int threads) {
  const auto count = static_cast<Size>(Y.shape(0));
  const std::size_t dims = Y.shape(1);
  const std::span<const PointId> listed(rows.data(), rows.shape(0));
  require(
      std::all_of(listed.begin(), listed.end(), [count](PointId i) { return i >= 0 && i < count; }),
      "a row is out of range");
  std::vector<Real> force(listed.size() * dims);
  std::vector<double> z(listed.size());
  run_native(threads, [&](ThreadTeam& team) {
    with_dims(dims, [&](auto d) {
      ExactRepulsion<Real, d()> repulsion;
      repulsion.forces(Y.data(), count, listed, force.data(), z.data(), team);
    });
  });
  return nb::make_tuple(to_numpy(std::move(force), {listed.size(), dims}),
                        to_numpy(std::move(z), {listed.size()}));
}

template <typename Real>
nb::dict tree_arrays(Input2<Real> Y, int threads) {
  const auto count = static_cast<Size>(Y.shape(0));
  require(count >= 1, "a tree needs a point");
  return with_dims(Y.shape(1), [&](auto d) {
    constexpr int kDims = d();
    Tree<Real, kDims> tree;
    run_native(threads, [&](ThreadTeam& team) {
      Real lower[kDims];
      Real upper[kDims];
      for (int axis = 0; axis < kDims; ++axis) {
        lower[axis] = upper[axis] = Y.data()[axis];
        for (Size i = 0; i < count; ++i) {
          lower[axis] = std::min(lower[axis], Y.data()[i * kDims + axis]);
          upper[axis] = std::max(upper[axis], Y.data()[i * kDims + axis]);
        }
      }
      tree.build(Y.data(), count, lower, upper, team);
      tree.summarize(team);
    });
    const auto nodes = tree.nodes();
    std::vector<Real> centers;
    std::vector<Real> sides;
    std::vector<PointId> begins;
    std::vector<PointId> ends;
    std::vector<NodeId> skips;
    std::vector<std::int32_t> levels;
    for (const auto& node : nodes) {
      centers.insert(centers.end(), node.center, node.center + kDims);
      sides.push_back(node.side);
      begins.push_back(node.begin);
      ends.push_back(node.end);
      skips.push_back(node.skip);
      levels.push_back(node.level);
    }
    const std::size_t n = nodes.size();
    nb::dict result;
    result["order"] = to_numpy(tree.order(), {Y.shape(0)});
    result["codes"] = to_numpy(tree.codes(), {Y.shape(0)});
    result["center"] = to_numpy(std::move(centers), {n, kDims});
    result["side"] = to_numpy(std::move(sides), {n});
    result["begin"] = to_numpy(std::move(begins), {n});
    result["end"] = to_numpy(std::move(ends), {n});
    result["skip"] = to_numpy(std::move(skips), {n});
    result["level"] = to_numpy(std::move(levels), {n});
    result["box_lower"] = to_numpy(std::span<const Real>(tree.box().lower, kDims), {kDims});
    result["box_side"] = static_cast<double>(tree.box().side);
    return result;
  });
}

constexpr const char* kMethodNames[kMethods] = {"auto", "exact", "barnes_hut", "fft"};

Method method_named(const std::string& name) {
  const auto* found = std::find(std::begin(kMethodNames), std::end(kMethodNames), name);
  require(found != std::end(kMethodNames), "unknown method");
  return static_cast<Method>(found - std::begin(kMethodNames));
}

// Keeps the arrays of P alive beside the optimiser that reads them.
template <typename Real>
class BoundOptimizer {
public:
  BoundOptimizer(Input1<EdgeId> offsets, Input1<PointId> columns, Input1<Real> values,
                 Input2<Real> initial, const std::string& method, double angle, double force_error)
      : offsets_(std::move(offsets)), columns_(std::move(columns)), values_(std::move(values)),
        rows_(initial.shape(0)), dims_(initial.shape(1)) {
    require(rows_ >= 1 && offsets_.shape(0) == rows_ + 1, "P and the layout differ in rows");
    const EdgeId* first = offsets_.data();
    const auto edges = static_cast<EdgeId>(columns_.shape(0));
    require(first[0] == 0 && first[rows_] == edges && values_.shape(0) == columns_.shape(0) &&
                std::is_sorted(first, first + rows_ + 1),
            "P's offsets do not fit its columns");
    require(
        std::all_of(columns_.data(), columns_.data() + edges,
                    [this](PointId j) { return j >= 0 && static_cast<std::size_t>(j) < rows_; }),
        "a column of P is out of range");
    const RepulsionOptions options{method_named(method), angle, force_error};
    require(dims_ <= 2 || options.method != Method::fft, "the grid has at most 2 dimensions");
    optimizer_ = make_optimizer<Real>({{offsets_.data(), rows_ + 1},
                                       {columns_.data(), columns_.shape(0)},
                                       {values_.data(), values_.shape(0)}},
                                      initial.data(), static_cast<int>(dims_), options);
  }

  std::string run(Size iterations, double exaggeration, double learning_rate, double momentum,
                  double max_step, Size check_every, double min_gradient_norm, Size patience,
                  Size callback_every, const nb::object& callback, const nb::object& progress,
                  int threads) {
    Phase phase;
    phase.iterations = iterations;
    phase.exaggeration = exaggeration;
    phase.learning_rate = learning_rate;
    phase.momentum = momentum;
    phase.max_step = max_step;
    phase.check_every = check_every;
    phase.callback_every = callback_every;
    phase.min_gradient_norm = min_gradient_norm;
    phase.patience = patience;
    PythonPoll poll(progress, [this] { return optimizer_->iterations(); });
    const Observer observer = [&](const Report& report) {
      const nb::gil_scoped_acquire locked;
      bool stop = false;
      const bool finished = poll.guarded([&] {
        stop =
            nb::cast<bool>(callback(report.iteration, report.kl_divergence, report.gradient_norm));
      });
      return stop || !finished;
    };
    Stop stop = Stop::finished;
    run_native(threads, poll, [&](ThreadTeam& team) {
      stop = optimizer_->run(phase, team, callback.is_none() ? Observer{} : observer);
    });
    constexpr const char* kNames[] = {"finished", "small_gradient", "no_progress", "callback"};
    return kNames[static_cast<int>(stop)];
  }

  double kl_divergence(int threads) {
    double kl = 0;
    run_native(threads, [&](ThreadTeam& team) { kl = optimizer_->kl_divergence(team); });
    return kl;
  }

  nb::tuple forces(int threads) {
    run_native(threads, [&](ThreadTeam& team) { optimizer_->evaluate(team); });
    return nb::make_tuple(to_numpy(optimizer_->attractive(), {rows_, dims_}),
                          to_numpy(optimizer_->repulsive(), {rows_, dims_}), optimizer_->z());
  }

  void rest() { optimizer_->rest(); }
  nb::ndarray<nb::numpy, Real> points() const {
    return to_numpy(optimizer_->points(), {rows_, dims_});
  }
  // Finished iterations by method, those that were used.
  nb::dict iterations_by_method() const {
    nb::dict result;
    for (int method = 0; method < kMethods; ++method) {
      const Size count = optimizer_->iterations_by(static_cast<Method>(method));
      if (count > 0) {
        result[kMethodNames[method]] = count;
      }
    }
    return result;
  }
  Size iterations() const { return optimizer_->iterations(); }
  double gradient_norm() const { return optimizer_->last_report().gradient_norm; }
  nb::dict seconds() const {
    const StepSeconds& seconds = optimizer_->seconds();
    nb::dict result;
    result["tree_building"] = seconds.tree_building;
    result["summarization"] = seconds.summarization;
    result["attractive"] = seconds.attractive;
    result["repulsive"] = seconds.repulsive;
    result["update"] = seconds.update;
    result["kl_divergence"] = seconds.kl_divergence;
    result["relabel"] = seconds.relabel;
    return result;
  }

private:
  Input1<EdgeId> offsets_;
  Input1<PointId> columns_;
  Input1<Real> values_;
  std::size_t rows_;
  std::size_t dims_;
  std::unique_ptr<Optimizer<Real>> optimizer_;
};

template <typename Real>
void bind_optimizer(nb::module_& m, const char* name) {
  using Bound = BoundOptimizer<Real>;
  nb::class_<Bound>(m, name)
      .def(nb::init<Input1<EdgeId>, Input1<PointId>, Input1<Real>, Input2<Real>, const std::string&,
                    double, double>(),
           "offsets"_a.noconvert(), "columns"_a.noconvert(), "values"_a.noconvert(),
           "initial"_a.noconvert(), "method"_a, "angle"_a, "force_error"_a)
      .def("run", &Bound::run, "iterations"_a, "exaggeration"_a, "learning_rate"_a, "momentum"_a,
           "max_step"_a, "check_every"_a, "min_gradient_norm"_a, "patience"_a, "callback_every"_a,
           "callback"_a.none(), "progress"_a.none(), "threads"_a)
      .def("kl_divergence", &Bound::kl_divergence, "threads"_a)
      .def("forces", &Bound::forces, "threads"_a)
      .def("rest", &Bound::rest)
      .def_prop_ro("points", &Bound::points, nb::rv_policy::move)
      .def_prop_ro("iterations_by_method", &Bound::iterations_by_method)
      .def_prop_ro("iterations", &Bound::iterations)
      .def_prop_ro("gradient_norm", &Bound::gradient_norm)
      .def_prop_ro("seconds", &Bound::seconds);
}

template <typename Real>
void bind_steps(nb::module_& m) {
  m.def("nearest_neighbors", &nearest_neighbors<Real>, "X"_a.noconvert(),
        "coordinates"_a.noconvert(), "squared_norms"_a.noconvert(), "scale"_a, "n_neighbors"_a,
        "in_double"_a, "most_cells"_a, "threads"_a, "progress"_a.none() = nb::none());
  m.def("search_perplexity", &perplexity<Real>, "squared_distances"_a.noconvert(), "perplexity"_a,
        "threads"_a);
  m.def("symmetrize", &symmetrized<Real>, "indices"_a.noconvert(), "conditional"_a.noconvert(),
        "threads"_a);
  m.def("exact_repulsion", &exact_repulsion<Real>, "Y"_a.noconvert(), "rows"_a.noconvert(),
        "threads"_a);
  m.def("build_tree", &tree_arrays<Real>, "Y"_a.noconvert(), "threads"_a);
}

nb::dict build_info() {
  nb::dict info;
#if defined(__clang__)
  info["compiler"] = "clang " __clang_version__;
#elif defined(__GNUC__)
  info["compiler"] = "gcc " __VERSION__;
#else
  info["compiler"] = "unknown";
#endif
  info["simd_levels_built"] = nb::cast(built_levels());
  info["simd_levels_usable"] = nb::cast(usable_levels());
  info["simd_level"] = std::string(kernels().level);
  return info;
}

} // namespace

NB_MODULE(_core, m) {
  kernels(); // choose the SIMD level at import, so that a wrong ACCTSNE_SIMD is told at once
  bind_steps<float>(m);
  bind_steps<double>(m);
  bind_optimizer<float>(m, "Optimizer32");
  bind_optimizer<double>(m, "Optimizer64");
  m.def("build_info", &build_info);
  m.def("use_simd_level", [](const std::string& name) { use_level(name); }, "name"_a);
}

} // namespace acctsne
