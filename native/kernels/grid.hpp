// What the repulsion on a grid asks of the kernels: splines between points and nodes, transforms of
// lines, and the way between two grids.
#pragma once

#include "acctsne/types.hpp"
#include "kernels/variants.hpp"

namespace acctsne {

// A complex FFT of 2^a 3^b 5^c elements, a >= 4, cut into passes; the first and the last have radix
// 4. In between, a pass does many small FFTs, which are cut into factors of 2 to 5.
struct FftPass {
  int radix;
  int factors;
  int factor[6];
};
inline constexpr int kMaxRadix = 64; // two buffers of so many complex vectors fit the first cache
template <typename Real>
struct FftPlan {
  Size length;
  int passes;
  FftPass pass[4];
  // Of each pass but the last: the factors' but the last, then its own; for each block, the powers
  // 1 ... radix - 1 of its root, cosine and sine.
  const Real* twiddles;
};

// Where the nodes of the grid [x][y] lie.
template <typename Real>
struct GridGeometry {
  Real lower[2];     // node (0, 0)
  Real inverse_step; // nodes per unit
  Real force_scale;  // force for a potential that grows by 1 a step
  Size stride;       // elements from one x to the next
  Size first_column; // the x whose column the array begins with
  Real self[4][4];   // what a charge on node (0, 0) does to nodes (+-m, +-n), summed over the signs
};

// The coefficient of a coarse cubic B-spline in the sum of fine ones with a quarter of its step
// that it equals, after three zeros: the fourfold convolution of four ones, over 64.
inline constexpr Size kCoarseness = 4;
template <typename Real>
struct TwoScale {
  static constexpr Real kWeights[16] = {0,
                                        0,
                                        0,
                                        Real(1) / 64, //
                                        Real(4) / 64,
                                        Real(10) / 64,
                                        Real(20) / 64,
                                        Real(31) / 64, //
                                        Real(40) / 64,
                                        Real(44) / 64,
                                        Real(40) / 64,
                                        Real(31) / 64, //
                                        Real(20) / 64,
                                        Real(10) / 64,
                                        Real(4) / 64,
                                        Real(1) / 64};
};

template <typename Real>
struct GridKernels {
  int lanes; // of a vector of Real

  // forces/kernel_spectrum.cpp: three parts of a convolution, each for the rows or columns that
  // fill a vector, and the transform of lines that are even.
  // `scratch` holds 6 * length * vector lanes elements.
  void (*fft_grid_to_spectrum)(const FftPlan<Real>& plan, const Real* grid, Size grid_stride,
                               Size columns, Real* spectrum, Size slab_size, Real* scratch);
  void (*fft_convolve_slab)(const FftPlan<Real>& plan, const Real* kernel, Size rows, Real* slab,
                            Real* scratch);
  void (*fft_spectrum_to_grid)(const FftPlan<Real>& plan, const Real* spectrum, Size slab_size,
                               Real* grid, Size grid_stride, Size columns, Real* scratch);
  void (*fft_even_lines)(const FftPlan<Real>& plan, Real* lines, Size stride, Real* scratch);
  // forces/coarse_grid.cpp: between the fine and the coarse grid.
  void (*coarsen_line)(const Real* fine, Size coarse_nodes, Real* coarse);
  void (*refine_line)(const Real* coarse, Size fours, Real* fine);
  void (*add_lines)(const Real* const* lines, const Real* weights, int count, Size length,
                    Real* to);
  // forces/charge_spreader.cpp: from points to the grid, in 1-D and in 2-D.
  using SpreadPoints = void (*)(const GridGeometry<Real>& geometry, const Real* points,
                                const PointId* ids, Size count, Real* grid);
  SpreadPoints spread_points[2];
  // forces/repulsive_fft.cpp: from the grid to points, likewise.
  using GatherPoints = double (*)(const GridGeometry<Real>& geometry, const Real* points,
                                  Size count, const Real* grid, Real* force);
  GatherPoints gather_points[2];
};

} // namespace acctsne
