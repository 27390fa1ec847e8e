// The gradient descent: its gradient, its rule, its stops, and that neither threads nor a
// cancellation change the layout.
#include "optimize/loop.hpp"
#include "optimize/update.hpp"

#include "check.hpp"
#include "data.hpp"
#include "optimizer.hpp"
#include "plain_kl.hpp"

#include <chrono>
#include <iterator>
#include <stdexcept>
#include <thread>

using namespace acctsne;

namespace {

constexpr Method kAllMethods[] = {Method::exact, Method::barnes_hut, Method::fft,
                                  Method::automatic};

constexpr int kSomeDims[] = {1, 2, 3, 4, 5, 10};

std::vector<Method> methods_in(int dims) {
  std::vector<Method> methods;
  std::ranges::copy_if(kAllMethods, std::back_inserter(methods), [dims](Method method) {
    return method == Method::automatic || entry_of(method).serves(dims);
  });
  return methods;
}

const char* name_of(Method method) {
  return method == Method::automatic ? kAutomaticName : entry_of(method).name;
}

// scikit-learn's in 3-D is the last.
constexpr OutputKernel kOutputKernels[] = {{1, 1}, {0.5, 0.5}, {0.8, 0.8}, {10, 10}, {1.5, 2}};

// dKL/dy of exaggerated P, straight from the formula 4 exponent / scale sum_j (p_ij - q_ij) (y_i -
// y_j) / (1 + d^2 / scale).
std::vector<double> plain_gradient(const Csr<double>& P, const std::vector<double>& points,
                                   int dims, double exaggeration,
                                   const OutputKernel& output_kernel) {
  const Size n = P.view().rows();
  std::vector<double> p(at(n * n), 0.0);
  for (Size i = 0; i < n; ++i) {
    for (EdgeId e = P.offsets[at(i)]; e < P.offsets[at(i + 1)]; ++e) {
      p[at(i * n + P.columns[at(e)])] = exaggeration * P.values[at(e)];
    }
  }
  std::vector<double> w(at(n * n), 0.0);
  double z = 0;
  for (Size i = 0; i < n; ++i) {
    for (Size j = 0; j < n; ++j) {
      w[at(i * n + j)] = i == j ? 0.0 : falloff(points, i, j, dims, output_kernel.scale);
      z += std::pow(w[at(i * n + j)], output_kernel.exponent);
    }
  }
  std::vector<double> gradient(points.size(), 0.0);
  for (Size i = 0; i < n; ++i) {
    for (Size j = 0; j < n; ++j) {
      const double q = std::pow(w[at(i * n + j)], output_kernel.exponent) / z;
      const double factor = 4 * output_kernel.exponent / output_kernel.scale *
                            (p[at(i * n + j)] - q) * w[at(i * n + j)];
      for (int axis = 0; axis < dims; ++axis) {
        gradient[at(i * dims + axis)] +=
            factor * (points[at(i * dims + axis)] - points[at(j * dims + axis)]);
      }
    }
  }
  return gradient;
}

// Normal positions in opposite pairs, so that their mean is exactly 0.
template <typename Real>
std::vector<Real> start_positions(Size count, int dims, double scale) {
  std::mt19937_64 random(41);
  std::normal_distribution<double> normal;
  std::vector<Real> points(at(count * dims));
  for (Size i = 0; i + 1 < count; i += 2) {
    for (int axis = 0; axis < dims; ++axis) {
      points[at(i * dims + axis)] = static_cast<Real>(scale * normal(random));
      points[at((i + 1) * dims + axis)] = -points[at(i * dims + axis)];
    }
  }
  return points;
}

template <typename Real>
std::vector<double> mean_of(const std::vector<Real>& points, int dims) {
  std::vector<double> mean(at(dims), 0.0);
  for (std::size_t c = 0; c < points.size(); ++c) {
    mean[c % at(dims)] +=
        static_cast<double>(points[c]) * dims / static_cast<double>(points.size());
  }
  return mean;
}

Phase make_phase(Size iterations, double exaggeration = 1) {
  Phase phase;
  phase.iterations = iterations;
  phase.exaggeration = exaggeration;
  return phase;
}

// A short fit with both usual phases.
template <typename Real>
std::vector<Real> fit(const Csr<Real>& P, int dims, Method method, Size iterations, int threads) {
  const std::vector<Real> initial = start_positions<Real>(P.view().rows(), dims, 1e-2);
  const auto optimizer = make_optimizer(P.view(), initial.data(), dims, {method, 0.5});
  ThreadTeam team(threads);
  CHECK(optimizer->run(make_phase(iterations / 2, 12), team, {}));
  CHECK(optimizer->run(make_phase(iterations - iterations / 2), team, {}));
  CHECK_EQUAL(optimizer->iterations(), iterations);
  return optimizer->points();
}

} // namespace

