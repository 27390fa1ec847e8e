# make demo   build, install, embed the handwritten digits, draw the map
# make test   build, install, run everything that must be green
# make docs   build, install, write the documentation to build/docs
# make wheel  wheels for Linux, macOS and Windows, into dist
# All make their own environment, most of them in .venv; a second run only does what has changed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The environment's own tools first, so that nothing on the machine but Python and a compiler is needed.
export PATH := $(CURDIR)/$(BIN):$(PATH)

# Make's own default, g++, unless the user says otherwise: the name that Python was built with may not exist here.
export CXX

NATIVE_SOURCES := $(shell find native -type f \( -name '*.cpp' -o -name '*.hpp' -o -name 'CMakeLists.txt' \))
PYTHON_SOURCES := $(shell find src -type f -not -path '*/__pycache__/*')
BUILD_FILES := pyproject.toml CMakeLists.txt CMakePresets.json
VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' src/acctsne/__init__.py)

.PHONY: demo test docs native-test python-test lint types stub format sanitizers asan asan-python tsan clang arm64 arm64-python python-of-debian tidy coverage \
  check-all benchmark-smoke fuzz fuzz-native soak test-versions free-threaded sdist-test wheel wheel-test \
  lint-workflows clean help

help:
	@sed -n '1,5p' Makefile

demo: build/installed
	$(BIN)/python -m acctsne demo --output demo

test: lint types native-test python-test

docs: build/installed $(VENV)/docs-ready
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -d build/doctrees docs build/docs
	@echo "wrote build/docs/index.html"

# Beside the extension, whose core they test: it is compiled once.
native-test: build/installed $(VENV)/ready
	cmake build/release -D ACCTSNE_BUILD_TESTS=ON > build/configured.log 2>&1 || { cat build/configured.log; exit 1; }
	cmake --build build/release
	ctest --test-dir build/release --output-on-failure --parallel 2

python-test: build/installed $(VENV)/ready
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

lint: $(VENV)/ready
	ruff check .
	ruff format --check .
	codespell
	clang-format --dry-run --Werror $(filter %.cpp %.hpp,$(NATIVE_SOURCES))

types: build/installed $(VENV)/ready
	mypy

# The types of the native module as it is built.
stub: build/installed $(VENV)/ready
	$(BIN)/python -m nanobind.stubgen --quiet --module acctsne._core --output-file src/acctsne/_core.pyi
	ruff format --quiet src/acctsne/_core.pyi

format: $(VENV)/ready
	ruff check --fix .
	ruff format .
	clang-format -i $(filter %.cpp %.hpp,$(NATIVE_SOURCES))

# All sanitizers over all native tests, and over the Python tests of what is handed to the core.
sanitizers: asan tsan asan-python

# Native tests: address + undefined behaviour, and data races.
asan tsan: $(VENV)/ready
	cmake --preset $@
	cmake --build build/$@
	ctest --test-dir build/$@ --output-on-failure

# The tests of what Python hands to the native core, with an extension that watches its memory. Python itself is
# not instrumented: the sanitizer is loaded before it, and what Python and its packages never free is not told.
# Daemon threads, which Python ends by unwinding their stacks, are left out: gcc's sanitizer fails a check of its own
# there (asan_thread.cpp, "kCurrentStackFrameMagic").
WATCHED_TESTS := $(addprefix tests/test_,$(addsuffix .py,minimal affinities approximate damaged_archives embedding \
  many_dimensions neighbors query_neighbors sparse_input threads transform tree))
asan-python: build/installed $(VENV)/ready
	cmake --preset $@
	cmake --build build/$@
	rm -rf build/$@/package && mkdir -p build/$@/package
	cp -r src/acctsne build/$@/package/ && cp build/$@/_core*.so build/$@/package/acctsne/
	PYTHONPATH=$(CURDIR)/build/$@/package ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	  LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	  $(BIN)/python -m pytest -p no:cacheprovider -k 'not daemon_thread' $(WATCHED_TESTS)

