// Which kernels run: the best level that both this build and this CPU have, unless ACCTSNE_SIMD
// names another.
#pragma once

#include "kernels/all_pairs.hpp"
#include "kernels/attractive.hpp"
#include "kernels/grid.hpp"
#include "kernels/linear.hpp"
#include "kernels/perplexity.hpp"
#include "kernels/search.hpp"
#include "kernels/tree.hpp"
#include "kernels/update.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace acctsne {

// The innermost loops of every step, compiled once per instruction set from one body. Callers look
// up what they need before a pass, and hand over raw pointers only; vector types never cross this
// border.
struct KernelTables {
  const char* level;
  const Both<LinearKernels>& linear;
  const SearchKernels& search;
  const Both<DistanceKernels>& distances;
  const PerplexityKernels& perplexity;
  const Both<TreeKernels>& tree;
  const Both<AttractiveKernels>& attractive;
  const Both<AllPairsKernels>& all_pairs;
  const Both<GridKernels>& grid;
  const Both<UpdateKernels>& update;
};

// Levels compiled into this build, lowest first.
std::vector<std::string> built_levels();

// Those of them that this CPU can run.
std::vector<std::string> usable_levels();

// The tables in use. The first call chooses them, reading ACCTSNE_SIMD; throws
// std::invalid_argument if that names a level that does not exist or cannot run here.
const KernelTables& kernels();

// Switches to the named level, for tests. Not to be called while a computation runs.
void use_level(std::string_view name);

} // namespace acctsne