TEST(the_gradient_is_that_of_the_kl_divergence) {
  constexpr Size kCount = 60;
  const Csr<double> P = make_joint<double>(kCount, 8);
  const auto check_output_kernel = [&](const OutputKernel& output_kernel) {
    for (const int dims : kSomeDims) {
      const check::Scope scope(std::to_string(dims) + "-D, exponent " +
                               std::to_string(output_kernel.exponent));
      std::vector<double> points = start_positions<double>(kCount, dims, 1.5);
      const auto optimizer =
          make_optimizer(P.view(), points.data(), dims, {Method::exact, 0.5, 0.02, output_kernel});
      ThreadTeam team(2);
      CHECK_NEAR(optimizer->kl_divergence(team), plain_kl(P, points, dims, output_kernel), 1e-12);
      CHECK(optimizer->z() > 0);

      std::vector<double> expected(points.size());
      double largest = 0;
      for (std::size_t c = 0; c < points.size(); ++c) {
        constexpr double kStep = 1e-5;
        const double before = points[c];
        points[c] = before + kStep;
        const double above = plain_kl(P, points, dims, output_kernel);
        points[c] = before - kStep;
        const double below = plain_kl(P, points, dims, output_kernel);
        points[c] = before;
        expected[c] = (above - below) / (2 * kStep);
        largest = std::max(largest, std::abs(expected[c]));
      }
      for (std::size_t c = 0; c < points.size(); ++c) {
        const double gradient =
            4 * (optimizer->attractive()[c] - optimizer->repulsive()[c] / optimizer->z());
        CHECK_NEAR(gradient, expected[c], 1e-6 * largest);
      }
    }
  };
  for_levels([&] {
    std::for_each(std::begin(kOutputKernels), std::end(kOutputKernels), check_output_kernel);
  });
}

TEST(disorder_is_the_work_of_the_attraction) {
  constexpr Size kCount = 3000;
  const Csr<double> P = make_joint<double>(kCount, 8);
  for (const OutputKernel& output_kernel : kOutputKernels) {
    for (const int dims : kSomeDims) {
      std::vector<double> points = start_positions<double>(kCount, dims, 1.5);
      for (std::size_t c = 0; c < points.size(); c += at(dims)) {
        points[c] += 3; // its mean is elsewhere
      }
      const auto optimizer =
          make_optimizer(P.view(), points.data(), dims, {Method::exact, 0.5, 0.02, output_kernel});
      for (const int threads : {1, 3}) {
        ThreadTeam team(threads);
        const double found = optimizer->disorder(team);
        const std::vector<double> mean = mean_of(points, dims);
        const std::vector<double> attractive = optimizer->attractive();
        double work = 0;
        double spread = 0;
        for (std::size_t c = 0; c < points.size(); ++c) {
          const double from_mean = points[c] - mean[c % at(dims)];
          work += attractive[c] * from_mean;
          spread += from_mean * from_mean / kCount;
        }
        CHECK_NEAR(found, work / spread, 1e-9);
      }
    }
  }
  const std::vector<double> one_place(at(2 * kCount), 1.0);
  ThreadTeam team(2);
  CHECK_EQUAL(make_optimizer(P.view(), one_place.data(), 2, {})->disorder(team), 1.0);
}

TEST(a_narrow_layout_is_widened) {
  constexpr Size kCount = 600;
  for_reals([]<typename Real>() {
    const Csr<Real> P = make_joint<Real>(kCount, 8);
    for (const OutputKernel& output_kernel : kOutputKernels) {
      for (const int dims : kSomeDims) {
        std::vector<Real> points = start_positions<Real>(kCount, dims, 1e-2);
        for (std::size_t c = 0; c < points.size(); c += at(dims)) {
          points[c] += Real(0.5); // its mean is elsewhere
        }
        const RepulsionOptions options = {Method::automatic, 0.5, 0.02, output_kernel};
        // In units of the output kernel.
        const auto spread = [&](const std::vector<Real>& of) {
          const std::vector<double> mean = mean_of(of, dims);
          double sum = 0;
          for (std::size_t c = 0; c < of.size(); ++c) {
            sum += std::pow(static_cast<double>(of[c]) - mean[c % at(dims)], 2) / kCount;
          }
          return std::sqrt(sum) / output_kernel.unit();
        };
        for (const int threads : {1, 3}) {
          ThreadTeam team(threads);
          const auto widened = make_optimizer(P.view(), points.data(), dims, options);
          widened->evaluate(team); // what it keeps is of other places
          widened->widen(2.5, team);
          const std::vector<Real> now = widened->points();
          CHECK_NEAR(spread(now), 2.5, 1e-5);
          const double factor = 2.5 / spread(points);
          for (std::size_t c = 0; c < points.size(); ++c) {
            CHECK_NEAR(static_cast<double>(now[c]), factor * static_cast<double>(points[c]), 1e-4);
          }
          // It goes on as one that starts there, up to what the numbering rounds.
          const auto started = make_optimizer(P.view(), now.data(), dims, options);
          for (Optimizer<Real>* optimizer : {widened.get(), started.get()}) {
            optimizer->run(make_phase(3), team, {});
          }
          const std::vector<Real> a = widened->points();
          const std::vector<Real> b = started->points();
          for (std::size_t c = 0; c < a.size(); ++c) {
            CHECK_NEAR(static_cast<double>(a[c]), static_cast<double>(b[c]), 1e-2);
          }
          // What is wider stays, and so does what has points held.
          widened->widen(1e-3, team);
          CHECK(same_bytes(widened->points(), a));
          std::vector<std::uint8_t> held(at(kCount), 0);
          held[7] = 1;
          widened->hold(held);
          widened->widen(1e3, team);
          CHECK(same_bytes(widened->points(), a));
        }
      }
    }
  });
}

