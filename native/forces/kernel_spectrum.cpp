// The kernel's spectrum is the transform of the kernel sampled at the nodes, divided twice by the
// transform of the B-spline sampled at the nodes: with that, two points on nodes interact exactly,
// which the continuous spline's transform would not give.
#include "forces/kernel_spectrum.hpp"

#include "kernels/dispatch.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace acctsne {
namespace {

// Few enough for the shares of many threads to be even.
constexpr Size kColumnsPerChunk = 4;

Size round_up(Size value, Size multiple) {
  return chunk_count(value, multiple) * multiple;
}

// The transform of the cubic B-spline at the nodes, which is 1/6, 4/6, 1/6.
double spline_spectrum(Size k, Size half_length) {
  return (2 +
          std::cos(std::numbers::pi * static_cast<double>(k) / static_cast<double>(half_length))) /
         3;
}

// Frequencies 0 and half the length occur once in the full spectrum, the others twice; so do nodes
// other than 0.
double cosine(int node, Size k, Size half_length) {
  return (node == 0 ? 1.0 : 2.0) * (k == 0 || k == half_length ? 1.0 : 2.0) *
         std::cos(std::numbers::pi * static_cast<double>(node * k) /
                  static_cast<double>(half_length));
}

} // namespace

template <typename Real>
void KernelSpectrum<Real>::prepare(KernelPart part, const Size (&lengths)[2], double step,
                                   ThreadTeam& team) {
  bool same = is_ready_ && part == part_ && step == step_;
  for (int axis = 0; axis < 2; ++axis) {
    same = same && tables_[axis]->length() == lengths[axis];
  }
  if (same) {
    return;
  }
  is_ready_ = false; // until it is computed to the end, which the user may not wait for
  part_ = part;
  step_ = step;
  scratch_size_ = 0;
  for (int axis = 0; axis < 2; ++axis) {
    if (tables_[axis] == nullptr || tables_[axis]->length() != lengths[axis]) {
      tables_[axis] = std::make_unique<FftTables<Real>>(lengths[axis]);
    }
    scratch_size_ = std::max(scratch_size_, at(tables_[axis]->scratch_size(lanes())));
  }
  slabs_ = chunk_count(lengths[0] / 2 + 1, lanes());
  compute(team);
  is_ready_ = true;
}

template <typename Real>
Size KernelSpectrum<Real>::stride_for(Size rows) const {
  // One vector more than needed keeps columns from mapping to the same cache sets.
  return round_up(rows, rows_at_once()) + lanes();
}

template <typename Real>
Size KernelSpectrum<Real>::slab_size(Size rows) const {
  return round_up(rows, rows_at_once()) * 2 * lanes();
}

template <typename Real>
void KernelSpectrum<Real>::transform_rows(const Grid<Real>& grid, Size set, Real* spectrum,
                                          Real* scratch) const {
  const Size row = set * rows_at_once();
  grid_kernels_.fft_grid_to_spectrum(tables_[0]->plan(), grid.column(0) + row, grid.stride(),
                                     grid.nodes(0), spectrum + row * 2 * lanes(),
                                     slab_size(grid.nodes(1)), scratch);
}

template <typename Real>
void KernelSpectrum<Real>::convolve_slab(Size rows, Size slab, Real* spectrum,
                                         Real* scratch) const {
  const Size kernel_slab = (tables_[1]->length() / 2 + 1) * lanes();
  grid_kernels_.fft_convolve_slab(tables_[1]->plan(), values_.data() + slab * kernel_slab, rows,
                                  spectrum + slab * slab_size(rows), scratch);
}

template <typename Real>
void KernelSpectrum<Real>::transform_rows_back(const Real* spectrum, Size set, Grid<Real>& grid,
                                               Real* scratch) const {
  const Size row = set * rows_at_once();
  grid_kernels_.fft_spectrum_to_grid(tables_[0]->plan(), spectrum + row * 2 * lanes(),
                                     slab_size(grid.nodes(1)), grid.column(0) + row, grid.stride(),
                                     grid.nodes(0), scratch);
}

