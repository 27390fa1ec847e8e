// Convolution of a grid of charges with the kernel, for step 6 on a grid.
#pragma once

#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "forces/fft_plan.hpp"
#include "forces/grid_kernel.hpp"

#include <memory>
#include <span>
#include <vector>

namespace acctsne {

// One grid [x][y] of cubic B-spline coefficients, y contiguous: charges, then their potential.
template <typename Real>
class GridConvolution {
public:
  explicit GridConvolution(GridKernel kernel) : kernel_(kernel) {}

  // Makes room for nodes[0] x nodes[1] nodes, a step apart. The near part takes more nodes an axis
  // than its reach.
  void prepare(KernelPart part, const Size (&nodes)[2], double step, ThreadTeam& team);

  Size nodes(int axis) const { return nodes_[axis]; }
  Size stride() const { return stride_; } // from one x to the next, a multiple of the lanes
  Real* column(Size x) { return grid_.data() + x * stride_; }
  const Real* column(Size x) const { return grid_.data() + x * stride_; }
  void clear(ThreadTeam& team);

  // Replaces the charges by their potential, of all the convolutions in the same loops: a small
  // grid has too few lines to keep many threads busy.
  static void run(std::span<GridConvolution* const> all, ThreadTeam& team);

  // What was taken from the kernel everywhere: it pushes nobody, but is missing in the potential.
  double shift() const { return shift_; }
  // What a charge of 1 on the coefficient (0, 0) does to (+-m, +-n), summed over the signs: [n][m].
  const double (&near_nodes() const)[4][4] { return near_nodes_; }

private:
  // Rows of the grid that are transformed at once, and how often that is to be done.
  static Size rows_at_once();
  Size row_sets() const { return chunk_count(nodes_[1], rows_at_once()); }
  // The parts of run(), for one set of rows along x or one slab along y.
  void transform_rows(Size set, int worker);
  void convolve_slab(Size slab, int worker);
  void transform_rows_back(Size set, int worker);

  void compute_spectrum(ThreadTeam& team);
  Real* scratch(int worker) {
    return scratch_.data() + static_cast<std::size_t>(worker) * scratch_size_;
  }

  GridKernel kernel_;
  KernelPart part_ = KernelPart::whole;
  double step_ = 0;
  bool spectrum_fits_ = false; // the kernel's spectrum is that of the part, step and lengths
  double shift_ = 0;
  double near_nodes_[4][4] = {};
  std::unique_ptr<FftTables<Real>> tables_[2]; // along x and y
  Size nodes_[2] = {};
  Size stride_ = 0;
  std::vector<Real> grid_;

  Size slabs_ = 0; // of the charges' spectrum: each holds as many kx as a vector has lanes
  Size slab_size_ = 0;
  std::vector<Real> spectrum_;
  std::vector<Real> kernel_spectrum_; // [slab][ky][kx], for ky up to half the length
  std::vector<Real> scratch_;
  std::size_t scratch_size_ = 0;
};

} // namespace acctsne