TEST(a_run_follows_the_rule) {
  // Twenty iterations written out from the definitions, with exaggeration that fades, a clipped
  // step, a mean that moves, and momentum that is given or adapts itself.
  constexpr Size kCount = 40;
  constexpr int kIterations = 20;
  const Csr<double> P = make_joint<double>(kCount, 6);
  std::vector<double> preconditioner(kCount);
  for (Size i = 0; i < kCount; ++i) {
    double sum = 0;
    for (EdgeId e = P.offsets[at(i)]; e < P.offsets[at(i + 1)]; ++e) {
      sum += P.values[at(e)];
    }
    preconditioner[at(i)] = 1 / std::max(kCount * sum, 0.25);
  }
  struct Case {
    StepRule rule;
    std::optional<double> momentum;
    double learning_rate;
  };
  Size clipped = 0;
  Size turned = 0;
  Size braked = 0;
  const auto check_rule = [&](int dims, const OutputKernel& output_kernel, const Case& given) {
    const check::Scope scope(std::to_string(dims) + "-D, exponent " +
                             std::to_string(output_kernel.exponent));
    const bool heavy = given.rule == StepRule::heavy_ball;
    std::vector<double> points = make_cloud<double>(Cloud::uniform, kCount, dims);
    for (double& value : points) {
      value = 0.1 * value + 3;
    }
    Phase phase = make_phase(kIterations);
    phase.rule = given.rule;
    phase.momentum = given.momentum;
    phase.exaggeration = {4, 2};
    phase.learning_rate = given.learning_rate;
    phase.max_step = 0.5;
    phase.report_every = std::vector<Size>{kIterations};
    const auto optimizer =
        make_optimizer(P.view(), points.data(), dims, {Method::exact, 0.5, 0.02, output_kernel});
    ThreadTeam team(2);
    Report last{};
    optimizer->run(phase, team, [&last](const Report& report) {
      last = report;
      return false;
    });

    std::vector<double> updates(points.size(), 0.0);
    std::vector<double> gains(points.size(), 1.0);
    double norm = 0;
    double friction = 0.05;
    double work = 0;
    for (int iteration = 0; iteration < kIterations; ++iteration) {
      const double exaggeration = 4 * std::pow(0.5, iteration / double(kIterations));
      const double rate =
          heavy ? std::min(given.learning_rate, kCount / exaggeration) : given.learning_rate;
      const double momentum = given.momentum.value_or(1 - friction);
      const std::vector<double> gradient =
          plain_gradient(P, points, dims, exaggeration, output_kernel);
      const std::vector<double> before = updates;
      double squared_norm = 0;
      double last_work = 0;
      for (std::size_t c = 0; c < points.size(); ++c) {
        last_work += gradient[c] * updates[c];
        double scaled = gains[c] * preconditioner[c / at(dims)] * gradient[c];
        if (!heavy) {
          gains[c] = std::max(updates[c] * gradient[c] < 0 ? gains[c] + 0.2 : gains[c] * 0.8, 0.01);
          scaled = gains[c] * gradient[c];
        }
        squared_norm += heavy ? gradient[c] * gradient[c] : scaled * scaled;
        updates[c] = momentum * updates[c] - rate * scaled;
      }
      norm = std::sqrt(squared_norm);
      const std::vector<double> mean = mean_of(points, dims);
      double next_work = 0;
      for (Size i = 0; i < kCount; ++i) {
        double length = 0;
        double turn = 0;
        double growth = 0;
        for (int axis = 0; axis < dims; ++axis) {
          const std::size_t c = at(i * dims + axis);
          length = std::hypot(length, updates[c]);
          turn += updates[c] * before[c];
          growth += updates[c] * updates[c] - before[c] * before[c];
        }
        clipped += length > 0.5 ? 1 : 0;
        const bool swings = heavy && turn < 0 && growth > 0;
        turned += swings ? 1 : 0;
        for (int axis = 0; axis < dims; ++axis) {
          const std::size_t c = at(i * dims + axis);
          if (heavy) {
            gains[c] = swings ? 0.7 * gains[c] : std::min(1.02 * gains[c], 1.0);
          }
          updates[c] *= length > 0.5 ? 0.5 / length : 1;
          next_work += gradient[c] * updates[c];
          points[c] += updates[c] - mean[at(axis)];
        }
      }
      const bool rose = work + last_work > 0;
      braked += rose && !given.momentum ? 1 : 0;
      friction = rose ? std::min(0.1, 1.5 * friction) : std::max(0.01, 0.96 * friction);
      work = next_work;
    }
    for (std::size_t c = 0; c < points.size(); ++c) {
      CHECK_NEAR(optimizer->points()[c], points[c], 1e-8);
    }
    CHECK_EQUAL(last.iteration, kIterations - 1);
    CHECK_NEAR(last.kl_divergence, plain_kl(P, points, dims, output_kernel), 1e-8);
    CHECK_NEAR(last.gradient_norm, norm, 1e-8);
    const double most = kCount / phase.exaggeration.at((kIterations - 1.0) / kIterations);
    CHECK_EQUAL(optimizer->restraint().lowered_rate,
                heavy && given.learning_rate > most ? most : 0);
  };
  for (const int dims : kSomeDims) {
    for (const OutputKernel& output_kernel : kOutputKernels) {
      check_rule(dims, output_kernel, {StepRule::delta_bar_delta, 0.5, 30});
      check_rule(dims, output_kernel, {StepRule::heavy_ball, 0.5, 8});
      check_rule(dims, output_kernel, {StepRule::heavy_ball, std::nullopt, 1e6});
    }
  }
  CHECK(clipped > 0);
  CHECK(turned > 0);
  CHECK(braked > 0);
}

