// Products of matrices, orthonormal bases and eigenvalues, against plain loops and definitions.
#include "linear/eigen.hpp"
#include "linear/orthonormal.hpp"
#include "linear/product.hpp"

#include "check.hpp"
#include "data.hpp"

using namespace acctsne;

namespace {

template <typename Real>
std::vector<Real> random_numbers(Size count, std::uint64_t seed = 3) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<Real> numbers(at(count));
  std::generate(numbers.begin(), numbers.end(), [&] { return static_cast<Real>(normal(random)); });
  return numbers;
}

struct Shape {
  Size rows;
  Size columns;
  Size depth;
};
// Less than a tile, whole tiles of every level, more than one step in depth.
constexpr Shape kShapes[] = {{1, 1, 1}, {3, 5, 7}, {42, 64, 30}, {15, 33, 500}, {29, 97, 193}};

template <typename Real>
Real number(const MatrixView<Real>& matrix, Size row, Size column) {
  return matrix.numbers[row * matrix.row_stride + column * matrix.column_stride];
}

// Adds 1 to what there was before, and writes nothing else.
template <typename Real>
void check_product(const MatrixView<Real>& a, const MatrixView<Real>& b, Part part) {
  LeftFactor<Real> left;
  left.pack(a);
  const Size stride = b.columns + 3;
  std::vector<Real> product(at(a.rows * stride), Real(1));
  ProductScratch<Real> scratch;
  add_product(left, b, product.data(), stride, scratch, part);
  for (Size i = 0; i < a.rows; ++i) {
    for (Size j = 0; j < stride; ++j) {
      if (j >= b.columns) {
        CHECK_EQUAL(product[at(i * stride + j)], Real(1));
        continue;
      }
      if (part == Part::upper && i > j) {
        continue;
      }
      double sum = 1;
      double size = 1;
      for (Size k = 0; k < a.columns; ++k) {
        const double term =
            static_cast<double>(number(a, i, k)) * static_cast<double>(number(b, k, j));
        sum += term;
        size += std::abs(term);
      }
      CHECK_NEAR(product[at(i * stride + j)], sum, size * 30 * static_cast<double>(kEpsilon<Real>));
    }
  }
}

using Numbers = std::vector<double>;

Numbers transposed(const Numbers& matrix, Size size) {
  Numbers result(matrix.size());
  for (Size i = 0; i < size * size; ++i) {
    result[at(i % size * size + i / size)] = matrix[at(i)];
  }
  return result;
}

// The largest difference of rows' products from those of an orthonormal basis.
double distance_from_orthonormal(const double* rows, Size count, Size length) {
  double worst = 0;
  for (Size i = 0; i < count; ++i) {
    for (Size j = 0; j <= i; ++j) {
      const double product =
          std::inner_product(rows + i * length, rows + (i + 1) * length, rows + j * length, 0.0);
      worst = std::max(worst, std::abs(product - (i == j ? 1 : 0)));
    }
  }
  return worst;
}

void check_eigen(const Numbers& matrix, Size size) {
  ThreadTeam team(2);
  const Eigen eigen = symmetric_eigen(matrix, size, team);
  double largest = 0;
  for (const double value : matrix) {
    largest = std::max(largest, std::abs(value));
  }
  const double tolerance = largest * static_cast<double>(size) * 1e-14;
  CHECK_EQUAL(static_cast<Size>(eigen.values.size()), size);
  CHECK(std::is_sorted(eigen.values.rbegin(), eigen.values.rend()));
  CHECK(distance_from_orthonormal(eigen.vectors.data(), size, size) < 1e-13 * (10 + double(size)));
  for (Size v = 0; v < size; ++v) {
    const double* vector = eigen.vectors.data() + v * size;
    for (Size i = 0; i < size; ++i) {
      const double product =
          std::inner_product(vector, vector + size, matrix.data() + i * size, 0.0);
      CHECK_NEAR(product, eigen.values[at(v)] * vector[i], tolerance);
    }
  }
}

Numbers random_symmetric(Size size, double scale = 1) {
  Numbers matrix = random_numbers<double>(size * size);
  const Numbers other = transposed(matrix, size);
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    matrix[i] = scale * (matrix[i] + other[i]);
  }
  return matrix;
}

} // namespace

TEST(products_are_sums_of_products) {
  for_reals([]<typename Real>() {
    for_levels([] {
      for (const auto& [rows, columns, depth] : kShapes) {
        const auto a = random_numbers<Real>(rows * depth, 1);
        const auto b = random_numbers<Real>(depth * columns, 2);
        const auto a_by_columns = matrix<Real>(a.data(), depth, rows).transposed();
        const auto b_by_columns = matrix<Real>(b.data(), columns, depth).transposed();
        check_product(matrix<Real>(a.data(), rows, depth), b_by_columns, Part::whole);
        check_product(a_by_columns, matrix<Real>(b.data(), depth, columns), Part::whole);
        check_product(a_by_columns, matrix<Real>(a.data(), depth, rows), Part::upper);
        // Every second number.
        check_product(matrix<Real>(a.data(), rows, depth),
                      MatrixView<Real>{b.data(), depth, columns / 2, columns, 2}, Part::whole);
      }
    });
  });
}

