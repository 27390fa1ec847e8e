// The kernels of the search for bandwidths, compiled once per instruction set.
#include "kernels/perplexity.hpp"

#include "kernels/level-inl.hpp"

namespace acctsne::ACCTSNE_LEVEL {

#include "kernels/gaussian-inl.hpp"

extern const PerplexityKernels kPerplexityKernels;
constinit const PerplexityKernels kPerplexityKernels = {.normalize_floats = normalize_row<float>,
                                                        .normalize_doubles = normalize_row<double>,
                                                        .gaussian_row = gaussian_row};

} // namespace acctsne::ACCTSNE_LEVEL