# Native tests by the other compiler: the newest clang that has a name of its own here.
CLANG ?= $(firstword $(foreach name,clang++-19 clang++-18 clang++-17 clang++-16,$(shell command -v $(name))) clang++)
clang: $(VENV)/ready
	cmake --preset $@ -D CMAKE_CXX_COMPILER=$(CLANG)
	cmake --build build/$@
	ctest --test-dir build/$@ --output-on-failure

# Native tests of the NEON kernels, and what is built on them, on an emulated CPU. Debian: g++-aarch64-linux-gnu,
# qemu-user-static.
ARM64_TESTS := platform|parallel|kernels|distances|tree|edges
arm64: $(VENV)/ready
	cmake --preset $@
	cmake --build build/$@
	ctest --test-dir build/$@ --output-on-failure --tests-regex '^($(ARM64_TESTS))$$'

# The wheel for arm64, run by Python for arm64 on an emulated CPU. Debian: qemu-user-static.
arm64-python: python-of-debian build/installed
	$(MAKE) wheel SYSTEMS=linux-aarch64
	$(BIN)/python packaging/arm64.py dist/acctsne-$(VERSION)-$(WHEEL_TAG)-*aarch64.whl

# The emulated Python is that of Debian 12, and takes no wheel that another one makes.
python-of-debian:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' \
	  || { echo "Debian's Python for arm64 is 3.11 and needs its own wheel: make arm64-python PYTHON=python3.11" >&2; exit 1; }

# All that a release is checked by.
check-all: test docs sanitizers clang arm64 arm64-python tidy benchmark-smoke test-versions sdist-test \
  wheel-test lint-workflows

tidy: native-test
	$(BIN)/python -m pip install --quiet --group tidy
	clang-tidy -p build/release --quiet $(filter-out native/bind/% native/fuzz/% native/tests/%,$(filter %.cpp,$(NATIVE_SOURCES)))

# Benchmarks on small data: that they run, not what they say.
benchmark-smoke: build/installed $(VENV)/ready
	$(BIN)/python benchmarks/compare.py --dataset digits --contestants acctsne,sklearn --repeats 1 --output build/smoke
	$(BIN)/python benchmarks/steps.py --dataset digits --iterations 5 --output build/smoke
	$(BIN)/python benchmarks/scaling.py --dataset synthetic:4000x20 --sizes 2000,4000 --iterations 5 --output build/smoke
	$(BIN)/python benchmarks/overhead.py --sizes 100 --rounds 1
	$(BIN)/python benchmarks/new_points.py --dataset digits --new 200 --rounds 1
	$(BIN)/python benchmarks/simulate.py --dataset digits --repeats 1 --tree-iterations 2 --output build/smoke
	$(BIN)/python benchmarks/neighbors.py --dataset digits --contestants acctsne --repeats 1 --output build/smoke
	$(BIN)/python benchmarks/descent.py --datasets digits
	$(BIN)/python benchmarks/arrangement.py --datasets digits:300 --samples 2
	$(BIN)/python benchmarks/methods.py --sizes 300
	$(BIN)/python benchmarks/force_error.py --points 300
	$(BIN)/python benchmarks/restraint.py --points 150
	$(BIN)/python benchmarks/convergence.py --dataset digits --contestants sklearn --output build/smoke
	rm -rf build/paper-quick && $(BIN)/python benchmarks/paper.py --quick

# Inputs and calls at random, each in a process of its own, for so many minutes.
MINUTES ?= 10
SEED ?= 0
fuzz: build/installed $(VENV)/ready
	$(BIN)/python tests/fuzz/run.py --minutes $(MINUTES) --seed $(SEED)

# Coverage-guided fuzzing of the native core, each of its fuzzers for so many minutes, two at a time. Needs clang
# with libFuzzer and its sanitizers (Debian: clang-19 and libclang-rt-19-dev). Corpora grow in build/fuzz/corpus;
# an input that fails is written beside them.
FUZZ_CXX ?= $(firstword $(shell command -v clang++-19 clang++-18 clang++-17 clang++-16 clang++))
FUZZERS := affinities tree restore neighbors
fuzz-native: $(VENV)/ready
	CXX=$(FUZZ_CXX) cmake --preset fuzz
	cmake --build build/fuzz
	$(MAKE) --jobs 2 --keep-going --output-sync $(FUZZERS:%=fuzz-native-%)

