// Gram and Schmidt's way, a panel of rows at a time, each taken twice: then rounding leaves nothing
// of the rows before (Giraud, Langou and Rozloznik, Computers and Mathematics with Applications 50,
// 2005).
#include "linear/orthonormal.hpp"

#include "kernels/dispatch.hpp"
#include "linear/product.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace acctsne {
namespace {

// Rows that are made orthogonal to all before them by a product of matrices, and then among
// themselves: two tiles of AVX-512.
constexpr Size kPanelRows = 28;

// What is left of a row whose largest number is 1 when it is rounding alone.
constexpr double kNothing = 1e-12;

class Basis {
public:
  Basis(double* rows, Size length) : rows_(rows), length_(length) {}

  // Makes a row's length 1; one without any gets a direction of its own, which is orthogonal to
  // those before it when it is taken the second time.
  void normalize(Size row) {
    double* numbers = this->row(row);
    double norm = std::sqrt(linear_.dot(numbers, numbers, length_));
    if (!(norm > kNothing)) {
      fill_random(numbers, length_, static_cast<std::uint64_t>(row));
      norm = std::sqrt(linear_.dot(numbers, numbers, length_));
    }
    std::transform(numbers, numbers + length_, numbers, [norm](double x) { return x / norm; });
  }

  // Takes from rows [begin, end) what they have of those before.
  void leave(Size begin, Size end, ThreadTeam& team) {
    if (begin == 0) {
      return;
    }
    const MatrixView<double> before = matrix<double>(rows_, begin, length_);
    left_.pack(matrix<double>(row(begin), end - begin, length_));
    along_.assign(at((end - begin) * begin), 0.0);
    add_product(left_, before.transposed(), along_.data(), begin, team);
    std::transform(along_.begin(), along_.end(), along_.begin(), std::negate<>());
    left_.pack(matrix<double>(along_.data(), end - begin, begin));
    add_product(left_, before, row(begin), length_, team);
  }

  // Makes rows [begin, end) orthonormal among themselves.
  void part(Size begin, Size end) {
    for (Size i = begin; i < end; ++i) {
      for (Size j = begin; j < i; ++j) {
        linear_.add_multiple(-linear_.dot(row(i), row(j), length_), row(j), length_, row(i));
      }
      normalize(i);
    }
  }

private:
  double* row(Size i) { return rows_ + i * length_; }

  double* rows_;
  Size length_;
  const LinearKernels<double>& linear_ = kernels().linear.of<double>();
  LeftFactor<double> left_;
  std::vector<double> along_;
};

} // namespace

void fill_random(double* numbers, Size count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::generate_n(numbers, count,
                  [&] { return std::ldexp(static_cast<double>(random() >> 11), -52) - 1; });
}

void orthonormalize(double* rows, Size count, Size length, ThreadTeam& team) {
  const LinearKernels<double>& linear = kernels().linear.of<double>();
  // Lengths within which squares and what rounding leaves of them can be told from nothing.
  for (Size i = 0; i < count; ++i) {
    double* row = rows + i * length;
    const double largest = linear.largest_size(row, length);
    if (largest > 0) {
      std::transform(row, row + length, row, [largest](double x) { return x / largest; });
    }
  }
  Basis basis(rows, length);
  for (Size begin = 0; begin < count; begin += kPanelRows) {
    const Size end = std::min(begin + kPanelRows, count);
    for (int pass = 0; pass < 2; ++pass) {
      basis.leave(begin, end, team);
      basis.part(begin, end);
    }
  }
}

} // namespace acctsne