TEST(a_ramp_goes_on_where_it_was_interrupted) {
  const Csr<double> P = make_joint<double>(100, 6);
  const std::vector<double> initial = start_positions<double>(100, 2, 1);
  const auto whole = make_optimizer(P.view(), initial.data(), 2, {Method::exact, 0.5});
  const auto parts = make_optimizer(P.view(), initial.data(), 2, {Method::exact, 0.5});
  ThreadTeam team(2);
  Phase phase = make_phase(30);
  phase.exaggeration = {12, 1};
  phase.learning_rate = {100.0 / 12, 100};
  whole->run(phase, team, {});
  for (const Size end : {7, 8, 30}) {
    phase.done = parts->iterations();
    phase.iterations = 30 - phase.done;
    phase.report_every = std::vector<Size>{end};
    parts->run(phase, team, [](const Report&) { return true; });
    CHECK_EQUAL(parts->iterations(), end);
  }
  CHECK(same_bytes(parts->points(), whole->points()));
}

TEST(the_work_of_the_steps_is_the_change_of_the_objective) {
  // What friction goes by, against the KL divergence itself.
  const Csr<double> P = make_joint<double>(300, 10);
  const std::vector<double> initial = start_positions<double>(300, 2, 1);
  const auto optimizer = make_optimizer(P.view(), initial.data(), 2, {Method::exact, 0.5});
  ThreadTeam team(2);
  Phase phase = make_phase(1);
  phase.learning_rate = 3;
  for (int i = 0; i < 50; ++i) {
    const double before = optimizer->kl_divergence(team);
    optimizer->run(phase, team, {}); // its work is known after the next gradient
    const double kl = optimizer->kl_divergence(team);
    const std::vector<double> step = optimizer->state().updates;
    double last_work = 0;
    for (std::size_t c = 0; c < step.size(); ++c) {
      last_work +=
          step[c] * 4 * (optimizer->attractive()[c] - optimizer->repulsive()[c] / optimizer->z());
    }
    const double first_work = optimizer->state().friction.work;
    CHECK_NEAR((first_work + last_work) / 2, kl - before, 0.02 * std::abs(kl - before) + 1e-9);
  }
}

