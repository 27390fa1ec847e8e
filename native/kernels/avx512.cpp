// The kernels for x86-64 CPUs with AVX-512 F, VL, DQ, BW and CD (Skylake-X, Zen 4 and later).
#define ACCTSNE_LEVEL avx512
#define ACCTSNE_VECTOR_BYTES 64
#include "kernels/table-inl.hpp"
