// Optimisers of a matrix, for the tests that run them.
#pragma once

#include "optimize/loop.hpp"

namespace acctsne {

template <typename Real>
std::unique_ptr<Optimizer<Real>> make_optimizer(const CsrView<Real>& P, const Real* initial,
                                                int dims, const RepulsionOptions& options) {
  MatrixRows<Real> rows(P);
  static OneProcess alone;
  ThreadTeam team(1);
  return make_optimizer<Real>(rows, initial, dims, options, alone, team);
}

} // namespace acctsne
