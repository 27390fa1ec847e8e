// Convolution of one grid of charges with the kernel, for step 6 on a grid.
#pragma once

#include "acctsne/parallel.hpp"
#include "acctsne/types.hpp"
#include "forces/grid.hpp"
#include "forces/kernel_spectrum.hpp"

#include <span>
#include <vector>

namespace acctsne {

template <typename Real>
class GridConvolution {
public:
  explicit GridConvolution(GridKernel kernel) : kernel_(kernel) {}

  // Gives the grid nodes[0] x nodes[1] nodes, a step apart. The near part takes more nodes an axis
  // than its reach.
  void prepare(KernelPart part, const Size (&nodes)[2], double step, Grid<Real>& grid,
               ThreadTeam& team);
  const KernelSpectrum<Real>& kernel() const { return kernel_; }

  struct Task {
    GridConvolution* convolution;
    Grid<Real>* grid; // as it was prepared
  };
  // Replaces the charges of grids by their potential, of all in the same loops: a small grid has
  // too few lines to keep many threads busy.
  static void run(std::span<const Task> tasks, ThreadTeam& team);

private:
  Real* scratch(int worker) { return scratch_.data() + at(worker) * kernel_.scratch_size(); }

  KernelSpectrum<Real> kernel_;
  std::vector<Real> spectrum_; // of the charges
  std::vector<Real> scratch_;
};

} // namespace acctsne
