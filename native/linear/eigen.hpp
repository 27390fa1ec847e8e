// Eigenvalues and eigenvectors of symmetric matrices of up to some hundred rows.
#pragma once

#include "acctsne/parallel.hpp"

#include <vector>

namespace acctsne {

struct Eigen {
  std::vector<double> values;  // falling
  std::vector<double> vectors; // one after the other, orthonormal
};

// Of a whole symmetric matrix, which is finite.
Eigen symmetric_eigen(std::vector<double> matrix, Size size, ThreadTeam& team);

} // namespace acctsne
