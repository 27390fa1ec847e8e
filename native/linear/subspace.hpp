// The leading axes of a covariance, by subspace iteration: an orthonormal basis is multiplied by it
// and made orthonormal again, which turns it towards the axes of largest variance.
#pragma once

#include "acctsne/communicator.hpp"
#include "acctsne/parallel.hpp"

#include <functional>
#include <vector>

namespace acctsne {

// Writes the covariance, up to a factor, times each row of a basis: as many rows.
using TimesCovariance = std::function<void(const std::vector<double>& basis, double* products)>;

struct SubspaceEffort {
  int passes;           // at most
  double tolerance = 0; // change of the leading variances, relatively, at which to end before
  Size leading = 0;     // how many of them
};

// A basis of so many rows to begin with.
std::vector<double> random_basis(Size rows, Size length, ThreadTeam& team);

// Turns a basis towards the leading axes; they come out by falling variance. All processes get the
// basis of the first one.
void iterate(std::vector<double>& basis, Size length, const SubspaceEffort& effort,
             const TimesCovariance& times_covariance, Communicator& processes, ThreadTeam& team);

} // namespace acctsne
