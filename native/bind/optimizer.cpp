// The gradient descent as a Python class for each precision.
#include "affinities/exchanged_rows.hpp"
#include "affinities/symmetrize.hpp"
#include "bind/conditional.hpp"
#include "bind/csr.hpp"
#include "bind/exclusive.hpp"
#include "bind/native_call.hpp"
#include "bind/processes.hpp"
#include "kernels/dispatch.hpp"
#include "optimize/loop.hpp"

#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>

namespace acctsne {
namespace {

// Told of an iteration, its KL divergence and the norm of its gradient; says whether to end.
using Callback = std::optional<nb::typed<nb::callable, bool(Size, double, double)>>;

class StateDict : public nb::dict {
  static bool is_dict(PyObject* object) { return PyDict_Check(object) != 0; }
  NB_OBJECT(StateDict, nb::dict, "acctsne.optimize.state.OptimizerState", is_dict)
  StateDict() = default;
};

template <typename Real>
class BoundOptimizer {
public:
  // From P as a matrix.
  BoundOptimizer(Input1<EdgeId> offsets, Input1<PointId> columns, Input1<Real> values,
                 Input2<Real> initial, const RepulsionOptions& options, int threads)
      : rows_(initial.shape(0)), dims_(initial.shape(1)) {
    const CsrView<Real> matrix = csr_of(offsets, columns, values, rows_);
    run_native(threads, [&](ThreadTeam& team) {
      MatrixRows<Real> P(matrix);
      make(P, initial, options, alone_, team);
    });
  }

  // From the conditional probabilities, rows sorted by column; without P as a matrix in between.
  BoundOptimizer(Input2<PointId> indices, Input2<Real> conditional, bool equal,
                 Input2<Real> initial, const RepulsionOptions& options, int threads)
      : rows_(initial.shape(0)), dims_(initial.shape(1)) {
    require(rows_ >= 1 && indices.shape(0) == rows_, "P and the layout differ in rows");
    require(static_cast<Size>(rows_) <= kMostPoints, "too many points");
    const Conditional<Real> C = conditional_of(indices, conditional, equal);
    run_native(threads, [&](ThreadTeam& team) {
      require_sorted(C, C.rows, team);
      SymmetrizedRows<Real> P(C, team);
      make(P, initial, options, alone_, team);
    });
  }

  // The same by several processes, each with its own rows of the probabilities and all of the
  // layout.
  BoundOptimizer(Input2<PointId> indices, Input2<Real> conditional, bool equal,
                 Input2<Real> initial, const RepulsionOptions& options,
                 CommunicatorObject processes, int threads)
      : rows_(initial.shape(0)), dims_(initial.shape(1)) {
    others_.emplace(std::move(processes));
    const auto points = static_cast<Size>(rows_);
    const Rows own = rows_of(others_->rank(), others_->size(), points);
    require(points >= 1 && static_cast<Size>(indices.shape(0)) == own.end - own.begin,
            "P does not have own rows");
    require(points <= kMostPoints, "too many points");
    const Conditional<Real> C = conditional_of(indices, conditional, equal);
    run_native(threads, [&](ThreadTeam& team) {
      require_sorted(C, points, team);
      ExchangedRows<Real> P(C, points, *others_, team);
      make(P, initial, options, *others_, team);
    });
  }

  bool run(const Phase& phase, const Callback& callback, const Progress& progress, int threads) {
    const Exclusive alone(owner_, Exclusive::Nested::refused);
    PythonPoll poll(progress, [this] { return optimizer_->iterations(); });
    const Observer observer = [&](const Report& report) {
      const LockTaken locked;
      bool stop = false;
      owner_.in_callback = true;
      const bool finished = poll.guarded([&] {
        stop = nb::cast<bool>(
            (*callback)(report.iteration, report.kl_divergence, report.gradient_norm));
      });
      owner_.in_callback = false;
      return stop || !finished;
    };
    bool finished = true;
    bool cancelled = true;
    run_native(threads, poll, [&](ThreadTeam& team) {
      require_level();
      finished = optimizer_->run(phase, team, callback ? observer : Observer{});
      cancelled = false;
    });
    if (cancelled) {
      // With no reason of its own: another process has one.
      PyErr_SetNone(PyExc_KeyboardInterrupt);
      throw nb::python_error();
    }
    return finished;
  }

