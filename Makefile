# Every chore of the project, the same for people and for CI. Needs Rust (stable), Python 3.11 or later, make.
# Options: PYTHON=python3.12 (which Python), DATA (real data: a CSV file or a folder of them for the demo, a folder for bench-blocks),
# PREFIX and DESTDIR (where install-c puts the C interface), ONLY=pattern (names in bench-core), MINUTES=n (for each target of fuzz, for seeds).

PYTHON ?= python3
PREFIX ?= /usr/local
MINUTES_GIVEN := $(MINUTES)
MINUTES ?= 5
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

# Whatever goes into the wheel: it is built again only when one of these changed.
SOURCES := Cargo.toml Cargo.lock pyproject.toml constraints.txt \
	$(shell find crates python/gridstone -type f \( -name '*.rs' -o -name '*.py' -o -name '*.pyi' \
	-o -name 'py.typed' -o -name 'Cargo.toml' \))

# Test files run in as many processes as there are cores, and those of one file in one: memory and files are shared with few.
SIDE_BY_SIDE := -n auto --maxprocesses 8 --dist loadfile

# What the build backend tells PyO3, told to plain cargo too: PyO3 is compiled anew whenever this changes.
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
AS_WHEEL = PYO3_BUILD_EXTENSION_MODULE=1 $(addprefix PYO3_CONFIG_FILE=,$(firstword $(wildcard $(TARGET)/maturin/pyo3-config-*)))

# The extra "bench", one by one for platforms where one of them has no wheel.
PEERS := distributed duckdb h5netcdf h5py hdf5plugin icechunk matplotlib netCDF4 polars tensorstore tiledb xarray zarr zarrs

# Fails where a tracked file has changed since the last commit.
CLEAN_TREE := git diff --quiet HEAD --

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: demo test test-programs check check-rust check-python docs install-c wheel wheel-test bench bench-core bench-blocks instructions seeds deep fuzz miri help clean

demo: $(VENV)/.built ## install into .venv, run the demonstration, leave its pictures in demo-out/
	@echo "== demo: the pictures go to demo-out/"
	$(BIN)/gridstone demo --out demo-out $(if $(DATA),--data '$(DATA)')
ifeq ($(shell uname -s),Linux)
	@echo "== demo: the positions from C, by examples/c/ships.c"
	$(AS_WHEEL) CARGO_TARGET_DIR='$(TARGET)' crates/gridstone-capi/package/install '$(TARGET)/c-interface'
	$(CC) -std=c11 -O2 examples/c/ships.c -I'$(TARGET)/c-interface/include' -L'$(TARGET)/c-interface/lib' -lgridstone \
		-Wl,-rpath,'$(TARGET)/c-interface/lib' -o '$(TARGET)/c-interface/ships'
	'$(TARGET)/c-interface/ships' demo-out/ais.gs LON LAT
endif

# Programs of the tests alone: most of it is one crate on one core.
test-programs: $(VENV)/.test
	@echo "== test: compile those of Rust"
	$(AS_WHEEL) cargo test --release --workspace --no-run

test: $(VENV)/.test ## run all tests, Rust and Python
	@echo "== test: Rust, in the profile and with the dependencies of the wheel"
	$(AS_WHEEL) cargo test --release --workspace
	@echo "== test: the C interface, installed for the programs of the tests"
	$(AS_WHEEL) CARGO_TARGET_DIR='$(TARGET)' crates/gridstone-capi/package/install '$(TARGET)/c-interface'
	@echo "== test: Python and vectors"
	GRIDSTONE_C_PREFIX='$(TARGET)/c-interface' $(BIN)/python -m pytest $(SIDE_BY_SIDE) python/tests vectors

check: check-rust check-python ## format, lints, documentation of the crate, house rules, types, stubs

check-rust: $(VENV)/.dev
	@echo "== check: format of Rust"
	cargo fmt --all --check
	@echo "== check: lints of Rust"
	$(AS_WHEEL) cargo clippy --release --workspace --all-targets -- -D warnings
	@echo "== check: the header of C"
	$(AS_WHEEL) cargo build --release --quiet --workspace --bin gridstone-header
	'$(TARGET)/release/gridstone-header' --check
	@echo "== check: documentation of the crate"
	RUSTDOCFLAGS='-D warnings' $(AS_WHEEL) cargo doc --release --no-deps --package gridstone --package gridstone-python
	@echo "== check: the source archive"
	.ci/sdist $(BIN)/maturin
	@echo "== check: house rules"
	cargo xtask tidy

check-python: $(VENV)/.dev
	@echo "== check: lints and format of Python"
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	@echo "== check: types of Python"
	$(BIN)/mypy --strict python/gridstone
	@echo "== check: the stub of the native module"
	$(BIN)/python -m mypy.stubtest gridstone._native --allowlist python/stubtest-allowlist.txt --ignore-unused-allowlist

install-c: ## install the C interface: headers, libraries, pkg-config, CMake; PREFIX=folder (/usr/local), DESTDIR
	@echo "== install-c: into $(DESTDIR)$(PREFIX)"
	$(AS_WHEEL) CARGO_TARGET_DIR='$(TARGET)' DESTDIR='$(DESTDIR)' crates/gridstone-capi/package/install '$(PREFIX)'

