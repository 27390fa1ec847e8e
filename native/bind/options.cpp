// What calls are told, as Python types: the output kernel, the repulsion, a phase of the descent.
#include "bind/native_call.hpp"
#include "forces/repulsive.hpp"
#include "optimize/phase.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <cmath>

namespace acctsne {
namespace {

constexpr const char* kRuleNames[] = {"delta_bar_delta", "heavy_ball"};

Method method_named(const std::string& name) {
  if (name == kAutomaticName) {
    return Method::automatic;
  }
  const auto* found = std::find_if(std::begin(kMethodTable), std::end(kMethodTable),
                                   [&](const MethodEntry& entry) { return entry.name == name; });
  require(found != std::end(kMethodTable), "unknown method");
  return static_cast<Method>(found - std::begin(kMethodTable));
}

// How many dimensions each serves at most.
Dict<int> methods() {
  Dict<int> most_dims;
  most_dims[kAutomaticName] = 0;
  for (const MethodEntry& entry : kMethodTable) {
    most_dims[entry.name] = entry.most_dims;
  }
  return most_dims;
}

StepRule rule_named(const std::string& name) {
  const auto* found = std::find(std::begin(kRuleNames), std::end(kRuleNames), name);
  require(found != std::end(kRuleNames), "unknown rule");
  return static_cast<StepRule>(found - std::begin(kRuleNames));
}

} // namespace

void bind_options(nb::module_& m) {
  m.def("methods", &methods);

  nb::class_<OutputKernel>(m, "OutputKernel")
      .def(
          "__init__",
          [](OutputKernel* self, double exponent, double scale) {
            require(exponent > 0 && scale > 0 && std::isfinite(exponent) && std::isfinite(scale),
                    "exponent and scale must be positive and finite");
            new (self) OutputKernel{exponent, scale};
          },
          "exponent"_a, "scale"_a)
      .def_ro("exponent", &OutputKernel::exponent)
      .def_ro("scale", &OutputKernel::scale)
      .def("__repr__", [](const OutputKernel& self) {
        return nb::str("OutputKernel(exponent={}, scale={})").format(self.exponent, self.scale);
      });

  nb::class_<RepulsionOptions>(m, "RepulsionOptions")
      .def(
          "__init__",
          [](RepulsionOptions* self, const std::string& method, double angle, double force_error,
             const OutputKernel& output_kernel) {
            require(std::isfinite(angle) && std::isfinite(force_error),
                    "angle and force_error must be finite");
            new (self) RepulsionOptions{method_named(method), angle, force_error, output_kernel};
          },
          "method"_a, "angle"_a, "force_error"_a, "output_kernel"_a)
      .def_ro("output_kernel", &RepulsionOptions::output_kernel);

  nb::class_<Phase>(m, "Phase")
      .def(
          "__init__",
          [](Phase* self, Size iterations, Size done, std::pair<double, double> exaggeration,
             std::pair<double, double> learning_rate, const std::string& rule,
             std::optional<double> momentum, double max_step, std::vector<Size> report_every,
             Size left) {
            constexpr Size kMost = Size{1} << 61; // so that their sum is a number too
            for (const Size count : {iterations, done, left}) {
              require(count >= 0 && count <= kMost, "a run has a number of iterations");
            }
            require(std::all_of(report_every.begin(), report_every.end(),
                                [](Size n) { return n >= 1; }),
                    "report_every must be positive");
            new (self) Phase{
                .iterations = iterations,
                .done = done,
                .left = left,
                .exaggeration = {exaggeration.first, exaggeration.second},
                .learning_rate = {learning_rate.first, learning_rate.second},
                .rule = rule_named(rule),
                .momentum = momentum,
                .max_step = max_step,
                .report_every = std::move(report_every),
            };
          },
          "iterations"_a, "done"_a, "exaggeration"_a, "learning_rate"_a, "rule"_a,
          "momentum"_a.none(), "max_step"_a, "report_every"_a = std::vector<Size>{},
          "left"_a = Size{0});
}

} // namespace acctsne