  double kl_divergence(int threads) {
    const Exclusive alone(owner_, Exclusive::Nested::in_callback);
    double kl = 0;
    run_native(threads, [&](ThreadTeam& team) {
      require_level();
      kl = optimizer_->kl_divergence(team);
    });
    return kl;
  }

  double kl_of_one_place() const { return optimizer_->kl_of_one_place(); }
  double mean_drop() const { return optimizer_->mean_drop(); }

  double disorder(int threads) {
    const Exclusive alone(owner_, Exclusive::Nested::refused);
    double found = 0;
    run_native(threads, [&](ThreadTeam& team) {
      require_level();
      found = optimizer_->disorder(team);
    });
    return found;
  }

  std::tuple<Output<Real>, Output<Real>, double> forces(int threads) {
    const Exclusive alone(owner_, Exclusive::Nested::in_callback);
    run_native(threads, [&](ThreadTeam& team) {
      require_level();
      optimizer_->evaluate(team);
    });
    return {to_numpy(optimizer_->attractive(), {rows_, dims_}),
            to_numpy(optimizer_->repulsive(), {rows_, dims_}), optimizer_->z()};
  }

  void reset_momentum() {
    const Exclusive alone(owner_, Exclusive::Nested::refused);
    optimizer_->reset_momentum();
  }

  void widen(double spread, int threads) {
    const Exclusive alone(owner_, Exclusive::Nested::refused);
    run_native(threads, [&](ThreadTeam& team) { optimizer_->widen(spread, team); });
  }

  void hold(const std::optional<Input1<std::uint8_t>>& fixed) {
    require(!fixed || fixed->shape(0) == rows_, "fixed and the layout differ in rows");
    const Exclusive alone(owner_, Exclusive::Nested::refused);
    optimizer_->hold(fixed ? std::span(fixed->data(), rows_) : std::span<const std::uint8_t>{});
  }

  void tether(Input2<Real> targets, Input1<Real> weights) {
    require(targets.shape(0) == rows_ && targets.shape(1) == dims_ && weights.shape(0) == rows_,
            "tethers and the layout differ in shape");
    const auto sound = [](Real weight) { return weight >= 0 && std::isfinite(weight); };
    require(std::all_of(weights.data(), weights.data() + rows_, sound),
            "weights of tethers must be finite and not negative");
    const auto finite = [](Real value) { return std::isfinite(value); };
    require(std::all_of(targets.data(), targets.data() + rows_ * dims_, finite),
            "targets of tethers must be finite");
    const Exclusive alone(owner_, Exclusive::Nested::refused);
    optimizer_->tether({targets.data(), rows_ * dims_}, {weights.data(), rows_});
  }

  StateDict state() const {
    const Exclusive alone(owner_, Exclusive::Nested::allowed);
    OptimizerState<Real> state = optimizer_->state();
    const std::size_t own = own_rows();
    StateDict result;
    result["points"] = to_numpy(std::move(state.points), {own, dims_});
    result["updates"] = to_numpy(std::move(state.updates), {own, dims_});
    result["gains"] = to_numpy(std::move(state.gains), {own, dims_});
    result["mean"] = to_numpy(std::move(state.mean), {dims_});
    result["order"] = to_numpy(std::move(state.order), {own});
    const std::size_t kept_rows = state.kept.size() / dims_;
    result["kept"] = to_numpy(std::move(state.kept), {kept_rows, dims_});
    result["iterations"] = state.iterations;
    result["relabelled_at"] = state.relabelled_at;
    result["friction"] = state.friction.friction;
    result["work"] = state.friction.work;
    return result;
  }

