# One target, one thing. `make grad` and `make test` set everything up by themselves.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
ARGS   ?=
GGML    = ggml-python==$(shell sed -n 's/.*"ggml-python==\(.*\)",/\1/p' pyproject.toml)
# Backends of `make backends`; CMAKE_EXTRA takes what a machine needs besides, as in -DGGML_CUDA=ON.
WITH_VULKAN ?=
CMAKE_EXTRA ?=
FLAVOUR = -DGGML_RPC=ON -DGGML_BLAS=ON -DGGML_BLAS_VENDOR=OpenBLAS $(if $(WITH_VULKAN),-DGGML_VULKAN=ON) $(CMAKE_EXTRA)
PACKAGES = libopenblas-dev pkg-config $(if $(WITH_VULKAN),libvulkan-dev glslc spirv-headers)
PICTURE := ADD,MUL,ADD1,SILU,SWIGLU,SOFT_MAX,RMS_NORM,ROPE,GET_ROWS,CROSS*,SUM_ROWS,POOL_2D

.PHONY: help setup grad eval perf lint type test faults mutants bench bench-eval bench-perf picture backends clean

help:
	@echo "make grad     set up if needed, then check every gradient on the CPU   (ARGS='-o ROPE' to narrow)"
	@echo "make test     set up if needed, then run the tests"
	@echo "make lint     ruff;   make type   mypy;   make bench, bench-eval, bench-perf   side by side with the C++ tool"
	@echo "make mutants  known faults in ggml: what gradcheck sees, what the C++ tool sees   (an hour; compiles ggml once)"
	@echo "make backends compile ggml again, with RPC and BLAS   (WITH_VULKAN=1: and Vulkan)"
	@echo "make picture  the README's picture from a real run;   make clean   remove what was set up"

setup: $(READY)

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "gradcheck needs Python 3.11 or newer as '$(PYTHON)'; choose one with: make PYTHON=python3.11 ..." >&2; exit 1; }
	@command -v $${CC:-cc} >/dev/null && command -v $${CXX:-c++} >/dev/null || { \
	  echo "no C/C++ compiler was found, and ggml is compiled during the set-up; on Debian: apt-get install build-essential" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { \
	  echo "Python cannot make a virtual environment; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@echo "setting up $(VENV); compiling ggml takes about a minute (log: $(VENV)/setup.log)"
	@$(BIN)/python -m pip install -e '.[dev]' >$(VENV)/setup.log 2>&1 || { tail -n 20 $(VENV)/setup.log >&2; \
	  echo "the set-up failed, see above and $(VENV)/setup.log; most often ggml-python could not be compiled: a C/C++ compiler and the network are needed" >&2; exit 1; }
	@touch $@

grad: $(READY)
	$(BIN)/gradcheck grad -b cpu $(ARGS)

eval: $(READY)
	$(BIN)/gradcheck eval $(ARGS)

perf: $(READY)
	$(BIN)/gradcheck perf $(ARGS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

type: $(READY)
	$(BIN)/mypy

test: $(READY)
	$(BIN)/pytest $(ARGS)

faults: $(READY)
	$(BIN)/pytest tests/faults $(ARGS)

mutants: $(READY)
	$(BIN)/python benchmarks/mutants/bench.py $(ARGS)

bench: $(READY)
	$(BIN)/python benchmarks/against_cpp.py $(ARGS)

bench-eval: $(READY)
	$(BIN)/python benchmarks/eval_against_cpp.py $(ARGS)

bench-perf: $(READY)
	$(BIN)/python benchmarks/perf_against_cpp.py $(ARGS)

# Where the names of Debian's packages mean nothing, CMake says what is missing.
backends: $(READY)
	@command -v dpkg-query >/dev/null || exit 0; missing=; for package in $(PACKAGES); do \
	  dpkg-query -W -f '$${Status}' $$package 2>/dev/null | grep -q ' installed$$' || missing="$$missing $$package"; done; \
	  test -z "$$missing" || { echo "these are needed first: apt-get install$$missing" >&2; exit 1; }
	@echo "compiling ggml with $(FLAVOUR): minutes (log: $(VENV)/backends.log)"
	@headers=$(if $(WITH_VULKAN),$$(.ci/vulkan-headers $(VENV)/vulkan)) || exit 1; \
	  CMAKE_ARGS="$(FLAVOUR) $$headers" $(BIN)/python -m pip install --no-cache-dir --force-reinstall --no-deps \
	  --no-binary ggml-python $(GGML) >$(VENV)/backends.log 2>&1 || { grep -i 'error' $(VENV)/backends.log | tail -n 20 >&2; \
	  echo "the build failed, see above and $(VENV)/backends.log; the old one is still in place" >&2; exit 1; }
	@$(BIN)/gradcheck devices

picture: $(READY)
	COLUMNS=100 $(BIN)/gradcheck grad -b cpu -o $(PICTURE) --output svg=docs/grad.svg >/dev/null

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