TEST(products_have_the_same_bytes_with_any_number_of_threads) {
  for_reals([]<typename Real>() {
    const Size rows = 40;
    const Size columns = 3000;
    const Size depth = 500;
    const auto a = random_numbers<Real>(rows * depth, 1);
    const auto b = random_numbers<Real>(depth * columns, 2);
    for_levels([&] {
      LeftFactor<Real> left;
      left.pack(matrix<Real>(a.data(), rows, depth));
      std::vector<Real> alone(at(rows * columns), Real(0));
      ProductScratch<Real> scratch;
      add_product(left, matrix<Real>(b.data(), depth, columns), alone.data(), columns, scratch);
      for (const int threads : kThreadCounts) {
        ThreadTeam team(threads);
        std::vector<Real> product(at(rows * columns), Real(0));
        add_product(left, matrix<Real>(b.data(), depth, columns), product.data(), columns, team);
        CHECK(same_bytes(product, alone));
      }
    });
  });
}

TEST(operations_on_rows) {
  for_reals([]<typename Real>() {
    for_levels([] {
      const LinearKernels<Real>& linear = kernels().linear.of<Real>();
      const double tolerance = 50 * static_cast<double>(kEpsilon<Real>);
      for (const Size count : {0, 1, 3, 8, 16, 31, 67, 150}) {
        const auto a = random_numbers<Real>(count, 1);
        const auto b = random_numbers<Real>(count, 2);
        const std::vector<double> centre(random_numbers<double>(count, 3));
        double dot = 0;
        double largest = 0;
        for (Size i = 0; i < count; ++i) {
          dot += static_cast<double>(a[at(i)]) * static_cast<double>(b[at(i)]);
          largest = std::max(largest, std::abs(static_cast<double>(a[at(i)])));
        }
        CHECK_NEAR(linear.dot(a.data(), b.data(), count), dot, tolerance * 10);
        CHECK_EQUAL(static_cast<double>(linear.largest_size(a.data(), count)), largest);
        auto sum = b;
        linear.add_multiple(Real(0.5), a.data(), count, sum.data());
        auto x = a;
        auto y = b;
        linear.rotate(Real(0.6), Real(0.8), count, x.data(), y.data());
        std::vector<Real> moved(at(count));
        std::vector<float> moved_in_float(at(count));
        const double norm = linear.centre(a.data(), 4, centre.data(), count, moved.data());
        const double norm_in_float =
            linear.centre_in_float(a.data(), 4, centre.data(), count, moved_in_float.data());
        double squares = 0;
        double squares_in_float = 0;
        for (Size i = 0; i < count; ++i) {
          const auto p = static_cast<double>(a[at(i)]);
          const auto q = static_cast<double>(b[at(i)]);
          CHECK_NEAR(sum[at(i)], q + 0.5 * p, tolerance);
          CHECK_NEAR(x[at(i)], 0.6 * p - 0.8 * q, tolerance);
          CHECK_NEAR(y[at(i)], 0.8 * p + 0.6 * q, tolerance);
          const double expected = 4 * p - centre[at(i)];
          CHECK_NEAR(moved[at(i)], expected, tolerance * 4);
          CHECK_NEAR(moved_in_float[at(i)], expected, std::abs(expected) * 1.2e-7);
          squares += static_cast<double>(moved[at(i)]) * static_cast<double>(moved[at(i)]);
          squares_in_float += double{moved_in_float[at(i)]} * double{moved_in_float[at(i)]};
        }
        CHECK_NEAR(norm, squares, squares * 1e-14);
        CHECK_NEAR(norm_in_float, squares_in_float, squares_in_float * 1e-14);
      }
    });
  });
}

TEST(eigenvectors_fulfil_their_equation) {
  for_levels([] {
    for (const Size size : {1, 2, 3, 17, 64, 130}) {
      check_eigen(random_symmetric(size), size);
    }
    check_eigen(random_symmetric(40, 1e300), 40);
    check_eigen(random_symmetric(40, 1e-300), 40);
  });
}

TEST(eigenvectors_of_awkward_matrices) {
  const Size size = 30;
  check_eigen(Numbers(at(size * size), 0.0), size);
  check_eigen(Numbers(at(size * size), 1.0), size); // of rank 1
  Numbers diagonal(at(size * size), 0.0);
  for (Size i = 0; i < size; ++i) {
    diagonal[at(i * (size + 1))] = static_cast<double>(i % 3);
  }
  check_eigen(diagonal, size);
  for (const double fall : {0.5, 2.0, 3.0, 6.0}) { // numbers of very different sizes
    Numbers apart = random_symmetric(size);
    for (Size i = 0; i < size * size; ++i) {
      apart[at(i)] *= std::pow(10.0, -fall * static_cast<double>(i / size + i % size));
    }
    check_eigen(apart, size);
  }
}