  // What state() gave.
  void restore(const StateDict& state) {
    const Exclusive alone(owner_, Exclusive::Nested::refused);
    const auto copy = [](const auto& array) {
      return std::vector(array.data(), array.data() + array.size());
    };
    const auto of_points = [&](const char* name) {
      const auto array = entry<Input2<Real>>(state, name);
      require(array.shape(0) == own_rows() && array.shape(1) == dims_, "the state does not fit");
      return copy(array);
    };
    optimizer_->restore({
        .points = of_points("points"),
        .updates = of_points("updates"),
        .gains = of_points("gains"),
        .mean = copy(entry<Input1<Real>>(state, "mean")),
        .order = copy(entry<Input1<PointId>>(state, "order")),
        .kept = copy(entry<Input2<Real>>(state, "kept")),
        .iterations = entry<Size>(state, "iterations"),
        .relabelled_at = entry<Size>(state, "relabelled_at"),
        .friction = {.friction = entry<double>(state, "friction"),
                     .work = entry<double>(state, "work")},
    });
  }

  Output<Real> points() const {
    const Exclusive alone(owner_, Exclusive::Nested::allowed);
    return to_numpy(optimizer_->points(), {rows_, dims_});
  }
  // Finished iterations by method, those that were used.
  Dict<Size> iterations_by_method() const {
    const Exclusive alone(owner_, Exclusive::Nested::allowed);
    Dict<Size> result;
    for (int method = 0; method < kMethods; ++method) {
      const auto used = static_cast<Method>(method);
      const Size count = optimizer_->iterations_by(used);
      if (count > 0) {
        result[entry_of(used).name] = count;
      }
    }
    return result;
  }
  Size iterations() const { return optimizer_->iterations(); }
  Dict<double> restraint() const {
    const Exclusive alone(owner_, Exclusive::Nested::allowed);
    const Restraint& restraint = optimizer_->restraint();
    Dict<double> result;
    result["iterations"] = restraint.iterations;
    result["braked"] = restraint.braked;
    result["turned"] = restraint.turned;
    result["lowered_rate"] = restraint.lowered_rate;
    return result;
  }
  void forget_restraint() {
    const Exclusive alone(owner_, Exclusive::Nested::refused);
    optimizer_->forget_restraint();
  }
  Dict<double> seconds() const {
    const Exclusive alone(owner_, Exclusive::Nested::allowed);
    const StepSeconds& seconds = optimizer_->seconds();
    Dict<double> result;
    result["tree_building"] = seconds.tree_building;
    result["summarization"] = seconds.summarization;
    result["attractive"] = seconds.attractive;
    result["repulsive"] = seconds.repulsive;
    result["update"] = seconds.update;
    result["kl_divergence"] = seconds.kl_divergence;
    result["relabel"] = seconds.relabel;
    return result;
  }

  Dict<Size> bytes_sent() const {
    const Exclusive alone(owner_, Exclusive::Nested::allowed);
    const SentBytes& sent = optimizer_->sent();
    Dict<Size> result;
    result["relabel"] = sent.relabel;
    result["halo"] = sent.halo;
    result["charges"] = sent.charges;
    result["positions"] = sent.positions;
    result["sums"] = sent.sums;
    return result;
  }
  std::size_t rows() const { return rows_; }

private:
  template <typename Value>
  static Value entry(const nb::dict& state, const char* name) {
    const nb::object found = state[name]; // here, as nothing may be thrown within try_cast()
    Value value;
    if (!nb::try_cast<Value>(found, value, false)) {
      throw nb::type_error((std::string(name) + " of the state has another type").c_str());
    }
    return value;
  }

  // That this process owns.
  std::size_t own_rows() const {
    const auto all = static_cast<Size>(rows_);
    const Rows own = others_ ? rows_of(*others_, all) : Rows{0, all};
    return at(own.end - own.begin);
  }

