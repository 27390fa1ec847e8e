// Step 6, repulsive forces, by convolution on a grid.
//
// With the potential phi(y) = sum_j (1 + |y - y_j|^2)^-e, e the exponent, the repulsive force is
// -1/(2 e) grad phi and Z = sum_i phi(y_i), each without the point's own part: one charge and one
// convolution give both (FIt-SNE and openTSNE convolve four).
//
// 1. Spread: each point adds cubic B-spline weights to 4 x 4 nodes. Points are sorted by strips of
//    columns; strips with even numbers, then with odd ones, are worked on in parallel, so no two
//    threads meet and the order of additions is fixed.
// 2. Convolve: FFT along x and y, times the kernel's spectrum, and back (kernels/fft-inl.hpp).
//    Lines are padded to twice their length, so that the map does not feel its periodic images.
// 3. Gather: the potential's spline and its analytic gradient at each point, less what the point's
//    own charge did to it, which is a small polynomial in its place within the grid cell.
//
// The kernel's spectrum is the transform of (1 + r^2)^-e sampled at the nodes, divided twice by
// the transform of the B-spline sampled at the nodes: with that, two points on nodes interact
// exactly. Against dividing by the continuous spline's transform, the force error falls from 4.0 to
// 2.8 % (digits) and from 2.8 to 2.3 % (MNIST-70k) at step 0.45. It depends on the step and the
// lengths alone and is kept until one of them changes.
#include "forces/repulsive_fft.hpp"

