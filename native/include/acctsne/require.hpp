// What is refused before it could crash. Python checks first and says more; this is the last line.
#pragma once

#include <stdexcept>

namespace acctsne {

inline void require(bool condition, const char* message) {
  if (!condition) {
    throw std::invalid_argument(message);
  }
}

} // namespace acctsne