TEST(a_descent_that_is_too_fast_is_restrained) {
  // Pairs that see hardly anyone else, as a small perplexity makes them: half of the attraction's
  // modes are as stiff as they can be, and the heavy ball's full rate is too much for them.
  constexpr Size kCount = 400;
  Csr<double> P;
  P.offsets.push_back(0);
  for (Size i = 0; i < kCount; ++i) {
    const Size partner = i ^ 1;
    const Size next = (i + 2) % kCount;
    const Size previous = (i + kCount - 2) % kCount;
    std::vector<std::pair<Size, double>> row = {{partner, 0.98}, {next, 0.01}, {previous, 0.01}};
    std::sort(row.begin(), row.end());
    for (const auto& [column, value] : row) {
      P.columns.push_back(static_cast<PointId>(column));
      P.values.push_back(value / kCount);
    }
    P.offsets.push_back(static_cast<EdgeId>(P.columns.size()));
  }
  const std::vector<double> initial = start_positions<double>(kCount, 2, 1e-2);
  const auto optimizer = make_optimizer(P.view(), initial.data(), 2, {Method::exact, 0.5});
  ThreadTeam team(2);
  const double before = optimizer->kl_divergence(team);
  Phase phase = make_phase(60);
  phase.exaggeration = {12, 1};
  phase.learning_rate = 1e12; // lowered
  optimizer->run(phase, team, {});
  phase = make_phase(300);
  phase.learning_rate = 1e12;
  optimizer->run(phase, team, {});
  CHECK(all_finite(std::span<const double>(optimizer->points())));
  // A perfect map has them at a distance of pairs; without restraint KL ends above where it began.
  CHECK(optimizer->kl_divergence(team) < 0.3 * before);
  CHECK(optimizer->restraint().turned > kCount);
  CHECK_EQUAL(optimizer->restraint().lowered_rate, static_cast<double>(kCount));
  // What was forgotten does not come back with a run that gives no cause.
  optimizer->forget_restraint();
  optimizer->run(make_phase(1), team, {});
  CHECK_EQUAL(optimizer->restraint().lowered_rate, 0.0);
  CHECK_EQUAL(optimizer->restraint().iterations, 1);
  CHECK(optimizer->restraint().turned <= kCount);
}

TEST(kl_falls_over_a_run) {
  for_reals([]<typename Real>() {
    constexpr Size kCount = 600;
    const Csr<Real> P = make_joint<Real>(kCount, 10);
    for (const int dims : kSomeDims) {
      for (const Method method : methods_in(dims)) {
        const check::Scope scope(std::to_string(dims) + "-D, " + name_of(method));
        const std::vector<Real> initial = start_positions<Real>(kCount, dims, 1e-2);
        const auto optimizer = make_optimizer(P.view(), initial.data(), dims, {method, 0.5});
        ThreadTeam team(2);
        std::vector<double> seen = {optimizer->kl_divergence(team)};
        optimizer->run(make_phase(60, 12), team, {});
        Phase phase = make_phase(120);
        phase.report_every = std::vector<Size>{60};
        optimizer->run(phase, team, [&](const Report& report) {
          seen.push_back(report.kl_divergence);
          return false;
        });
        seen.push_back(optimizer->kl_divergence(team));
        CHECK_EQUAL(seen.size(), 4u);
        CHECK(seen.back() < 0.8 * seen.front());
        CHECK(seen[1] < seen[0]);
        CHECK(seen[2] < seen[1]);
        CHECK_EQUAL(seen[3], seen[2]); // the last report is of the final positions
        const std::vector<Real> points = optimizer->points();
        const std::vector<double> end(points.begin(), points.end());
        const double tolerance =
            method == Method::exact ? (sizeof(Real) == 4 ? 1e-5 : 1e-11) : 0.02;
        CHECK_NEAR(seen.back(), plain_kl(P, end, dims), tolerance);
      }
    }
  });
}

TEST(threads_do_not_change_the_layout) {
  for_levels([] {
    for_reals([]<typename Real>() {
      const Csr<Real> P = make_joint<Real>(600, 10);
      for (const int dims : kSomeDims) {
        for (const Method method : methods_in(dims)) {
          const check::Scope scope(std::to_string(dims) + "-D, " + name_of(method));
          const std::vector<Real> expected = fit(P, dims, method, 20, 1);
          CHECK(all_finite(std::span<const Real>(expected)));
          for (const int threads : kThreadCounts) { // 1 again: two runs are equal
            CHECK(same_bytes(fit(P, dims, method, 20, threads), expected));
          }
        }
      }
    });
  });
}

TEST(threads_do_not_change_a_layout_of_several_chunks) {
  const Csr<float> P = make_joint<float>(9000, 10);
  const std::vector<float> expected = fit(P, 2, Method::barnes_hut, 10, 1);
  for (const int threads : kThreadCounts) {
    CHECK(same_bytes(fit(P, 2, Method::barnes_hut, 10, threads), expected));
  }
}

