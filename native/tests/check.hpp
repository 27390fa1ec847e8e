// A test harness in one header: named tests, checks that print where and with which values they
// failed, a count at the end.
#pragma once

#include <cmath>
#include <exception>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

namespace check {

struct Test {
  const char* name;
  void (*body)();
};

struct State {
  std::vector<Test> tests;
  std::vector<std::string> scopes; // what the running test is trying at the moment
  int failures = 0;                // of the running test
};

inline State& state() {
  static State the_state;
  return the_state;
}

inline bool add_test(const char* name, void (*body)()) {
  state().tests.push_back({name, body});
  return true;
}

// Names the case at hand (a type, a thread count, ...) in the messages of checks that fail while it
// lives.
class Scope {
public:
  explicit Scope(std::string text) { state().scopes.push_back(std::move(text)); }
  ~Scope() { state().scopes.pop_back(); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
};

template <typename... Values>
void fail(const char* file, int line, const char* text, const Values&... values) {
  // A wrong array fails at every element: the first few tell enough.
  constexpr int kShown = 8;
  if (++state().failures <= kShown) {
    std::cout.precision(17);
    std::cout << file << ':' << line << ": " << text;
    ((std::cout << ' ' << values), ...);
    for (const std::string& scope : state().scopes) {
      std::cout << " [" << scope << ']';
    }
    std::cout << std::endl;
  }
}

// Whether a body throws such an exception.
template <typename Exception, typename Body>
bool throws(Body&& body) {
  try {
    body();
  } catch (const Exception&) {
    return true;
  }
  return false;
}

inline int run_tests() {
  int failed = 0;
  for (const Test& test : state().tests) {
    state().failures = 0;
    try {
      test.body();
    } catch (const std::exception& error) {
      fail(test.name, 0, "threw", error.what());
    }
    failed += state().failures > 0 ? 1 : 0;
    std::cout << (state().failures > 0 ? "FAILED " : "ok     ") << test.name << std::endl;
  }
  std::cout << static_cast<int>(state().tests.size()) - failed << " passed, " << failed << " failed"
            << std::endl;
  return failed > 0 ? 1 : 0;
}

} // namespace check

#define TEST(name)                                                                                 \
  static void name();                                                                              \
  static const bool name##_added = check::add_test(#name, name);                                   \
  static void name()

#define CHECK(condition)                                                                           \
  ((condition) ? void() : check::fail(__FILE__, __LINE__, "not true: " #condition))

#define CHECK_EQUAL(a, b)                                                                          \
  ((a) == (b) ? void() : check::fail(__FILE__, __LINE__, #a " == " #b ":", (a), "and", (b)))

// |a - b| <= tolerance, in double; never true of a NaN.
#define CHECK_NEAR(a, b, tolerance)                                                                \
  (std::abs(static_cast<double>(a) - static_cast<double>(b)) <= static_cast<double>(tolerance)     \
       ? void()                                                                                    \
       : check::fail(__FILE__, __LINE__, #a " near " #b ":", (a), "and", (b), "tolerance",         \
                     (tolerance)))
