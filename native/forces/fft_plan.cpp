// Lengths of the grid's FFT, and the tables of one length.
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

namespace {

// The factors of a radix, few large ones before many small ones.
FftPass make_pass(Size radix) {
  FftPass pass{static_cast<int>(radix), 0, {}};
  for (const int factor : {5, 3, 4, 2}) {
    for (; radix % factor == 0; radix /= factor) {
      pass.factor[pass.factors++] = factor;
    }
  }
  return pass;
}

// The smallest divisor that is not less than what it leaves, so that two passes are about equal.
Size middle_divisor(Size number) {
  Size divisor = 1;
  for (Size d = 1; d * d <= number; ++d) {
    divisor = number % d == 0 ? d : divisor;
  }
  return number / divisor;
}

// The powers 1 ... radix - 1 of the roots of `blocks` blocks.
template <typename Real>
void add_twiddles(Size blocks, int radix, std::vector<Real>& twiddles) {
  for (Size p = 0; p < blocks; ++p) {
    for (int j = 1; j < radix; ++j) {
      const double angle =
          -2 * std::numbers::pi * static_cast<double>(j * p) / static_cast<double>(blocks * radix);
      twiddles.push_back(static_cast<Real>(std::cos(angle)));
      twiddles.push_back(static_cast<Real>(std::sin(angle)));
    }
  }
}

} // namespace

template <typename Real>
FftTables<Real>::FftTables(Size length) {
  plan_.length = length;
  plan_.pass[plan_.passes++] = make_pass(4);
  const Size between = length / 16;
  if (between > kMaxRadix) {
    const Size larger = middle_divisor(between);
    plan_.pass[plan_.passes++] = make_pass(larger);
    plan_.pass[plan_.passes++] = make_pass(between / larger);
  } else if (between > 1) {
    plan_.pass[plan_.passes++] = make_pass(between);
  }
  plan_.pass[plan_.passes++] = make_pass(4);

  Size remaining = length;
  for (int i = 0; i + 1 < plan_.passes; ++i) {
    const FftPass& pass = plan_.pass[i];
    Size small_remaining = pass.radix;
    for (int f = 0; f + 1 < pass.factors; ++f) {
      small_remaining /= pass.factor[f];
      add_twiddles(small_remaining, pass.factor[f], twiddles_);
    }
    remaining /= pass.radix;
    add_twiddles(remaining, pass.radix, twiddles_);
  }
  plan_.twiddles = twiddles_.data();
}

template class FftTables<float>;
template class FftTables<double>;

} // namespace acctsne
