// Subspace iteration. Where it has to be known how far it has come, and in the last pass, the basis
// is turned within its span so that its products fall in variance (Rayleigh and Ritz).
#include "linear/subspace.hpp"

#include "linear/eigen.hpp"
#include "linear/orthonormal.hpp"
#include "linear/product.hpp"

#include <algorithm>
#include <cmath>

namespace acctsne {
namespace {

using Numbers = std::vector<double>;

Numbers product(const MatrixView<double>& left, const MatrixView<double>& right, ThreadTeam& team) {
  LeftFactor<double> packed;
  packed.pack(left);
  Numbers result(at(left.rows * right.columns), 0.0);
  add_product(packed, right, result.data(), right.columns, team);
  return result;
}

bool stand_still(const Numbers& before, const Numbers& variances, const SubspaceEffort& effort) {
  double change = 0;
  double largest = 0;
  for (std::size_t i = 0; i < at(effort.leading); ++i) {
    change = std::max(change, std::abs(variances[i] - before[i]));
    largest = std::max(largest, std::abs(variances[i]));
  }
  return change <= effort.tolerance * largest;
}

} // namespace

Numbers random_basis(Size rows, Size length, ThreadTeam& team) {
  Numbers basis(at(rows * length));
  fill_random(basis.data(), rows * length, 0);
  orthonormalize(basis.data(), rows, length, team);
  return basis;
}

void iterate(Numbers& basis, Size length, const SubspaceEffort& effort,
             const TimesCovariance& times_covariance, Communicator& processes, ThreadTeam& team) {
  const Size rows = static_cast<Size>(basis.size()) / length;
  Numbers products(basis.size());
  Numbers before(at(rows), 0.0);
  for (int pass = 1; pass <= effort.passes; ++pass) {
    times_covariance(basis, products.data());
    const MatrixView<double> moved = matrix<double>(products.data(), rows, length);
    bool done = pass == effort.passes;
    if (done || effort.tolerance > 0) {
      const MatrixView<double> from = matrix<double>(basis.data(), rows, length);
      // Symmetric but for rounding, of which the decomposition sees one half and the other alike.
      Numbers within = product(from, moved.transposed(), team);
      for (Size i = 0; i < rows; ++i) {
        for (Size j = 0; j < i; ++j) {
          double& a = within[at(i * rows + j)];
          double& b = within[at(j * rows + i)];
          a = b = (a + b) / 2;
        }
      }
      const Eigen eigen = symmetric_eigen(std::move(within), rows, team);
      done = done || stand_still(before, eigen.values, effort);
      before = eigen.values;
      products = product(matrix<double>(eigen.vectors.data(), rows, rows), moved, team);
    }
    std::swap(basis, products);
    orthonormalize(basis.data(), rows, length, team);
    // Those that run on another processor may have rounded otherwise.
    Size all_done = done ? 1 : 0;
    broadcast(processes, std::span(basis));
    broadcast(processes, std::span(&all_done, 1));
    if (all_done != 0) {
      break;
    }
  }
}

} // namespace acctsne
