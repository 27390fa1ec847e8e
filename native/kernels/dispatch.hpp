// Which kernels run: the best level that both this build and this CPU have, unless ACCTSNE_SIMD
// names another.
#pragma once

#include "kernels/kernels.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace acctsne {

// Levels compiled into this build, lowest first.
std::vector<std::string> built_levels();

// Those of them that this CPU can run.
std::vector<std::string> usable_levels();

// The table in use. The first call chooses it, reading ACCTSNE_SIMD; throws std::invalid_argument
// if that names a level that does not exist or cannot run here.
const KernelTable& kernels();

// Switches to the named level, for tests. Not to be called while a computation runs.
void use_level(std::string_view name);

} // namespace acctsne
