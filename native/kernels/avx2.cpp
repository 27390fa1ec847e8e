// The kernels for x86-64 CPUs with AVX2 and FMA (Haswell, Zen and later).
#define ACCTSNE_LEVEL avx2
#define ACCTSNE_VECTOR_BYTES 32
#include "kernels/table-inl.hpp"
