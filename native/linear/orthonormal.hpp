// Orthonormal bases, from vectors that may be in any relation to each other.
#pragma once

#include "acctsne/parallel.hpp"

namespace acctsne {

// Numbers between -1 and 1, the same on every run and machine.
void fill_random(double* numbers, Size count, std::uint64_t seed);

// Makes rows orthonormal, each within what it and those before it span. Rows that depend on others
// become whatever is orthogonal to these. There are no more rows than numbers in each.
void orthonormalize(double* rows, Size count, Size length, ThreadTeam& team);

} // namespace acctsne