  void make(JointRows<Real>& P, const Input2<Real>& initial, const RepulsionOptions& options,
            Communicator& processes, ThreadTeam& team) {
    level_ = kernels().level;
    optimizer_ =
        make_optimizer<Real>(P, initial.data(), static_cast<int>(dims_), options, processes, team);
  }

  // What is laid out for the vectors of one level cannot be worked on by the kernels of another.
  // Asked within a native call, in which the level stays.
  void require_level() const {
    if (level_ != kernels().level) {
      throw std::runtime_error("this embedding was made at the SIMD level " + level_ +
                               ", and the level is " + kernels().level + " now; go back to " +
                               level_ + ", or make it anew");
    }
  }

  std::size_t rows_;
  std::size_t dims_;
  std::string level_;
  mutable Owner owner_;
  OneProcess alone_;
  std::optional<PythonProcesses> others_; // if there are any
  std::unique_ptr<Optimizer<Real>> optimizer_;
};

template <typename Real>
void bind_optimizer(nb::module_& m, const char* name) {
  using Bound = BoundOptimizer<Real>;
  nb::class_<Bound>(m, name)
      .def(nb::init<Input1<EdgeId>, Input1<PointId>, Input1<Real>, Input2<Real>,
                    const RepulsionOptions&, int>(),
           "offsets"_a.noconvert(), "columns"_a.noconvert(), "values"_a.noconvert(),
           "initial"_a.noconvert(), "options"_a, "threads"_a = 1)
      .def(nb::init<Input2<PointId>, Input2<Real>, bool, Input2<Real>, const RepulsionOptions&,
                    int>(),
           "indices"_a.noconvert(), "conditional"_a.noconvert(), "equal"_a, "initial"_a.noconvert(),
           "options"_a, "threads"_a = 1)
      .def(nb::init<Input2<PointId>, Input2<Real>, bool, Input2<Real>, const RepulsionOptions&,
                    CommunicatorObject, int>(),
           "indices"_a.noconvert(), "conditional"_a.noconvert(), "equal"_a, "initial"_a.noconvert(),
           "options"_a, "processes"_a, "threads"_a)
      .def("run", &Bound::run, "phase"_a, "callback"_a.none(), "progress"_a.none(), "threads"_a)
      .def("kl_divergence", &Bound::kl_divergence, "threads"_a)
      .def_prop_ro("kl_of_one_place", &Bound::kl_of_one_place)
      .def_prop_ro("mean_drop", &Bound::mean_drop)
      .def("disorder", &Bound::disorder, "threads"_a)
      .def("forces", &Bound::forces, "threads"_a)
      .def("reset_momentum", &Bound::reset_momentum)
      .def("widen", &Bound::widen, "spread"_a, "threads"_a)
      .def("hold", &Bound::hold, "fixed"_a.noconvert().none())
      .def("tether", &Bound::tether, "targets"_a.noconvert(), "weights"_a.noconvert())
      .def("state", &Bound::state)
      .def("restore", &Bound::restore, "state"_a)
      .def_prop_ro("points", &Bound::points, nb::rv_policy::automatic) // which owns its numbers
      .def_prop_ro("iterations_by_method", &Bound::iterations_by_method)
      .def_prop_ro("iterations", &Bound::iterations)
      .def_prop_ro("seconds", &Bound::seconds)
      .def_prop_ro("bytes_sent", &Bound::bytes_sent)
      .def_prop_ro("rows", &Bound::rows)
      .def_prop_ro("restraint", &Bound::restraint)
      .def("forget_restraint", &Bound::forget_restraint);
}

} // namespace

void bind_optimizers(nb::module_& m) {
  bind_optimizer<float>(m, "Optimizer32");
  bind_optimizer<double>(m, "Optimizer64");
}

} // namespace acctsne
