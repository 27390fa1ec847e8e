// FFT along x and y, times the kernel's spectrum, and back (kernels/fft-inl.hpp). Lines are padded
// by the kernel's reach, so that the map does not feel its periodic images: by their own length, or
// by kNearReach.
//
// The kernel's spectrum is the transform of the kernel sampled at the nodes, divided twice by the
// transform of the B-spline sampled at the nodes: with that, two points on nodes interact exactly,
// which the continuous spline's transform would not give. It depends on the part, the step and the
// lengths alone and is kept until one of them changes.
#include "forces/convolution.hpp"

#include "kernels/dispatch.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace acctsne {
namespace {

// Few enough for the shares of many threads to be even.
constexpr Size kColumnsPerChunk = 4;

Size round_up(Size value, Size multiple) {
  return (value + multiple - 1) / multiple * multiple;
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
void GridConvolution<Real>::prepare(KernelPart part, const Size (&nodes)[2], double step,
                                    ThreadTeam& team) {
  const GridKernels<Real>& kernel = kernels().grid.of<Real>();
  const auto reach = static_cast<Size>(std::ceil(kNearReach / step));
  Size lengths[2];
  Size room[2]; // the most nodes that these lengths allow
  bool same = spectrum_fits_ && part == part_ && step == step_;
  for (int axis = 0; axis < 2; ++axis) {
    nodes_[axis] = nodes[axis];
    if (part == KernelPart::near) {
      lengths[axis] = fft_length(nodes[axis] + reach);
      room[axis] = lengths[axis] - reach;
    } else {
      lengths[axis] = fft_length(2 * nodes[axis]);
      room[axis] = lengths[axis] / 2;
    }
    same = same && tables_[axis]->length() == lengths[axis];
  }
  if (!same) {
    spectrum_fits_ = false; // until it is computed to the end, which the user may not wait for
    part_ = part;
    step_ = step;
    Size scratch_size = 0;
    for (int axis = 0; axis < 2; ++axis) {
      tables_[axis] = std::make_unique<FftTables<Real>>(lengths[axis]);
      scratch_size = std::max(scratch_size, tables_[axis]->scratch_size(kernel.lanes));
    }
    scratch_size_ = static_cast<std::size_t>(scratch_size);
    // One vector more than needed keeps columns from mapping to the same cache sets.
    const Size rows = round_up(room[1], 2 * kernel.lanes);
    stride_ = rows + kernel.lanes;
    grid_.resize(static_cast<std::size_t>(room[0] * stride_));
    slabs_ = chunk_count(lengths[0] / 2 + 1, kernel.lanes);
    slab_size_ = rows * 2 * kernel.lanes;
    spectrum_.resize(static_cast<std::size_t>(slabs_ * slab_size_));
  }
  scratch_.resize(std::max(scratch_.size(), static_cast<std::size_t>(team.size()) * scratch_size_));
  if (!same) {
    compute_spectrum(team);
    spectrum_fits_ = true;
  }
}

template <typename Real>
void GridConvolution<Real>::clear(ThreadTeam& team) {
  parallel_for(team, nodes_[0], kColumnsPerChunk, [&](Size begin, Size end) {
    std::fill_n(column(begin), (end - begin) * stride_, Real(0));
  });
}

template <typename Real>
void GridConvolution<Real>::run(std::span<GridConvolution* const> all, ThreadTeam& team) {
  // The chunks of all, one convolution's after the other's.
  const auto for_chunks = [&](auto&& count, auto&& body) {
    Size chunks = 0;
    for (const GridConvolution* convolution : all) {
      chunks += count(*convolution);
    }
    team.for_chunks(chunks, [&](Size chunk, int worker) {
      auto convolution = all.begin();
      while (chunk >= count(**convolution)) {
        chunk -= count(**convolution++);
      }
      body(**convolution, chunk, worker);
    });
  };
  const auto row_sets = [](const GridConvolution& convolution) { return convolution.row_sets(); };
  const auto slabs = [](const GridConvolution& convolution) { return convolution.slabs_; };
  for_chunks(row_sets, [](GridConvolution& convolution, Size set, int worker) {
    convolution.transform_rows(set, worker);
  });
  for_chunks(slabs, [](GridConvolution& convolution, Size slab, int worker) {
    convolution.convolve_slab(slab, worker);
  });
  for_chunks(row_sets, [](GridConvolution& convolution, Size set, int worker) {
    convolution.transform_rows_back(set, worker);
  });
}

template <typename Real>
Size GridConvolution<Real>::rows_at_once() {
  return 2 * kernels().grid.of<Real>().lanes;
}

template <typename Real>
void GridConvolution<Real>::transform_rows(Size set, int worker) {
  const Size row = set * rows_at_once();
  const Size row_size = 2 * kernels().grid.of<Real>().lanes; // of one row in a slab
  kernels().grid.of<Real>().fft_grid_to_spectrum(tables_[0]->plan(), grid_.data() + row, stride_,
                                                 nodes_[0], spectrum_.data() + row * row_size,
                                                 slab_size_, scratch(worker));
}

template <typename Real>
void GridConvolution<Real>::convolve_slab(Size slab, int worker) {
  const GridKernels<Real>& kernel = kernels().grid.of<Real>();
  const Size kernel_slab = (tables_[1]->length() / 2 + 1) * kernel.lanes;
  kernel.fft_convolve_slab(tables_[1]->plan(), kernel_spectrum_.data() + slab * kernel_slab,
                           nodes_[1], spectrum_.data() + slab * slab_size_, scratch(worker));
}

template <typename Real>
void GridConvolution<Real>::transform_rows_back(Size set, int worker) {
  const Size row = set * rows_at_once();
  const Size row_size = 2 * kernels().grid.of<Real>().lanes;
  kernels().grid.of<Real>().fft_spectrum_to_grid(
      tables_[0]->plan(), spectrum_.data() + row * row_size, slab_size_, grid_.data() + row,
      stride_, nodes_[0], scratch(worker));
}

template <typename Real>
void GridConvolution<Real>::compute_spectrum(ThreadTeam& team) {
  const Step step("repulsive: spectrum");
  // In double whatever Real is: high frequencies are 1e-5 of the lowest.
  const GridKernels<double>& kernel = kernels().grid.of<double>();
  const Size half[2] = {tables_[0]->length() / 2, tables_[1]->length() / 2};
  const FftTables<double> along_x(2 * half[0]);
  const FftTables<double> along_y(2 * half[1]);
  const auto worker_scratch = static_cast<std::size_t>(
      std::max(along_x.scratch_size(kernel.lanes), along_y.scratch_size(kernel.lanes)));
  std::vector<double> scratch(worker_scratch * static_cast<std::size_t>(team.size()));

  // In a narrow map, or with a small exponent, the kernel is nearly constant, and its slope would
  // drown in the rounding of the potential. The constant part can be taken off. The near part is
  // zero at its end as it is.
  const double far2 = step_ * step_ * static_cast<double>(half[0] * half[0] + half[1] * half[1]);
  const bool shifted = part_ != KernelPart::near;
  shift_ = shifted ? kernel_(part_, far2) : 0;

  // [x][y], the kernel and then its transform along x.
  const Size stride_y = round_up(half[1] + 1, kernel.lanes);
  const auto room = [](Size count) { // not cleared: the loops write it
    return std::unique_ptr<double[]>(new double[static_cast<std::size_t>(count)]);
  };
  const std::unique_ptr<double[]> by_x = room((half[0] + 1) * stride_y);
  parallel_for(team, half[0] + 1, kColumnsPerChunk, [&](Size begin, Size end) {
    for (Size x = begin; x < end; ++x) {
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
                          scratch.data() + static_cast<std::size_t>(worker) * worker_scratch);
  });

  // [y][kx], then the transform along y.
  const Size stride_x = round_up(half[0] + 1, kernel.lanes);
  const std::unique_ptr<double[]> by_y = room((half[1] + 1) * stride_x);
  parallel_for(team, half[1] + 1, kColumnsPerChunk, [&](Size begin, Size end) {
    for (Size y = begin; y < end; ++y) {
      double* line = by_y.get() + y * stride_x;
      for (Size x = 0; x <= half[0]; ++x) {
        line[x] = by_x[static_cast<std::size_t>(x * stride_y + y)];
      }
      std::fill(line + half[0] + 1, line + stride_x, 0.0);
    }
  });
  team.for_chunks(stride_x / kernel.lanes, [&](Size chunk, int worker) {
    kernel.fft_even_lines(along_y.plan(), by_y.get() + chunk * kernel.lanes, stride_x,
                          scratch.data() + static_cast<std::size_t>(worker) * worker_scratch);
  });

  const Size lanes = kernels().grid.of<Real>().lanes;
  const Size kernel_slab = (half[1] + 1) * lanes;
  kernel_spectrum_.assign(static_cast<std::size_t>(slabs_ * kernel_slab), Real(0));
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
  std::vector<double> cosines_x(static_cast<std::size_t>(4 * (half[0] + 1)));
  std::vector<double> splines_x(static_cast<std::size_t>(half[0] + 1));
  for (Size x = 0; x <= half[0]; ++x) {
    splines_x[static_cast<std::size_t>(x)] = spline_spectrum(x, half[0]);
    for (int m = 0; m < 4; ++m) {
      cosines_x[static_cast<std::size_t>(4 * x + m)] = cosine(m, x, half[0]);
    }
  }
  const NearNodes near =
      parallel_sum(team, half[1] + 1, kColumnsPerChunk, partials, [&](Size begin, Size end) {
        NearNodes sum;
        for (Size y = begin; y < end; ++y) {
          double row[4] = {};
          for (Size x = 0; x <= half[0]; ++x) {
            const double window =
                splines_x[static_cast<std::size_t>(x)] * spline_spectrum(y, half[1]);
            const double value =
                by_y[static_cast<std::size_t>(y * stride_x + x)] / (window * window * points);
            kernel_spectrum_[static_cast<std::size_t>(x / lanes * kernel_slab + y * lanes +
                                                      x % lanes)] = static_cast<Real>(value);
            for (int m = 0; m < 4; ++m) {
              row[m] += value * cosines_x[static_cast<std::size_t>(4 * x + m)];
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

template class GridConvolution<float>;
template class GridConvolution<double>;

} // namespace acctsne
