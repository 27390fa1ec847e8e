// Overlap-save: a window that is a block and its margins is transformed, multiplied by the kernel's
// spectrum and transformed back. The transform takes the window for periodic, which spoils the
// margins and nothing else, as the near part does not reach further.
#include "forces/block_convolution.hpp"

#include <algorithm>

namespace acctsne {

template <typename Real>
void BlockConvolution<Real>::prepare(const GridBlocks& blocks, const Size (&nodes)[2], double step,
                                     Grid<Real>& charges, Grid<Real>& potential, ThreadTeam& team) {
  blocks_ = blocks;
  const Size window[2] = {blocks.length(), blocks.length()};
  kernel_.prepare(KernelPart::near, window, step, team);
  const Size stride = kernel_.stride_for(blocks.count[1] * blocks.side);
  charges.resize(nodes, stride);
  potential.resize(nodes, stride);
  windows_.resize(std::max(windows_.size(), at(team.size())));
  for (Window& each : windows_) {
    each.grid.resize(window, kernel_.stride_for(window[1]));
    each.spectrum.resize(kernel_.spectrum_size(window[1]));
    each.scratch.resize(kernel_.scratch_size());
  }
}

template <typename Real>
void BlockConvolution<Real>::run(const Grid<Real>& charges, Size block, Grid<Real>& potential,
                                 int worker) {
  Window& window = windows_[at(worker)];
  const Rows columns = blocks_.columns_of(block);
  const Rows rows = blocks_.rows_of(block);
  const Size last_column = std::min(columns.end, potential.nodes(0));
  if (!fill(charges, block, window.grid)) {
    for (Size x = columns.begin; x < last_column; ++x) {
      std::fill_n(potential.column(x) + rows.begin, blocks_.side, Real(0));
    }
    return;
  }
  const Size length = blocks_.length();
  Real* spectrum = window.spectrum.data();
  Real* scratch = window.scratch.data();
  for (Size set = 0; set < kernel_.row_sets(length); ++set) {
    kernel_.transform_rows(window.grid, set, spectrum, scratch);
  }
  for (Size slab = 0; slab < kernel_.slabs(); ++slab) {
    kernel_.convolve_slab(length, slab, spectrum, scratch);
  }
  // Not those of margins alone.
  const Size last_set = kernel_.row_sets(blocks_.margin + blocks_.side);
  for (Size set = blocks_.margin / kernel_.rows_at_once(); set < last_set; ++set) {
    kernel_.transform_rows_back(spectrum, set, window.grid, scratch);
  }
  for (Size x = columns.begin; x < last_column; ++x) {
    const Real* from = window.grid.column(x - columns.begin + blocks_.margin) + blocks_.margin;
    std::copy_n(from, blocks_.side, potential.column(x) + rows.begin);
  }
}

// Returns whether there are charges in a window.
template <typename Real>
bool BlockConvolution<Real>::fill(const Grid<Real>& charges, Size block, Grid<Real>& window) const {
  const Size first_column = blocks_.columns_of(block).begin - blocks_.margin;
  const Size first_row = blocks_.rows_of(block).begin - blocks_.margin;
  const Rows columns = {std::max<Size>(first_column, 0),
                        std::min(first_column + blocks_.length(), charges.nodes(0))};
  const Rows rows = {std::max<Size>(first_row, 0),
                     std::min(first_row + blocks_.length(), charges.nodes(1))};
  const auto has_charge = [&](Size x) {
    const Real* column = charges.column(x);
    return std::any_of(column + rows.begin, column + rows.end, [](Real q) { return q != 0; });
  };
  Size x = columns.begin;
  while (x < columns.end && !has_charge(x)) {
    ++x;
  }
  if (x == columns.end) {
    return false;
  }
  for (Size i = 0; i < blocks_.length(); ++i) {
    Real* to = window.column(i);
    const Size from = first_column + i;
    if (from < columns.begin || from >= columns.end) {
      std::fill_n(to, window.stride(), Real(0));
      continue;
    }
    Real* next = std::fill_n(to, rows.begin - first_row, Real(0));
    next = std::copy(charges.column(from) + rows.begin, charges.column(from) + rows.end, next);
    // The transform reads whole vectors.
    std::fill(next, to + window.stride(), Real(0));
  }
  return true;
}

template class BlockConvolution<float>;
template class BlockConvolution<double>;

} // namespace acctsne
