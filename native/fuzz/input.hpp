// What the fuzzers share: numbers made of the fuzzer's bytes, and what a finding is.
//
// libFuzzer calls LLVMFuzzerTestOneInput with bytes of its choice and looks for those that reach
// new code. A finding is a report of a sanitizer, a time-out, an exception that nobody expects, or
// an expectation that does not hold.
#pragma once

#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "kernels/dispatch.hpp"

#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <vector>

#define EXPECT(condition)                                                                          \
  ((condition) ? void() : acctsne::fuzz::fail(__FILE__, __LINE__, #condition))

namespace acctsne::fuzz {

using Input = FuzzedDataProvider;

[[noreturn]] inline void fail(const char* file, int line, const char* text) {
  std::fprintf(stderr, "%s:%d: not true: %s\n", file, line, text);
  std::abort();
}

// Runs the body; false if it refused what it was given.
template <typename Body>
bool accepts(Body&& body) {
  try {
    body();
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

// One of this machine's instruction sets, for the rest of the input.
inline void choose_level(Input& input) {
  static const auto levels = usable_levels();
  use_level(levels[input.ConsumeIntegralInRange<std::size_t>(0, levels.size() - 1)]);
}

inline int choose_threads(Input& input) {
  return input.ConsumeIntegral<std::uint8_t>() % 8 == 0 ? 3 : 1;
}

// Numbers up to `largest` in size. All digits would be new ones if all bytes were, so that some
// inputs have few different numbers: points in one place or on a line.
template <typename Real>
std::vector<Real> numbers(Input& input, Size count, double largest) {
  const auto kind = input.ConsumeIntegralInRange<int>(0, 2);
  const double unit = std::exp2(input.ConsumeIntegralInRange<int>(-140, 40));
  std::vector<Real> values(at(count));
  for (Real& value : values) {
    double number = 0;
    if (kind == 0) {
      number = unit * input.ConsumeIntegral<std::int8_t>();
    } else if (kind == 1) {
      number = input.ConsumeFloatingPointInRange<double>(-100, 100);
    } else {
      // Whatever the bits say.
      const auto bits = input.ConsumeIntegral<std::uint32_t>();
      number = static_cast<double>(std::bit_cast<float>(bits));
      number = std::isfinite(number) ? number : 0;
    }
    value = static_cast<Real>(std::clamp(number, -largest, largest));
  }
  return values;
}

// Any numbers, those that are none among them.
template <typename Real>
std::vector<Real> any_numbers(Input& input, Size count) {
  std::vector<Real> values = numbers<Real>(input, count, std::numeric_limits<Real>::max());
  constexpr Real kOdd[] = {std::numeric_limits<Real>::infinity(),
                           -std::numeric_limits<Real>::infinity(),
                           std::numeric_limits<Real>::quiet_NaN(), std::numeric_limits<Real>::max(),
                           std::numeric_limits<Real>::denorm_min()};
  for (int changes = input.ConsumeIntegralInRange<int>(0, 3); changes > 0 && count > 0; --changes) {
    values[at(input.ConsumeIntegralInRange<Size>(0, count - 1))] = input.PickValueInArray(kOdd);
  }
  return values;
}

template <typename Real>
bool all_finite(const std::vector<Real>& values) {
  return std::ranges::all_of(values, [](Real value) { return std::isfinite(value); });
}

// A permutation.
inline std::vector<PointId> permutation(Input& input, Size count) {
  std::vector<PointId> order(at(count));
  std::iota(order.begin(), order.end(), PointId{0});
  for (int swaps = input.ConsumeIntegralInRange<int>(0, 16); swaps > 0 && count > 1; --swaps) {
    const auto place = [&] { return at(input.ConsumeIntegralInRange<Size>(0, count - 1)); };
    std::swap(order[place()], order[place()]);
  }
  return order;
}

// Calls body.operator()<float>() or <double>().
template <typename Body>
void with_real(Input& input, Body&& body) {
  if (input.ConsumeBool()) {
    body.template operator()<float>();
  } else {
    body.template operator()<double>();
  }
}

} // namespace acctsne::fuzz
