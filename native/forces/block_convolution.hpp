// Convolution of a wide grid with the near part of the kernel, block by block, for step 6 on a
// grid. Blocks are convolved in caches and on one thread each, and a process can leave out those
// that it does not need.
#pragma once

#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "forces/grid.hpp"
#include "forces/grid_blocks.hpp"
#include "forces/kernel_spectrum.hpp"

#include <vector>

namespace acctsne {

template <typename Real>
class BlockConvolution {
public:
  explicit BlockConvolution(GridKernel kernel) : kernel_(kernel) {}

  // Gives both grids nodes[0] x nodes[1] nodes, a step apart.
  void prepare(const GridBlocks& blocks, const Size (&nodes)[2], double step, Grid<Real>& charges,
               Grid<Real>& potential, ThreadTeam& team);
  const GridBlocks& blocks() const { return blocks_; }
  const KernelSpectrum<Real>& kernel() const { return kernel_; }

  // Writes the potential of one block.
  void run(const Grid<Real>& charges, Size block, Grid<Real>& potential, int worker);

private:
  // A block and its margins.
  struct Window {
    Grid<Real> grid;
    std::vector<Real> spectrum;
    std::vector<Real> scratch;
  };

  bool fill(const Grid<Real>& charges, Size block, Grid<Real>& window) const;

  GridBlocks blocks_;
  KernelSpectrum<Real> kernel_;
  std::vector<Window> windows_; // of the threads
};

} // namespace acctsne
