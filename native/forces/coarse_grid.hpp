// The grid for the far part of the kernel, for step 6 on a grid: kCoarseness times the step of the
// one that points are spread over, from which its charges and to which its potential go.
#pragma once

#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "forces/convolution.hpp"
#include "forces/grid.hpp"
#include "forces/grid_blocks.hpp"
#include "kernels/dispatch.hpp"

#include <span>
#include <vector>

namespace acctsne {

template <typename Real>
class CoarseGrid {
public:
  explicit CoarseGrid(GridKernel kernel) : convolution_(kernel) {}

  // For a fine grid with this step, convolved in these blocks if it has some.
  void prepare(const Grid<Real>& fine, double step, const GridBlocks* blocks, ThreadTeam& team);
  const KernelSpectrum<Real>& kernel() const { return convolution_.kernel(); }
  Grid<Real>& grid() { return grid_; }
  typename GridConvolution<Real>::Task convolution() { return {&convolution_, &grid_}; }

  // Takes charges over from the fine grid: all of them, or what belongs to some blocks.
  void charge(const Grid<Real>& fine, ThreadTeam& team);
  void charge(const Grid<Real>& fine, std::span<const Size> blocks, ThreadTeam& team);

  // Adds the potential to the fine grid: to all of it, or to one block by one thread.
  void add_to(Grid<Real>& fine, ThreadTeam& team);
  void add_to(Grid<Real>& fine, Size block, int worker);

private:
  void charge_column(const Grid<Real>& fine, Size x, Rows rows, int worker);

  const GridKernels<Real>& grid_kernels_ = kernels().grid.of<Real>();
  GridConvolution<Real> convolution_;
  Grid<Real> grid_;
  GridBlocks blocks_;
  // Lines between the two grids, coarse along x and fine along y, each thread's own: for charges
  // one, for the potential those that some columns or a block take.
  std::vector<Real> lines_;
  Size room_ = 0; // of a thread
  Size line_size_ = 0;
};

} // namespace acctsne