fuzz-native-%:
	mkdir -p build/fuzz/corpus/$*
	cd build/fuzz/corpus && UBSAN_OPTIONS=print_stacktrace=1 ../native/fuzz/fuzz_$* $* \
	  -max_total_time=$$((60 * $(MINUTES))) -max_len=1024 -len_control=0 -timeout=300 -rss_limit_mb=3000 \
	  -print_final_stats=1 -verbosity=0 -artifact_prefix=failed-$*-

# Kills and many fits: minutes.
soak: build/installed $(VENV)/ready
	$(BIN)/python tests/soak.py

# What the tests reach: of Python, and of the native core by its own tests.
coverage: build/installed $(VENV)/ready
	$(BIN)/python -m pip install --quiet --group coverage
	$(BIN)/python -m pytest --quiet --cov --cov-report=term
	cmake --preset coverage > /dev/null
	cmake --build build/coverage
	ctest --test-dir build/coverage
	gcovr --root . --filter native/ --exclude native/tests/ build/coverage

# The smallest tests with the oldest and the newest supported versions of what we depend on.
OLDEST := numpy==1.26.* scipy==1.11.* scikit-learn==1.6.* joblib==1.3.* threadpoolctl==3.5.* tqdm==4.60.*
NEWEST := numpy scipy scikit-learn joblib threadpoolctl tqdm
test-versions:
	rm -rf build/oldest build/newest
	$(PYTHON) -m venv build/oldest && build/oldest/bin/python -m pip install --quiet $(OLDEST) . 'pytest>=8'
	$(PYTHON) -m venv build/newest && build/newest/bin/python -m pip install --quiet --upgrade $(NEWEST) . 'pytest>=8'
	build/oldest/bin/python -m pytest --quiet -p no:cacheprovider tests/test_minimal.py
	build/newest/bin/python -m pytest --quiet -p no:cacheprovider tests/test_minimal.py

# Without Python's lock. Needs a free-threaded Python: make free-threaded PYTHON=python3.14t.
UNLOCKED_TESTS := $(addprefix tests/test_,$(addsuffix .py,minimal affinities approximate determinism embedding \
  neighbors threads))
free-threaded:
	$(PYTHON) -c 'import sysconfig; assert sysconfig.get_config_var("Py_GIL_DISABLED"), "PYTHON is not free-threaded"'
	rm -rf build/free-threaded && $(PYTHON) -m venv build/free-threaded
	build/free-threaded/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	build/free-threaded/bin/python -m pip install --quiet --prefer-binary --group build --group wheel-test
	PATH=$(CURDIR)/build/free-threaded/bin:$(PATH) build/free-threaded/bin/python -m pip install --quiet \
	  --no-build-isolation --config-settings=cmake.define.ACCTSNE_WERROR=ON .
	build/free-threaded/bin/python -m pytest --quiet -p no:cacheprovider $(UNLOCKED_TESTS)

# The source archive, built offline by what pyproject.toml asks for, in an environment of its own.
sdist-test:
	rm -rf build/sdist && mkdir -p build/sdist
	$(PYTHON) -m venv build/sdist/env
	build/sdist/env/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	build/sdist/env/bin/python -m pip install --quiet --group build --group wheel-test build
	build/sdist/env/bin/python -m build --no-isolation --sdist --outdir build/sdist .
	PATH=$(CURDIR)/build/sdist/env/bin:$(PATH) build/sdist/env/bin/python -m pip install --quiet --no-index \
	  --no-build-isolation build/sdist/acctsne-$(VERSION).tar.gz
	tar -xzf build/sdist/acctsne-$(VERSION).tar.gz -C build/sdist
	cd build/sdist/acctsne-$(VERSION) && ../env/bin/python -m pytest --quiet -p no:cacheprovider tests/test_minimal.py