#include "kernels/dispatch.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace acctsne {
namespace {

// Columns of a strip. At least 4, so that strips of one parity never touch the same column.
constexpr Size kStripColumns = 8;
constexpr Size kPointsPerChunk = 4096;
// A map that needs fewer nodes than this gets a finer grid: the transform then costs next to
// nothing.
constexpr double kFineNodes = 64;

Size round_up(Size value, Size multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

} // namespace

double grid_step_for_error(double error, double exponent) {
  return 0.43 * std::pow(error / 0.02, 0.25) / std::sqrt(std::max(exponent, 1.0));
}

template <typename Real, int Dims>
double FftRepulsion<Real, Dims>::nodes_needed(const Real* lower, const Real* upper, double step) {
  double span = 0;
  for (int axis = 0; axis < Dims; ++axis) {
    span = std::max(span, static_cast<double>(upper[axis]) - static_cast<double>(lower[axis]));
  }
  return span / step + 5;
}

template <typename Real, int Dims>
double FftRepulsion<Real, Dims>::forces(const Real* points, Size count, const Real* lower,
                                        const Real* upper, double step, Real* force,
                                        ThreadTeam& team) {
  compute_potential(points, count, lower, upper, step, team);
  const auto pairs = static_cast<double>(count) * static_cast<double>(count - 1);
  return gather(points, force, team) + kernel_shift_ * pairs;
}

template <typename Real, int Dims>
void FftRepulsion<Real, Dims>::compute_potential(const Real* points, Size count, const Real* lower,
                                                 const Real* upper, double step, ThreadTeam& team) {
  prepare_grid(lower, upper, step, team);
  sort_into_strips(points, count, team);
  spread(points, team);
  convolve(team);
  outside_geometry_ = geometry_;
  std::fill_n(&outside_geometry_.self[0][0], 16, Real(0));
}

template <typename Real, int Dims>
bool FftRepulsion<Real, Dims>::covers(const Real* y) const {
  for (int axis = 0; axis < Dims; ++axis) {
    const Real at = (y[axis] - geometry_.lower[axis]) * geometry_.inverse_step;
    if (!(at >= 0 && at < static_cast<Real>(nodes_[axis] - 3))) {
      return false;
    }
  }
  return true;
}

template <typename Real, int Dims>
double FftRepulsion<Real, Dims>::at(const Real* y, Real* force) const {
  constexpr PointId kOnly = 0;
  const auto kernel = kernels().of<Real>().gather_points[Dims - 1];
  return kernel(outside_geometry_, y, &kOnly, 1, grid_.data(), force) +
         kernel_shift_ * static_cast<double>(ids_.size());
}

template <typename Real, int Dims>
void FftRepulsion<Real, Dims>::prepare_grid(const Real* lower, const Real* upper, double step,
                                            ThreadTeam& team) {
  const RealKernels<Real>& kernel = kernels().of<Real>();
  const double nodes = nodes_needed(lower, upper, step);
  step = nodes < kFineNodes / 2 ? step / 4 : (nodes < kFineNodes ? step / 2 : step);

  geometry_.inverse_step = static_cast<Real>(1 / step);
  geometry_.force_scale = static_cast<Real>(-0.5 / exponent_) * geometry_.inverse_step;
  Size lengths[2] = {16, 16};
  nodes_[1] = 4;
  geometry_.lower[1] = 0;
  for (int axis = 0; axis < Dims; ++axis) {
    geometry_.lower[axis] = lower[axis];
    // In the arithmetic of the kernels: the largest first node any point can have.
    const Real last = (upper[axis] - lower[axis]) * geometry_.inverse_step;
    nodes_[axis] = static_cast<Size>(last) + 4;
    lengths[axis] = fft_length(2 * nodes_[axis]);
  }

  bool same = kernel_fits_ && step == step_;
  for (int axis = 0; axis < 2; ++axis) {
    same = same && tables_[axis] && tables_[axis]->length() == lengths[axis];
  }
  const auto workers = static_cast<std::size_t>(team.size());
  if (!same) {
    kernel_fits_ = false; // until it is computed to the end, which the user may not wait for
    step_ = step;
    Size scratch_size = 0;
    for (int axis = 0; axis < 2; ++axis) {
      tables_[axis] = std::make_unique<FftTables<Real>>(lengths[axis]);
      scratch_size = std::max(scratch_size, tables_[axis]->scratch_size(kernel.lanes));
    }
    scratch_size_ = static_cast<std::size_t>(scratch_size);
    // One vector more than needed keeps columns from mapping to the same cache sets.
    geometry_.stride = round_up(lengths[1] / 2, 2 * kernel.lanes) + kernel.lanes;
    grid_.resize(static_cast<std::size_t>(lengths[0] / 2 * geometry_.stride));
    slabs_ = chunk_count(lengths[0] / 2 + 1, kernel.lanes);
    slab_size_ = round_up(lengths[1] / 2, 2 * kernel.lanes) * 2 * kernel.lanes;
    spectrum_.resize(static_cast<std::size_t>(slabs_ * slab_size_));
  }
  scratch_.resize(std::max(scratch_.size(), workers * scratch_size_));
  if (!same) {
    compute_kernel_spectrum(team);
    kernel_fits_ = true;
  }
}

template <typename Real, int Dims>
void FftRepulsion<Real, Dims>::compute_kernel_spectrum(ThreadTeam& team) {
  // In double whatever Real is: high frequencies are 1e-5 of the lowest.
  const RealKernels<double>& kernel = kernels().of<double>();
  const Size half[2] = {tables_[0]->length() / 2, tables_[1]->length() / 2};
  const FftTables<double> along_x(2 * half[0]);
  const FftTables<double> along_y(2 * half[1]);
  const auto worker_scratch = static_cast<std::size_t>(
      std::max(along_x.scratch_size(kernel.lanes), along_y.scratch_size(kernel.lanes)));
  std::vector<double> scratch(worker_scratch * static_cast<std::size_t>(team.size()));

  // A small exponent makes the kernel nearly constant, and its slope would drown in the rounding of
  // the potential. The constant part can be taken off: it pushes nobody.
  const double far2 = step_ * step_ * static_cast<double>(half[0] * half[0] + half[1] * half[1]);
  kernel_shift_ = exponent_ < 1 ? std::pow(1 + far2, -exponent_) : 0;

  // [x][y], the kernel and then its transform along x.
  const Size stride_y = round_up(half[1] + 1, kernel.lanes);
  std::vector<double> by_x(static_cast<std::size_t>((half[0] + 1) * stride_y));
  parallel_for(team, half[0] + 1, 16, [&](Size begin, Size end) {
    for (Size x = begin; x < end; ++x) {
      for (Size y = 0; y <= half[1]; ++y) {
        const double dx = static_cast<double>(x) * step_;
        const double dy = static_cast<double>(y) * step_;
        const double one_plus_r2 = 1 + dx * dx + dy * dy;
        by_x[static_cast<std::size_t>(x * stride_y + y)] =
            exponent_ == 1 ? 1 / one_plus_r2 : std::pow(one_plus_r2, -exponent_) - kernel_shift_;
      }
    }
  });
  team.for_chunks(stride_y / kernel.lanes, [&](Size chunk, int worker) {
    kernel.fft_even_lines(along_x.plan(), by_x.data() + chunk * kernel.lanes, stride_y,
                          scratch.data() + static_cast<std::size_t>(worker) * worker_scratch);
  });

  // [y][kx], then the transform along y.
  const Size stride_x = round_up(half[0] + 1, kernel.lanes);
  std::vector<double> by_y(static_cast<std::size_t>((half[1] + 1) * stride_x));
  parallel_for(team, half[1] + 1, 16, [&](Size begin, Size end) {
    for (Size y = begin; y < end; ++y) {
      for (Size x = 0; x <= half[0]; ++x) {
        by_y[static_cast<std::size_t>(y * stride_x + x)] =
            by_x[static_cast<std::size_t>(x * stride_y + y)];
      }
    }
  });
  team.for_chunks(stride_x / kernel.lanes, [&](Size chunk, int worker) {
    kernel.fft_even_lines(along_y.plan(), by_y.data() + chunk * kernel.lanes, stride_x,
                          scratch.data() + static_cast<std::size_t>(worker) * worker_scratch);
  });

  // The cubic B-spline at the nodes is 1/6, 4/6, 1/6.
  const auto spline = [](Size k, Size half_length) {
    return (2 + std::cos(std::numbers::pi * static_cast<double>(k) /
                         static_cast<double>(half_length))) /
           3;
  };
  const Size lanes = kernels().of<Real>().lanes;
  const Size kernel_slab = (half[1] + 1) * lanes;
  kernel_.assign(static_cast<std::size_t>(slabs_ * kernel_slab), Real(0));
  // Each row's contribution to the kernel's inverse transform at the nodes (m, n), m and n up to 3.
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
  // Frequencies 0 and half the length occur once in the full spectrum, the others twice; so do
  // nodes other than 0.
  const auto occurrences = [](Size k, Size half_length) {
    return k == 0 || k == half_length ? 1.0 : 2.0;
  };
  const auto cosine = [](int m, Size k, Size half_length) {
    return (m == 0 ? 1.0 : 2.0) * std::cos(std::numbers::pi * static_cast<double>(m * k) /
                                           static_cast<double>(half_length));
  };
  const double points = 4.0 * static_cast<double>(half[0]) * static_cast<double>(half[1]);
  std::vector<double> cosines_x(static_cast<std::size_t>(4 * (half[0] + 1)));
  std::vector<double> splines_x(static_cast<std::size_t>(half[0] + 1));
  for (Size x = 0; x <= half[0]; ++x) {
    splines_x[static_cast<std::size_t>(x)] = spline(x, half[0]);
    for (int m = 0; m < 4; ++m) {
      cosines_x[static_cast<std::size_t>(4 * x + m)] =
          occurrences(x, half[0]) * cosine(m, x, half[0]);
    }
  }
  const NearNodes near = parallel_sum(team, half[1] + 1, 16, partials, [&](Size begin, Size end) {
    NearNodes sum;
    for (Size y = begin; y < end; ++y) {
      double row[4] = {};
      for (Size x = 0; x <= half[0]; ++x) {
        const double window = splines_x[static_cast<std::size_t>(x)] * spline(y, half[1]);
        const double value =
            by_y[static_cast<std::size_t>(y * stride_x + x)] / (window * window * points);
        kernel_[static_cast<std::size_t>(x / lanes * kernel_slab + y * lanes + x % lanes)] =
            static_cast<Real>(value);
        for (int m = 0; m < 4; ++m) {
          row[m] += value * cosines_x[static_cast<std::size_t>(4 * x + m)];
        }
      }
      for (int n = 0; n < 4; ++n) {
        for (int m = 0; m < 4; ++m) {
          sum.values[n][m] += occurrences(y, half[1]) * cosine(n, y, half[1]) * row[m];
        }
      }
    }
    return sum;
  });
  for (int n = 0; n < 4; ++n) {
    for (int m = 0; m < 4; ++m) {
      geometry_.self[n][m] = static_cast<Real>(near.values[n][m]);
    }
  }
}

template <typename Real, int Dims>
void FftRepulsion<Real, Dims>::sort_into_strips(const Real* points, Size count, ThreadTeam& team) {
  const auto n = static_cast<std::size_t>(count);
  const auto strips = static_cast<std::size_t>(chunk_count(nodes_[0], kStripColumns));
  const auto chunks = static_cast<std::size_t>(chunk_count(count, kPointsPerChunk));
  ids_.resize(n);
  strip_of_.resize(n);
  strip_starts_.resize(strips + 1);
  histograms_.resize(chunks * strips);

  parallel_for(team, count, kPointsPerChunk, [&](Size begin, Size end) {
    std::uint32_t* histogram =
        histograms_.data() + static_cast<std::size_t>(begin / kPointsPerChunk) * strips;
    std::fill_n(histogram, strips, 0u);
    for (Size i = begin; i < end; ++i) {
      const Real at = (points[i * Dims] - geometry_.lower[0]) * geometry_.inverse_step;
      const auto strip = static_cast<std::int32_t>(at) / static_cast<std::int32_t>(kStripColumns);
      strip_of_[static_cast<std::size_t>(i)] = strip;
      ++histogram[strip];
    }
  });
  std::uint32_t start = 0;
  for (std::size_t strip = 0; strip < strips; ++strip) {
    strip_starts_[strip] = start;
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      start += std::exchange(histograms_[chunk * strips + strip], start);
    }
  }
  strip_starts_[strips] = start;
  parallel_for(team, count, kPointsPerChunk, [&](Size begin, Size end) {
    std::uint32_t* next =
        histograms_.data() + static_cast<std::size_t>(begin / kPointsPerChunk) * strips;
    for (Size i = begin; i < end; ++i) {
      ids_[next[strip_of_[static_cast<std::size_t>(i)]]++] = static_cast<PointId>(i);
    }
  });
}