TEST(a_cancelled_run_keeps_the_last_finished_iteration) {
  for_reals([]<typename Real>() {
    const Csr<Real> P = make_joint<Real>(1000, 10);
    for (const Method method : kAllMethods) {
      const check::Scope scope(name_of(method));
      const std::vector<Real> initial = start_positions<Real>(1000, 2, 1e-2);
      const auto cancelled = make_optimizer(P.view(), initial.data(), 2, {method, 0.5});
      {
        int asked = 0;
        ThreadTeam team(3, [&] { return ++asked == 2; });
        CHECK(check::throws<Cancelled>([&] { cancelled->run(make_phase(1'000'000), team, {}); }));
      }
      CHECK(cancelled->iterations() > 0 && cancelled->iterations() < 1'000'000);
      CHECK(all_finite(std::span<const Real>(cancelled->points())));

      const auto whole = make_optimizer(P.view(), initial.data(), 2, {method, 0.5});
      ThreadTeam team(2);
      whole->run(make_phase(cancelled->iterations()), team, {});
      CHECK(same_bytes(whole->points(), cancelled->points()));

      // And it can go on from there.
      whole->run(make_phase(5), team, {});
      cancelled->run(make_phase(5), team, {});
      CHECK(same_bytes(whole->points(), cancelled->points()));
    }
  });
}

TEST(an_update_is_never_interrupted) {
  constexpr Size kCount = 9000;
  Layout<double> layout(2);
  const std::vector<double> initial = start_positions<double>(kCount, 2, 1);
  start_layout(layout, initial.data(), kCount);
  Forces<double> forces{std::vector<double>(initial.size(), 1.0),
                        std::vector<double>(initial.size(), 0.0)};
  UpdateParameters<double> parameters{};
  parameters.attraction_scale = 4;
  parameters.learning_rate = 1;
  parameters.max_step = 100;
  parameters.rule = StepRule::delta_bar_delta;
  ThreadTeam team(2, [] { return true; });
  std::this_thread::sleep_for(std::chrono::milliseconds(60)); // a poll is due, and would cancel
  RowSums sums;
  move_points(layout, {0, kCount}, parameters, forces, sums, team);
  for (std::size_t c = 0; c < initial.size(); ++c) {
    CHECK_NEAR(layout.points[c], initial[c] - 4 * 0.8, 1e-12); // a gain starts at 1 and decays once
  }
}

TEST(the_observer_sees_reports_and_can_stop) {
  const Csr<double> P = make_joint<double>(100, 6);
  const std::vector<double> initial = start_positions<double>(100, 2, 1);
  const auto optimizer = make_optimizer(P.view(), initial.data(), 2, {Method::exact, 0.5});
  ThreadTeam team(2);
  Phase phase = make_phase(100);
  phase.report_every = std::vector<Size>{7};
  std::vector<Report> reports;
  const bool finished = optimizer->run(phase, team, [&](const Report& report) {
    reports.push_back(report);
    return reports.size() == 2;
  });
  CHECK(!finished);
  CHECK_EQUAL(optimizer->iterations(), 14);
  CHECK_EQUAL(reports.size(), 2u);
  CHECK_EQUAL(reports[0].iteration, 6);
  CHECK_EQUAL(reports[1].iteration, 13);
  CHECK(reports[0].kl_divergence > 0 && reports[0].gradient_norm > 0);

  // Iterations are counted on in the next phase.
  phase.iterations = 7;
  CHECK(optimizer->run(phase, team, [&](const Report& report) {
    reports.push_back(report);
    return false;
  }));
  CHECK_EQUAL(reports.size(), 3u);
  CHECK_EQUAL(reports[2].iteration, 20);
}

TEST(an_exception_of_the_observer_reaches_the_caller) {
  const Csr<double> P = make_joint<double>(100, 6);
  const std::vector<double> initial = start_positions<double>(100, 2, 1);
  const auto optimizer = make_optimizer(P.view(), initial.data(), 2, {Method::exact, 0.5});
  ThreadTeam team(2);
  Phase phase = make_phase(100);
  phase.report_every = std::vector<Size>{10};
  CHECK(check::throws<std::runtime_error>([&] {
    optimizer->run(phase, team, [](const Report&) -> bool { throw std::runtime_error("no more"); });
  }));
  CHECK_EQUAL(optimizer->iterations(), 10);
}