# Wheels by zig's cross compiler, for all systems or those in SYSTEMS (packaging/wheels.py names them). By Python 3.12
# or later one wheel serves all later versions, but for free-threaded ones, and Windows has a wheel.
SYSTEMS ?=
WHEEL_TAG = $(shell $(PYTHON) packaging/wheel_tag.py)
WHEEL_ENV = build/wheel-env-$(WHEEL_TAG)
wheel:
	@test -n "$(WHEEL_TAG)" || { echo "PYTHON=$(PYTHON) does not run" >&2; exit 1; }
	@$(MAKE) --no-print-directory $(WHEEL_ENV)/ready
	PATH=$(CURDIR)/$(WHEEL_ENV)/bin:$(PATH) $(WHEEL_ENV)/bin/python packaging/wheels.py $(SYSTEMS)

# This version's wheel for this machine as a user gets it: from the file, in a fresh environment, without a compiler.
# It is built if it is not there, or older than what it is built from.
WHEEL_SOURCES = $(NATIVE_SOURCES) $(PYTHON_SOURCES) $(BUILD_FILES) $(wildcard packaging/*)
wheel-test:
	@wheel=$$(ls dist/acctsne-$(VERSION)-$(WHEEL_TAG)-*manylinux*$$(uname -m).whl 2> /dev/null | head -n 1); \
	if [ -z "$$wheel" ] || [ -n "$$(find $(WHEEL_SOURCES) -newer "$$wheel" -print -quit)" ]; then \
	  $(MAKE) wheel SYSTEMS=linux-$$(uname -m); fi
	rm -rf build/wheel-test && $(PYTHON) -m venv build/wheel-test
	build/wheel-test/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	env PATH=$(CURDIR)/build/wheel-test/bin CXX=none build/wheel-test/bin/python -m pip install --quiet \
	  --only-binary :all: --group wheel-test
	env PATH=$(CURDIR)/build/wheel-test/bin CXX=none build/wheel-test/bin/python -m pip install --quiet \
	  --only-binary :all: --no-index --find-links dist acctsne==$(VERSION)
	build/wheel-test/bin/python -m pytest --quiet -p no:cacheprovider tests/test_minimal.py
	build/wheel-test/bin/acctsne info
	@began=$$(date +%s); build/wheel-test/bin/acctsne demo --output build/wheel-test/demo \
	  && test -f build/wheel-test/demo/digits.npy -a ! -e build/wheel-test/demo/digits.png \
	  && echo "the demonstration without matplotlib took $$(($$(date +%s) - began)) s"
	env PATH=$(CURDIR)/build/wheel-test/bin CXX=none build/wheel-test/bin/python -m pip install --quiet \
	  --only-binary :all: --group wheel-pictures
	build/wheel-test/bin/acctsne demo --output build/wheel-test/demo
	test -f build/wheel-test/demo/digits.png
	build/wheel-test/bin/python -X importtime -c 'import acctsne' 2>&1 | tail -n 1

# The workflows of the public forge, which cannot run here.
lint-workflows: $(VENV)/build-ready
	$(BIN)/python -m pip install --quiet --group workflows
	check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	zizmor --offline --quiet .github/workflows

# What compiles the package, and no more: all that `make demo` needs.
$(VENV)/build-ready: pyproject.toml
	@echo "making the environment $(VENV)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --group build
	@touch $@

$(VENV)/ready: $(VENV)/build-ready
	$(BIN)/python -m pip install --quiet --group dev
	@touch $@

$(VENV)/docs-ready: $(VENV)/ready
	$(BIN)/python -m pip install --quiet --group docs
	@touch $@

build/wheel-env-%/ready: pyproject.toml
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(@D)/bin/python -m pip install --quiet --group wheel
	@touch $@

build/installed: $(VENV)/build-ready $(NATIVE_SOURCES) $(PYTHON_SOURCES) $(BUILD_FILES)
	@echo "compiling the native core, which takes some minutes the first time"
	$(BIN)/python -m pip install --quiet --no-build-isolation --config-settings=build-dir=build/release \
	  --config-settings=build.targets=_core --config-settings=cmake.define.ACCTSNE_WERROR=ON '.[plot]'
	@mkdir -p build && touch $@

clean:
	rm -rf build dist $(VENV) demo
