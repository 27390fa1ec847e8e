// A part of the kernel as the Fourier transform of a grid is multiplied by it, and the three parts
// of a convolution, each of which goes over lines that do not depend on each other
// (kernels/fft-inl.hpp):
//
// 1. transform sets of rows along x;
// 2. for slabs of frequencies along x, transform along y, multiply and transform back;
// 3. transform sets of rows back along x.
#pragma once

#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "forces/fft_plan.hpp"
#include "forces/grid.hpp"
#include "forces/grid_kernel.hpp"
#include "kernels/dispatch.hpp"

#include <memory>
#include <vector>

namespace acctsne {

template <typename Real>
class KernelSpectrum {
public:
  explicit KernelSpectrum(GridKernel kernel) : kernel_(kernel) {}

  // For transforms of these lengths, of a grid with this step. It is kept until one of them
  // changes.
  void prepare(KernelPart part, const Size (&lengths)[2], double step, ThreadTeam& team);

  Size length(int axis) const { return tables_[axis]->length(); }
  // What was taken from the kernel everywhere: it pushes nobody, but is missing in the potential.
  double shift() const { return shift_; }
  // What a charge of 1 on the coefficient (0, 0) does to (+-m, +-n), summed over the signs: [n][m].
  const double (&near_nodes() const)[4][4] { return near_nodes_; }

  // A grid of so many rows: its stride, its sets of rows, and numbers of its spectrum.
  Size stride_for(Size rows) const;
  Size rows_at_once() const { return 2 * lanes(); }
  Size row_sets(Size rows) const { return chunk_count(rows, rows_at_once()); }
  std::size_t spectrum_size(Size rows) const { return at(slabs_ * slab_size(rows)); }
  Size slabs() const { return slabs_; }
  std::size_t scratch_size() const { return scratch_size_; } // numbers that a thread needs

  void transform_rows(const Grid<Real>& grid, Size set, Real* spectrum, Real* scratch) const;
  void convolve_slab(Size rows, Size slab, Real* spectrum, Real* scratch) const;
  void transform_rows_back(const Real* spectrum, Size set, Grid<Real>& grid, Real* scratch) const;

private:
  int lanes() const { return grid_kernels_.lanes; }
  Size slab_size(Size rows) const;
  void compute(ThreadTeam& team);

  const GridKernels<Real>& grid_kernels_ = kernels().grid.of<Real>();
  GridKernel kernel_;
  KernelPart part_ = KernelPart::whole;
  double step_ = 0;
  bool is_ready_ = false;
  double shift_ = 0;
  double near_nodes_[4][4] = {};
  std::unique_ptr<FftTables<Real>> tables_[2]; // along x and y
  std::size_t scratch_size_ = 0;
  Size slabs_ = 0;           // each holds as many kx as a vector has lanes
  std::vector<Real> values_; // [slab][ky][kx], for ky up to half the length
};

} // namespace acctsne
