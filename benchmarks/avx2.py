"""Run a benchmark on a CPU with AVX-512 as if it had AVX2 only, every contestant alike.

    python benchmarks/avx2.py benchmarks/compare.py --dataset mnist

acctsne, MKL, OpenBLAS and NumPy each have an environment variable for it. oneDAL, the library of
scikit-learn-intelex, has none; it asks two functions of its own for the best instruction set, and
a preloaded library answers in their place. Needs Linux and a C++ compiler.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

# 4 is oneDAL's number for AVX2.
ANSWERS = """
int __daal_serv_cpu_detect(int) { return 4; }
int daal_enabled_cpu_detect() { return 4; }
"""

VARIABLES = {
    "ACCTSNE_SIMD": "avx2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL",
}


def main() -> int:
    if len(sys.argv) < 2:
        sys.exit("usage: avx2.py BENCHMARK [OPTIONS]")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "answers.cpp")
        library = Path(folder, "answers.so")
        source.write_text(ANSWERS)
        compiler = os.environ.get("CXX", "c++")
        subprocess.run([compiler, "-shared", "-fPIC", source, "-o", library], check=True)
        environment = {**os.environ, **VARIABLES, "LD_PRELOAD": str(library)}
        return subprocess.run([sys.executable, *sys.argv[1:]], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
