# make demo   build, install, embed the handwritten digits, draw the map
# make test   build, install, run everything that must be green
# make docs   build, install, write the documentation to build/docs
# All make their own environment in .venv; a second run only does what has changed.

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

.PHONY: demo test docs native-test python-test lint types format asan tsan clean help

help:
	@sed -n '1,4p' Makefile

demo: build/installed
	$(BIN)/python -m acctsne.demo --output demo

test: lint types native-test python-test

docs: build/installed $(VENV)/docs-ready
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -d build/doctrees docs build/docs
	@echo "wrote build/docs/index.html"

native-test: $(VENV)/ready
	cmake --preset native > build-native.log 2>&1 || { cat build-native.log; rm -f build-native.log; exit 1; }
	@rm -f build-native.log
	cmake --build build/native
	ctest --test-dir build/native --output-on-failure

python-test: build/installed
	$(BIN)/python -m pytest

lint: $(VENV)/ready
	ruff check .
	ruff format --check .
	clang-format --dry-run --Werror $(filter %.cpp %.hpp,$(NATIVE_SOURCES))

types: build/installed
	mypy

format: $(VENV)/ready
	ruff check --fix .
	ruff format .
	clang-format -i $(filter %.cpp %.hpp,$(NATIVE_SOURCES))

# Sanitizer runs of the native tests: address + undefined behaviour, and data races.
asan tsan: $(VENV)/ready
	cmake --preset $@
	cmake --build build/$@
	ctest --test-dir build/$@ --output-on-failure

$(VENV)/ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --group dev
	@touch $@

$(VENV)/docs-ready: $(VENV)/ready
	$(BIN)/python -m pip install --quiet --group docs
	@touch $@

build/installed: $(VENV)/ready $(NATIVE_SOURCES) $(PYTHON_SOURCES) $(BUILD_FILES)
	$(BIN)/python -m pip install --quiet --no-build-isolation \
	  --config-settings=cmake.define.ACCTSNE_WERROR=ON '.[plot]'
	@mkdir -p build && touch $@

clean:
	rm -rf build $(VENV) demo
