// The kernels for x86-64 CPUs with AVX-512 F, VL, DQ, BW, CD and VNNI (Cascade Lake, Ice Lake, Zen
// 4 and later).
#define ACCTSNE_LEVEL avx512
#define ACCTSNE_VECTOR_BYTES 64
#include "kernels/table-inl.hpp"
