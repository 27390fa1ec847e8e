// Householder's reflections make the matrix tridiagonal, implicit QL steps make that diagonal: the
// algorithms of Martin, Reinsch and Wilkinson (Numerische Mathematik 11, 1968) and of Dubrulle
// (ibid. 15, 1970). Eigenvectors are kept as rows, so that both work on numbers that lie together.
#include "linear/eigen.hpp"

#include "kernels/dispatch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace acctsne {
namespace {

using Numbers = std::vector<double>;

// What is taken for 0 beside a matrix whose largest number is about 1. Products of two larger ones
// do not vanish, so that no reflection and no rotation is without a length.
constexpr double kNothing = 1e-150;

// A matrix T = Q A Q^T, where Q is the product of reflections I - factors[k] v v^T; v is what row k
// of the matrix holds beyond its diagonal.
struct Tridiagonal {
  Numbers diagonal;
  Numbers beside; // the last is 0
  Numbers factors;
};

Tridiagonal tridiagonal_of(Numbers& matrix, Size size, const LinearKernels<double>& linear,
                           ThreadTeam& team) {
  Tridiagonal result{Numbers(at(size)), Numbers(at(size), 0.0), Numbers(at(size), 0.0)};
  Numbers products(at(size));
  for (Size k = 0; k < size; ++k) {
    team.check();
    double* row = matrix.data() + k * size;
    result.diagonal[at(k)] = row[k];
    if (k + 1 == size) {
      break;
    }
    // Reflects what lies beside the diagonal onto the number next to it.
    double* v = row + k + 1;
    const Size count = size - k - 1;
    const double beyond = linear.dot(v + 1, v + 1, count - 1);
    if (beyond < kNothing * kNothing) {
      result.beside[at(k)] = v[0];
      continue;
    }
    const double norm = std::sqrt(v[0] * v[0] + beyond);
    const double reflected = std::copysign(norm, -v[0]);
    result.beside[at(k)] = reflected;
    v[0] -= reflected;
    const double factor = 2 / (v[0] * v[0] + beyond);
    result.factors[at(k)] = factor;
    // With p = factor A v and w = p - (factor v^T p / 2) v, A becomes A - v w^T - w v^T.
    double* w = products.data();
    for (Size i = 0; i < count; ++i) {
      w[i] = factor * linear.dot(matrix.data() + (k + 1 + i) * size + k + 1, v, count);
    }
    linear.add_multiple(-factor * linear.dot(v, w, count) / 2, v, count, w);
    for (Size i = 0; i < count; ++i) {
      double* changed = matrix.data() + (k + 1 + i) * size + k + 1;
      linear.add_multiple(-v[i], w, count, changed);
      linear.add_multiple(-w[i], v, count, changed);
    }
  }
  return result;
}

// The rows of Q.
Numbers reflections(const Numbers& matrix, Size size, const Numbers& factors,
                    const LinearKernels<double>& linear, ThreadTeam& team) {
  Numbers rows(at(size * size), 0.0);
  constexpr Size kGrain = 16;
  parallel_for(team, size, kGrain, [&](Size begin, Size end) {
    for (Size i = begin; i < end; ++i) {
      double* row = rows.data() + i * size;
      row[i] = 1;
      for (Size k = i - 1; k >= 0; --k) {
        const double* v = matrix.data() + k * size + k + 1;
        const Size count = size - k - 1;
        linear.add_multiple(-factors[at(k)] * linear.dot(v, row + k + 1, count), v, count,
                            row + k + 1);
      }
    }
  });
  return rows;
}

// Makes the matrix diagonal; the rows of `vectors` follow.
void diagonalize(Tridiagonal& matrix, Size size, Numbers& vectors,
                 const LinearKernels<double>& linear, ThreadTeam& team) {
  Numbers& d = matrix.diagonal;
  Numbers& e = matrix.beside;
  constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
  constexpr int kMostSteps = 100; // two or three are usual
  for (Size first = 0; first < size; ++first) {
    team.check();
    for (int steps = 0;; ++steps) {
      Size last = first;
      while (last + 1 < size &&
             std::abs(e[at(last)]) >
                 kEpsilon * (std::abs(d[at(last)]) + std::abs(d[at(last + 1)])) + kNothing) {
        ++last;
      }
      if (last == first) {
        break;
      }
      if (steps == kMostSteps) {
        throw std::runtime_error("eigenvalues of a covariance did not converge");
      }
      // The shift is the eigenvalue of the first two rows that is nearer to the first.
      const double half = (d[at(first + 1)] - d[at(first)]) / (2 * e[at(first)]);
      const double shift =
          d[at(first)] - e[at(first)] / (half + std::copysign(std::hypot(half, 1.0), half));
      double g = d[at(last)] - shift;
      double sine = 1;
      double cosine = 1;
      double moved = 0;
      for (Size i = last - 1; i >= first; --i) {
        const double f = sine * e[at(i)];
        const double b = cosine * e[at(i)];
        double r = std::hypot(f, g);
        e[at(i + 1)] = r;
        sine = f / r;
        cosine = g / r;
        g = d[at(i + 1)] - moved;
        r = (d[at(i)] - g) * sine + 2 * cosine * b;
        moved = sine * r;
        d[at(i + 1)] = g + moved;
        g = cosine * r - b;
        linear.rotate(cosine, sine, size, vectors.data() + i * size,
                      vectors.data() + (i + 1) * size);
      }
      d[at(first)] -= moved;
      e[at(first)] = g;
      e[at(last)] = 0;
    }
  }
}

} // namespace

Eigen symmetric_eigen(Numbers matrix, Size size, ThreadTeam& team) {
  const LinearKernels<double>& linear = kernels().linear.of<double>();
  // Brings the largest number to about 1.
  const double largest = linear.largest_size(matrix.data(), size * size);
  const int exponent = largest > 0 ? std::ilogb(largest) : 0;
  for (double& number : matrix) {
    number = std::ldexp(number, -exponent);
  }
  Tridiagonal tridiagonal = tridiagonal_of(matrix, size, linear, team);
  Numbers vectors = reflections(matrix, size, tridiagonal.factors, linear, team);
  diagonalize(tridiagonal, size, vectors, linear, team);

  // Equal ones keep their order. Not by std::stable_sort: clang warns of libstdc++ 12's.
  const auto larger = [&](Size a, Size b) {
    return tridiagonal.diagonal[at(a)] > tridiagonal.diagonal[at(b)];
  };
  std::vector<Size> order;
  for (Size i = 0; i < size; ++i) {
    order.insert(std::upper_bound(order.begin(), order.end(), i, larger), i);
  }
  Eigen result{{}, Numbers(at(size * size))};
  for (const Size i : order) {
    std::copy_n(vectors.begin() + i * size, size,
                result.vectors.begin() + static_cast<Size>(result.values.size()) * size);
    result.values.push_back(std::ldexp(tridiagonal.diagonal[at(i)], exponent));
  }
  return result;
}

} // namespace acctsne
