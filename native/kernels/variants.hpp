// The variants that kernels are compiled in: both precisions, and numbers of dimensions of the map.
#pragma once

#include "acctsne/types.hpp"

namespace acctsne {

template <template <typename> typename Kernels>
struct Both {
  Kernels<float> f32;
  Kernels<double> f64;

  template <typename Real>
  const Kernels<Real>& of() const {
    if constexpr (sizeof(Real) == sizeof(float)) {
      return f32;
    } else {
      return f64;
    }
  }
};

// A kernel that depends on the embedding's dimension. All are told it; those compiled for it need
// not look.
template <typename Kernel>
struct ByDims {
  Kernel compiled[kCompiledDims];
  Kernel any;

  Kernel of(int dims) const { return dims <= kCompiledDims ? compiled[dims - 1] : any; }
};

} // namespace acctsne
