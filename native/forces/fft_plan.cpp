#include "forces/fft_plan.hpp"

#include <cmath>
#include <numbers>

namespace acctsne {

Size fft_length(Size length) {
  Size best = 16;
  while (best < length) {
    best *= 2;
  }
  for (Size threes = 1; threes < best; threes *= 3) {
    for (Size fives = threes; fives < best; fives *= 5) {
      Size candidate = 16 * fives;
      while (candidate < length) {
        candidate *= 2;
      }
      best = candidate < best ? candidate : best;
    }
  }
  return best;
}

template <typename Real>
FftTables<Real>::FftTables(Size length) {
  plan_.length = length;
  // The first and the last pass have radix 4; in between, few large radices before many small ones.
  plan_.radices[plan_.passes++] = 4;
  Size rest = length / 16;
  for (const int radix : {5, 3, 4, 2}) {
    while (rest % radix == 0) {
      plan_.radices[plan_.passes++] = radix;
      rest /= radix;
    }
  }
  plan_.radices[plan_.passes++] = 4;

  Size remaining = length;
  for (int pass = 0; pass + 1 < plan_.passes; ++pass) {
    const int radix = plan_.radices[pass];
    const Size blocks = remaining / radix;
    for (Size p = 0; p < blocks; ++p) {
      for (int j = 1; j < radix; ++j) {
        const double angle =
            -2 * std::numbers::pi * static_cast<double>(j * p) / static_cast<double>(remaining);
        twiddles_.push_back(static_cast<Real>(std::cos(angle)));
        twiddles_.push_back(static_cast<Real>(std::sin(angle)));
      }
    }
    remaining = blocks;
  }
  plan_.twiddles = twiddles_.data();
}

template class FftTables<float>;
template class FftTables<double>;

} // namespace acctsne