TEST(reports_come_at_multiples_of_each_interval) {
  const Csr<double> P = make_joint<double>(100, 6);
  const std::vector<double> initial = start_positions<double>(100, 2, 1);
  const auto optimizer = make_optimizer(P.view(), initial.data(), 2, {Method::exact, 0.5});
  ThreadTeam team(2);
  std::vector<Size> seen;
  const auto observer = [&](const Report& report) {
    seen.push_back(report.iteration + 1);
    return false;
  };
  Phase phase = make_phase(20);
  CHECK(optimizer->run(phase, team, observer));
  CHECK(seen.empty());
  phase.report_every = std::vector<Size>{6, 4};
  CHECK(optimizer->run(phase, team, observer));
  CHECK(seen == (std::vector<Size>{24, 28, 30, 32, 36, 40}));
  CHECK(optimizer->run(make_phase(0), team, observer));
  CHECK_EQUAL(optimizer->iterations(), 40);
}

TEST(reset_momentum_forgets_momentum_and_gains) {
  for_reals([]<typename Real>() {
    const Csr<Real> P = make_joint<Real>(500, 10);
    for (const int dims : kSomeDims) {
      for (const Method method : methods_in(dims)) {
        const std::vector<Real> initial = start_positions<Real>(500, dims, 1e-1);
        ThreadTeam team(2);
        const auto rested = make_optimizer(P.view(), initial.data(), dims, {method, 0.5});
        const auto restless = make_optimizer(P.view(), initial.data(), dims, {method, 0.5});
        rested->run(make_phase(10), team, {});
        restless->run(make_phase(10), team, {});
        const std::vector<Real> halfway = rested->points();
        rested->reset_momentum();
        CHECK(same_bytes(rested->points(), halfway));
        const auto fresh = make_optimizer(P.view(), halfway.data(), dims, {method, 0.5});
        for (Optimizer<Real>* optimizer : {rested.get(), restless.get(), fresh.get()}) {
          optimizer->run(make_phase(10), team, {});
        }
        // The fresh one numbers its points differently, so sums round differently.
        const auto distance = [&](const auto& other) {
          const std::vector<Real> a = rested->points();
          const std::vector<Real> b = other->points();
          double most = 0;
          for (std::size_t c = 0; c < a.size(); ++c) {
            most = std::max(most, std::abs(static_cast<double>(a[c]) - static_cast<double>(b[c])));
          }
          return most;
        };
        const double tolerance = method == Method::exact && sizeof(Real) == 8 ? 1e-9 : 0.02;
        CHECK_NEAR(distance(fresh), 0, tolerance);
        CHECK(distance(restless) > 5 * distance(fresh));
      }
    }
  });
}

// At every iteration before and after a relabelling: what the repulsion keeps is of any age.
TEST(a_restored_state_goes_on_to_the_same_bits) {
  for_reals([]<typename Real>() {
    const Csr<Real> P = make_joint<Real>(400, 10);
    for (const int dims : kSomeDims) {
      for (const Method method : methods_in(dims)) {
        const check::Scope scope(std::to_string(dims) + "-D, " + name_of(method));
        const std::vector<Real> initial = start_positions<Real>(400, dims, 10);
        const auto make = [&] { return make_optimizer(P.view(), initial.data(), dims, {method}); };
        ThreadTeam team(2);
        const auto whole = make();
        whole->run(make_phase(60), team, {});
        const auto stepped = make();
        stepped->run(make_phase(40), team, {});
        Size with_kept = 0;
        for (Size i = 40; i < 60; ++i) {
          const auto other = make();
          other->restore(stepped->state());
          if (i % 3 == 0) {
            stepped->evaluate(team); // as a report does
          }
          const auto restored = make();
          restored->restore(stepped->state());
          with_kept += stepped->state().kept.empty() ? 0 : 1;
          for (Optimizer<Real>* optimizer : {stepped.get(), restored.get(), other.get()}) {
            optimizer->run(make_phase(1), team, {});
            CHECK(same_bytes(optimizer->points(), stepped->points()));
          }
          CHECK(same_bytes(restored->state().kept, stepped->state().kept));
        }
        CHECK(same_bytes(stepped->points(), whole->points()));
        CHECK(with_kept > 0 || method != Method::barnes_hut);
      }
    }
  });
}