wheel: $(BIN)/python ## build a wheel for any Linux of this processor, and a source archive, into dist/
	@echo "== wheel: the source archive holds all that git tracks; the wheel is built of it (all is compiled: some minutes)"
	@$(CLEAN_TREE) || { echo "commit or stash first: the archive is made of the files of this folder"; exit 1; }
	$(PIP) install --quiet -c constraints.txt 'maturin[zig]'
	rm -rf dist
	CARGO_TARGET_DIR='$(TARGET)' $(BIN)/maturin build --release --sdist --strip --zig --out dist
	@ls -l dist

wheel-test: ## try the wheel in dist/ in an empty environment without Rust
	@echo "== wheel-test"
	PYTHON='$(PYTHON)' .ci/wheel dist/*.whl

bench: $(VENV)/.bench ## measure beside what else a user would pick; results are checked first
	@echo "== bench"
	$(BIN)/gridstone bench --repeats 3

bench-core: ## time the floors of the core; ONLY=points for a part of them
	@echo "== bench-core"
	cargo bench --package gridstone-bench --features criterion --bench floors -- $(if $(ONLY),'$(ONLY)')

bench-blocks: $(VENV)/.bench ## compare block sizes on real columns, DATA=folder or GRIDSTONE_TEST_DATA
	@test -n '$(or $(DATA),$(GRIDSTONE_TEST_DATA))' || { echo "name the folder of real files: DATA=folder"; exit 1; }
	@echo "== bench-blocks: the inputs go to $(TARGET)/blocks"
	$(BIN)/python benches/blocks/prepare.py '$(or $(DATA),$(GRIDSTONE_TEST_DATA))' '$(TARGET)/blocks'
	cargo run --release --package gridstone-bench --features blocks --bin blocks -- '$(TARGET)/blocks' --repeats 9

instructions: ## count the instructions of small workloads, compare with the baseline; needs valgrind
	@echo "== instructions"
	cargo xtask instructions

# The page that a browser opens is site/index.html; a search needs a server: python -m http.server --directory site
docs: export NO_MKDOCS_2_WARNING := 1
docs: $(VENV)/.docs ## build the documentation as a site in site/; a warning is an error
	@echo "== docs: the notebook is run, the pages go to site/"
	$(BIN)/python docs/tools/pages.py .pages
	$(BIN)/python -m mkdocs build --quiet --strict

seeds: $(VENV)/.test ## run the oracle, the machines and the models with new seeds for MINUTES minutes (10)
	@echo "== seeds"
	cargo xtask seeds --minutes $(or $(MINUTES_GIVEN),10)

deep: export PROPTEST_CASES := 20000
deep: export HYPOTHESIS_PROFILE := deep
deep: export GRIDSTONE_TEST_DEEP := 1
deep: export GRIDSTONE_TEST_WRITES := 1000
deep: export PYTEST_ADDOPTS := -o faulthandler_timeout=7200
deep: test fuzz miri ## the tests with very many more random cases, fuzzing by the minute, Miri (hours)

fuzz: ## try to break each decoder for MINUTES minutes (5)
	@echo "== fuzz"
	cargo run --release --package gridstone-fuzz -- --seconds $$(( 60 * $(MINUTES) ))

# Isolation is off for the seeds of random cases. Floats are those of processors: Miri's own vary the bits of NaN and the last digit of
# powers, which tests of exact bits take for damage. The crate pco moves boxes in a way that breaks stacked borrows, a rule still
# under discussion; tree borrows is the newer one.
miri: export MIRIFLAGS := -Zmiri-disable-isolation -Zmiri-tree-borrows -Zmiri-deterministic-floats
miri: export PROPTEST_CASES := 4
miri: ## run what touches no device under Miri; needs the nightly toolchain with miri
	@cargo +nightly miri --version >/dev/null \
		|| { echo "Miri is missing: rustup toolchain install nightly --component miri"; exit 1; }
	@echo "== miri"
	cargo +nightly miri test --package gridstone --lib -- base:: schema:: tile:: fragment:: codec::
	cargo +nightly miri test --package gridstone --test main -- pure_rust::

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

clean: ## remove all that was built or installed here
	rm -rf $(VENV) demo-out site .pages .mypy_cache .pytest_cache .ruff_cache .hypothesis
	cargo clean

$(BIN)/python:
	@echo "== a virtual environment in $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "$(PYTHON) is older than Python 3.11; run make PYTHON=python3.11 (or later)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.built: $(SOURCES) | $(BIN)/python
	@echo "== build the wheel and install it into $(VENV) (the first time compiles all dependencies: some minutes)"
	$(PIP) install --quiet -c constraints.txt '.[plot,xarray]'
	@touch $@

# The package is installed already: these add what its extras ask for.
$(VENV)/.test: $(VENV)/.built
	@echo "== what the tests need"
	$(PIP) install --quiet -c constraints.txt 'gridstone[test,plot,pandas]'
	@touch $@

$(VENV)/.bench: $(VENV)/.built
	@echo "== what else a user would pick"
	$(PIP) install --quiet -c constraints.txt 'gridstone[bench]' || for peer in $(PEERS); do \
		$(PIP) install --quiet -c constraints.txt --only-binary :all: $$peer \
			|| echo "== $$peer cannot be installed here: the benchmark leaves it out"; done
	@touch $@

$(VENV)/.dev: $(VENV)/.built
	@echo "== what the checks need"
	$(PIP) install --quiet -c constraints.txt maturin 'gridstone[dev,test,plot,pandas]'
	@touch $@

$(VENV)/.docs: $(VENV)/.built
	@echo "== what the site needs"
	$(PIP) install --quiet -c constraints.txt 'gridstone[docs,plot]'
	@touch $@
