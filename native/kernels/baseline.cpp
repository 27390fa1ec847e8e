// The kernels for every CPU of the architecture: SSE2 on x86-64, NEON on arm64, both 16 bytes wide.
#define ACCTSNE_LEVEL baseline
#define ACCTSNE_VECTOR_BYTES 16
#include "kernels/table-inl.hpp"
