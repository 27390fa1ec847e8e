// Lengths that the grid's FFT can have, and the tables that a length needs.
#pragma once

#include "acctsne/types.hpp"
#include "kernels/grid.hpp"

#include <vector>

namespace acctsne {

// The smallest 2^a 3^b 5^c with a >= 4 that is not less than `length`.
Size fft_length(Size length);

template <typename Real>
class FftTables {
public:
  // `length` as fft_length() gives it.
  explicit FftTables(Size length);
  const FftPlan<Real>& plan() const { return plan_; }
  Size length() const { return plan_.length; }
  // Elements that the kernels need to work on one vector of lines.
  Size scratch_size(int lanes) const { return 6 * plan_.length * lanes; }

private:
  std::vector<Real> twiddles_;
  FftPlan<Real> plan_{};
};

} // namespace acctsne
