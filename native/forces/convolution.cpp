// FFT along x and y, times the kernel's spectrum, and back (forces/kernel_spectrum.hpp). Lines are
// padded by the kernel's reach, so that the map does not feel its periodic images: by their own
// length, or by kNearReach.
#include "forces/convolution.hpp"

#include <algorithm>
#include <cmath>

namespace acctsne {

template <typename Real>
void GridConvolution<Real>::prepare(KernelPart part, const Size (&nodes)[2], double step,
                                    Grid<Real>& grid, ThreadTeam& team) {
  const auto reach = static_cast<Size>(std::ceil(kNearReach / step));
  Size lengths[2];
  Size most_rows = 0; // that these lengths allow
  for (int axis = 0; axis < 2; ++axis) {
    const bool near = part == KernelPart::near;
    lengths[axis] = fft_length(near ? nodes[axis] + reach : 2 * nodes[axis]);
    most_rows = near ? lengths[axis] - reach : lengths[axis] / 2;
  }
  kernel_.prepare(part, lengths, step, team);
  grid.resize(nodes, kernel_.stride_for(most_rows));
  spectrum_.resize(std::max(spectrum_.size(), kernel_.spectrum_size(most_rows)));
  scratch_.resize(std::max(scratch_.size(), at(team.size()) * kernel_.scratch_size()));
}

template <typename Real>
void GridConvolution<Real>::run(std::span<const Task> tasks, ThreadTeam& team) {
  // The chunks of all, one grid's after the other's.
  const auto for_chunks = [&](auto&& count, auto&& body) {
    Size chunks = 0;
    for (const Task& task : tasks) {
      chunks += count(task);
    }
    team.for_chunks(chunks, [&](Size chunk, int worker) {
      auto task = tasks.begin();
      while (chunk >= count(*task)) {
        chunk -= count(*task++);
      }
      GridConvolution& convolution = *task->convolution;
      body(convolution, *task->grid, chunk, convolution.scratch(worker));
    });
  };
  const auto row_sets = [](const Task& task) {
    return task.convolution->kernel_.row_sets(task.grid->nodes(1));
  };
  const auto slabs = [](const Task& task) { return task.convolution->kernel_.slabs(); };
  for_chunks(row_sets, [](GridConvolution& self, Grid<Real>& grid, Size set, Real* scratch) {
    self.kernel_.transform_rows(grid, set, self.spectrum_.data(), scratch);
  });
  for_chunks(slabs, [](GridConvolution& self, Grid<Real>& grid, Size slab, Real* scratch) {
    self.kernel_.convolve_slab(grid.nodes(1), slab, self.spectrum_.data(), scratch);
  });
  for_chunks(row_sets, [](GridConvolution& self, Grid<Real>& grid, Size set, Real* scratch) {
    self.kernel_.transform_rows_back(self.spectrum_.data(), set, grid, scratch);
  });
}

template class GridConvolution<float>;
template class GridConvolution<double>;

} // namespace acctsne