template <typename Real>
void KernelSpectrum<Real>::compute(ThreadTeam& team) {
  const Step step("repulsive: spectrum");
  // In double whatever Real is: high frequencies are 1e-5 of the lowest.
  const GridKernels<double>& kernel = kernels().grid.of<double>();
  const Size half[2] = {tables_[0]->length() / 2, tables_[1]->length() / 2};
  const FftTables<double> along_x(2 * half[0]);
  const FftTables<double> along_y(2 * half[1]);
  const auto worker_scratch = static_cast<std::size_t>(
      std::max(along_x.scratch_size(kernel.lanes), along_y.scratch_size(kernel.lanes)));
  std::vector<double> scratch(worker_scratch * at(team.size()));

  // In a narrow map, or with a small exponent, the kernel is nearly constant, and its slope would
  // drown in the rounding of the potential. The constant part can be taken off. The near part is
  // zero at its end as it is.
  const double far2 = step_ * step_ * static_cast<double>(half[0] * half[0] + half[1] * half[1]);
  const bool shifted = part_ != KernelPart::near;
  shift_ = shifted ? kernel_(part_, far2) : 0;

  // [x][y], the kernel and then its transform along x.
  const Size stride_y = round_up(half[1] + 1, kernel.lanes);
  const auto room = [](Size count) { // not cleared: the loops write it
    return std::unique_ptr<double[]>(new double[at(count)]);
  };
  const std::unique_ptr<double[]> by_x = room((half[0] + 1) * stride_y);
  // What the last loop takes of each x.
  const std::unique_ptr<double[]> cosines_x = room(4 * (half[0] + 1));
  const std::unique_ptr<double[]> splines_x = room(half[0] + 1);
  parallel_for(team, half[0] + 1, kColumnsPerChunk, [&](Size begin, Size end) {
    for (Size x = begin; x < end; ++x) {
      splines_x[at(x)] = spline_spectrum(x, half[0]);
      for (int m = 0; m < 4; ++m) {
        cosines_x[at(4 * x + m)] = cosine(m, x, half[0]);
      }
      double* line = by_x.get() + x * stride_y;
      for (Size y = 0; y <= half[1]; ++y) {
        const double r2 = step_ * step_ * static_cast<double>(x * x + y * y);
        line[y] = shifted ? kernel_.above(part_, r2, far2) : kernel_(part_, r2);
      }
      std::fill(line + half[1] + 1, line + stride_y, 0.0);
    }
  });
  team.for_chunks(stride_y / kernel.lanes, [&](Size chunk, int worker) {
    kernel.fft_even_lines(along_x.plan(), by_x.get() + chunk * kernel.lanes, stride_y,
                          scratch.data() + at(worker) * worker_scratch);
  });

  // [y][kx], then the transform along y.
  const Size stride_x = round_up(half[0] + 1, kernel.lanes);
  const std::unique_ptr<double[]> by_y = room((half[1] + 1) * stride_x);
  parallel_for(team, half[1] + 1, kColumnsPerChunk, [&](Size begin, Size end) {
    for (Size y = begin; y < end; ++y) {
      double* line = by_y.get() + y * stride_x;
      for (Size x = 0; x <= half[0]; ++x) {
        line[x] = by_x[at(x * stride_y + y)];
      }
      std::fill(line + half[0] + 1, line + stride_x, 0.0);
    }
  });
  team.for_chunks(stride_x / kernel.lanes, [&](Size chunk, int worker) {
    kernel.fft_even_lines(along_y.plan(), by_y.get() + chunk * kernel.lanes, stride_x,
                          scratch.data() + at(worker) * worker_scratch);
  });

  const Size lanes = grid_kernels_.lanes;
  const Size kernel_slab = (half[1] + 1) * lanes;
  values_.assign(at(slabs_ * kernel_slab), Real(0));
  // Each row's contribution to the inverse transform at the nodes (m, n), m and n up to 3.
  struct NearNodes {
    double values[4][4] = {};
    NearNodes& operator+=(const NearNodes& other) {
      for (int n = 0; n < 4; ++n) {
        for (int m = 0; m < 4; ++m) {
          values[n][m] += other.values[n][m];
        }
      }
      return *this;
    }
  };
  std::vector<NearNodes> partials;
  const double points = 4.0 * static_cast<double>(half[0]) * static_cast<double>(half[1]);
  const NearNodes near =
      parallel_sum(team, half[1] + 1, kColumnsPerChunk, partials, [&](Size begin, Size end) {
        NearNodes sum;
        for (Size y = begin; y < end; ++y) {
          double row[4] = {};
          for (Size x = 0; x <= half[0]; ++x) {
            const double window = splines_x[at(x)] * spline_spectrum(y, half[1]);
            const double value = by_y[at(y * stride_x + x)] / (window * window * points);
            values_[at(x / lanes * kernel_slab + y * lanes + x % lanes)] = static_cast<Real>(value);
            for (int m = 0; m < 4; ++m) {
              row[m] += value * cosines_x[at(4 * x + m)];
            }
          }
          for (int n = 0; n < 4; ++n) {
            for (int m = 0; m < 4; ++m) {
              sum.values[n][m] += cosine(n, y, half[1]) * row[m];
            }
          }
        }
        return sum;
      });
  std::copy_n(&near.values[0][0], 16, &near_nodes_[0][0]);
}

template class KernelSpectrum<float>;
template class KernelSpectrum<double>;

} // namespace acctsne