TEST(eigenvectors_where_products_of_numbers_vanish) {
  const double sizes[] = {0, 1e-140, 1e-155, 1e-162, 1e-187, 1e-189, 1e-310};
  for (const double a : sizes) {
    for (const double b : sizes) {
      // clang-format off
      check_eigen({0, 1, 0, 0,
                   1, 0, a, 0,
                   0, a, 0, b,
                   0, 0, b, 0}, 4);
      check_eigen({1, a, b,
                   a, 0, 0,
                   b, 0, 0}, 3);
      // clang-format on
    }
  }
}

TEST(eigenvalues_of_a_string) {
  // Second differences: 2 - 2 cos(k pi / (n + 1)).
  const Size size = 50;
  Numbers matrix(at(size * size), 0.0);
  for (Size i = 0; i < size; ++i) {
    matrix[at(i * (size + 1))] = 2;
    if (i > 0) {
      matrix[at(i * size + i - 1)] = matrix[at((i - 1) * size + i)] = -1;
    }
  }
  ThreadTeam team(1);
  const Eigen eigen = symmetric_eigen(matrix, size, team);
  const double pi = std::acos(-1.0);
  for (Size k = 0; k < size; ++k) {
    const double expected =
        2 - 2 * std::cos(static_cast<double>(size - k) * pi / static_cast<double>(size + 1));
    CHECK_NEAR(eigen.values[at(k)], expected, 1e-13);
  }
}

TEST(rows_become_orthonormal_within_their_span) {
  for_levels([] {
    for (const auto& [count, length] : {std::pair<Size, Size>{1, 1}, {5, 9}, {70, 70}, {90, 300}}) {
      Numbers rows = random_numbers<double>(count * length);
      for (Size i = 1; i < count; ++i) { // nearly in one direction, of any length
        for (Size f = 0; f < length; ++f) {
          rows[at(i * length + f)] = (rows[at(f)] + 1e-4 * rows[at(i * length + f)]) *
                                     std::pow(10.0, static_cast<double>(i % 41) - 20);
        }
      }
      const Numbers before = rows;
      ThreadTeam team(2);
      orthonormalize(rows.data(), count, length, team);
      CHECK(distance_from_orthonormal(rows.data(), count, length) < 1e-13);
      for (Size i = 0; i < count; ++i) {
        Numbers left(before.begin() + i * length, before.begin() + (i + 1) * length);
        const double size =
            std::sqrt(std::inner_product(left.begin(), left.end(), left.begin(), 0.0));
        for (Size j = 0; j <= i; ++j) {
          const double* row = rows.data() + j * length;
          const double along = std::inner_product(row, row + length, left.begin(), 0.0);
          std::transform(left.begin(), left.end(), row, left.begin(),
                         [along](double a, double b) { return a - along * b; });
        }
        CHECK_NEAR(std::sqrt(std::inner_product(left.begin(), left.end(), left.begin(), 0.0)), 0,
                   size * 1e-13);
      }
    }
  });
}

TEST(rows_that_depend_on_others_become_orthonormal_too) {
  const Size length = 40;
  ThreadTeam team(1);
  for (const Size count : {3, 33, 40}) {
    Numbers zeros(at(count * length), 0.0);
    orthonormalize(zeros.data(), count, length, team);
    CHECK(distance_from_orthonormal(zeros.data(), count, length) < 1e-13);
    Numbers copies(at(count * length));
    const Numbers two = random_numbers<double>(2 * length);
    for (std::size_t i = 0; i < copies.size(); ++i) {
      copies[i] = two[i % two.size()];
    }
    orthonormalize(copies.data(), count, length, team);
    CHECK(distance_from_orthonormal(copies.data(), count, length) < 1e-13);
  }
}

TEST(decompositions_have_the_same_bytes_with_any_number_of_threads) {
  for_levels([] {
    Numbers first_basis;
    Numbers first_vectors;
    for (const int threads : kThreadCounts) {
      ThreadTeam team(threads);
      Numbers basis = random_numbers<double>(120 * 900);
      orthonormalize(basis.data(), 120, 900, team);
      const Numbers vectors = symmetric_eigen(random_symmetric(90), 90, team).vectors;
      if (threads == 1) {
        first_basis = basis;
        first_vectors = vectors;
      }
      CHECK(same_bytes(basis, first_basis));
      CHECK(same_bytes(vectors, first_vectors));
    }
  });
}

int main() {
  return check::run_tests();
}