TEST(a_state_that_is_none_is_refused) {
  for_reals([]<typename Real>() {
    constexpr PointId kRows = 20;
    const Csr<Real> P = make_joint<Real>(kRows, 3);
    const std::vector<Real> initial = make_cloud<Real>(Cloud::uniform, kRows, 2);
    const auto optimizer = make_optimizer(P.view(), initial.data(), 2, {});
    ThreadTeam team(1);
    Phase phase;
    phase.iterations = 3;
    optimizer->run(phase, team, {});
    const OptimizerState<Real> good = optimizer->state();
    const auto is_refused = [&](auto&& damage) {
      OptimizerState<Real> state = good;
      damage(state);
      if (!check::throws<std::invalid_argument>([&] { optimizer->restore(state); })) {
        return false;
      }
      CHECK(same_bytes(optimizer->state().points, good.points));
      CHECK_EQUAL(optimizer->iterations(), Size{3});
      return true;
    };
    constexpr Real kNaN = std::numeric_limits<Real>::quiet_NaN();
    CHECK(!is_refused([](auto&) {}));
    for (const auto member : {&OptimizerState<Real>::points, &OptimizerState<Real>::updates,
                              &OptimizerState<Real>::gains, &OptimizerState<Real>::mean}) {
      CHECK(is_refused([&](auto& state) { (state.*member).pop_back(); }));
      CHECK(is_refused([&](auto& state) { (state.*member)[1] = kNaN; }));
      CHECK(is_refused([&](auto& state) { (state.*member)[1] = Real(1e30); }));
    }
    CHECK(is_refused([](auto& state) { state.kept.resize(3); }));
    CHECK(is_refused([](auto& state) { state.order.pop_back(); }));
    CHECK(is_refused([](auto& state) { state.order[0] = state.order[1]; }));
    CHECK(is_refused([](auto& state) { state.order[0] = -1; }));
    CHECK(is_refused([](auto& state) { state.order[0] = kRows; }));
    CHECK(is_refused([](auto& state) { state.iterations = -1; }));
    CHECK(is_refused([](auto& state) { state.relabelled_at = -2; }));
    CHECK(is_refused([](auto& state) { state.friction.friction = 0; }));
    CHECK(is_refused([&](auto& state) { state.friction.work = kNaN; }));
  });
}

// A state may be sound and still lead nowhere.
TEST(a_layout_that_is_no_longer_finite_is_not_gone_on_with) {
  constexpr Size kRows = 20;
  const Csr<float> P = make_joint<float>(kRows, 3);
  const std::vector<float> initial = make_cloud<float>(Cloud::uniform, kRows, 2);
  for (const Method method : kAllMethods) {
    const check::Scope scope(name_of(method));
    const auto optimizer = make_optimizer(P.view(), initial.data(), 2, {method});
    OptimizerState<float> state = optimizer->state();
    std::ranges::fill(state.gains, 1e18f);
    optimizer->restore(state);
    ThreadTeam team(1);
    Phase phase;
    phase.iterations = 5;
    phase.exaggeration = 1e15;
    phase.learning_rate = 1e15;
    phase.rule = StepRule::delta_bar_delta;
    CHECK(check::throws<std::domain_error>([&] { optimizer->run(phase, team, {}); }));
  }
}

TEST(a_layout_stays_finite_under_brutal_settings) {
  for_reals([]<typename Real>() {
    const Csr<Real> P = make_joint<Real>(300, 10);
    for (const Method method : kAllMethods) {
      const check::Scope scope(name_of(method));
      for (const double spread : {0.0, 1e-30, 1e11}) {
        const std::vector<Real> initial = start_positions<Real>(300, 2, spread);
        const auto optimizer = make_optimizer(P.view(), initial.data(), 2, {method, 0.5});
        ThreadTeam team(2);
        Phase phase = make_phase(50, 100);
        phase.learning_rate = 1e8;
        phase.report_every = std::vector<Size>{10};
        optimizer->run(phase, team, [](const Report& report) {
          CHECK(std::isfinite(report.kl_divergence));
          CHECK(std::isfinite(report.gradient_norm));
          return false;
        });
        CHECK(all_finite(std::span<const Real>(optimizer->points())));
      }
    }
  });
}

TEST(the_mean_stays_at_the_origin) {
  const Csr<double> P = make_joint<double>(200, 8);
  std::vector<double> initial = start_positions<double>(200, 2, 1);
  for (double& value : initial) {
    value += 1000;
  }
  const auto optimizer = make_optimizer(P.view(), initial.data(), 2, {Method::exact, 0.5});
  ThreadTeam team(2);
  optimizer->run(make_phase(2), team, {});
  for (const double mean : mean_of(optimizer->points(), 2)) {
    CHECK_NEAR(mean, 0, 1);
  }
}

TEST(dims_that_a_method_has_not_are_refused) {
  const Csr<double> P = make_joint<double>(20, 3);
  const std::vector<double> initial(80, 0.0);
  const auto is_refused = [&](int dims, Method method) {
    return check::throws<std::invalid_argument>(
        [&] { make_optimizer(P.view(), initial.data(), dims, {method}); });
  };
  CHECK(is_refused(0, Method::automatic));
  CHECK(is_refused(4, Method::barnes_hut));
  CHECK(is_refused(3, Method::fft));
  CHECK(!is_refused(4, Method::automatic));
  CHECK(!is_refused(4, Method::exact));
}

int main() {
  return check::run_tests();
}
