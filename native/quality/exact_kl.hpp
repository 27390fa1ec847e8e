// The KL divergence of a map, exactly: what every approximation is judged by.
#pragma once

#include "acctsne/csr.hpp"
#include "acctsne/parallel.hpp"
#include "forces/output_kernel.hpp"

#include <vector>

namespace acctsne {

// sum p log(p / q) over the pairs with p > 0, with Z over all pairs, everything in double.
// `positions` is P.rows() x dims. Z is summed by the pass over all pairs that the method "exact"
// is, too; nothing else is shared with the optimiser. tests/test_quality.cpp compares the result
// with two plain loops, which share nothing at all.
double exact_kl(const CsrView<double>& P, const double* positions, int dims,
                const OutputKernel& output_kernel, ThreadTeam& team);

// The part of it that each row of P adds, with Z as given: they sum to the divergence.
std::vector<double> kl_by_point(const CsrView<double>& P, const double* positions, int dims,
                                const OutputKernel& output_kernel, double z, ThreadTeam& team);

} // namespace acctsne