template <typename Real, int Dims>
void FftRepulsion<Real, Dims>::spread(const Real* points, ThreadTeam& team) {
  parallel_for(team, nodes_[0], 16, [&](Size begin, Size end) {
    std::fill_n(grid_.data() + begin * geometry_.stride, (end - begin) * geometry_.stride, Real(0));
  });
  const auto kernel = kernels().of<Real>().spread_points[Dims - 1];
  const Size strips = static_cast<Size>(strip_starts_.size()) - 1;
  for (Size parity = 0; parity < 2; ++parity) {
    team.for_chunks((strips - parity + 1) / 2, [&](Size chunk, int) {
      const auto strip = static_cast<std::size_t>(2 * chunk + parity);
      const Size begin = strip_starts_[strip];
      kernel(geometry_, points, ids_.data() + begin, strip_starts_[strip + 1] - begin,
             grid_.data());
    });
  }
}

template <typename Real, int Dims>
void FftRepulsion<Real, Dims>::convolve(ThreadTeam& team) {
  const RealKernels<Real>& kernel = kernels().of<Real>();
  const Size rows_at_once = 2 * kernel.lanes;
  const Size row_sets = chunk_count(nodes_[1], rows_at_once);
  const Size row_size = 2 * kernel.lanes; // of one row in a slab
  team.for_chunks(row_sets, [&](Size set, int worker) {
    const Size row = set * rows_at_once;
    kernel.fft_grid_to_spectrum(tables_[0]->plan(), grid_.data() + row, geometry_.stride, nodes_[0],
                                spectrum_.data() + row * row_size, slab_size_, scratch(worker));
  });
  team.for_chunks(slabs_, [&](Size slab, int worker) {
    const Size kernel_slab = (tables_[1]->length() / 2 + 1) * kernel.lanes;
    kernel.fft_convolve_slab(tables_[1]->plan(), kernel_.data() + slab * kernel_slab, nodes_[1],
                             spectrum_.data() + slab * slab_size_, scratch(worker));
  });
  team.for_chunks(row_sets, [&](Size set, int worker) {
    const Size row = set * rows_at_once;
    kernel.fft_spectrum_to_grid(tables_[0]->plan(), spectrum_.data() + row * row_size, slab_size_,
                                grid_.data() + row, geometry_.stride, nodes_[0], scratch(worker));
  });
}

template <typename Real, int Dims>
double FftRepulsion<Real, Dims>::gather(const Real* points, Real* force, ThreadTeam& team) {
  const auto kernel = kernels().of<Real>().gather_points[Dims - 1];
  return parallel_sum(
      team, static_cast<Size>(ids_.size()), kPointsPerChunk, partials_, [&](Size begin, Size end) {
        return kernel(geometry_, points, ids_.data() + begin, end - begin, grid_.data(), force);
      });
}

template class FftRepulsion<float, 1>;
template class FftRepulsion<float, 2>;
template class FftRepulsion<double, 1>;
template class FftRepulsion<double, 2>;

} // namespace acctsne
