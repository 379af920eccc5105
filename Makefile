# What a newcomer can do: `make help`. Every target makes what it needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/.stamps
NATIVE := python/turnwarden/_core.abi3.so
RUST_SOURCES := $(shell find rust -name target -prune -o \( -name '*.rs' -o -name Cargo.toml \) -print) Cargo.toml Cargo.lock
FUZZ_SECONDS ?= 20
# Property tests draw the same cases in each run; see CONTRIBUTING.md for new ones.
export PROPTEST_RNG_SEED ?= 20261201
CARGO_PACKAGES := --workspace --exclude turnwarden-bindings

.PHONY: help demo test test-rust test-python lint format bench bench-smoke fuzz wheel check-wheel clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /\1\t/' | sort | \
		awk -F '\t' '{ printf "  make %-12s %s\n", $$1, $$2 }'

demo: $(NATIVE) ## build the package, scan three example runs and replay the looping one
	$(BIN)/turnwarden scan examples/runs
	$(BIN)/turnwarden replay examples/runs/looping.jsonl

test: test-rust test-python ## build, then run every test

test-rust: ## the tests of the Rust crates
	cargo test --quiet $(CARGO_PACKAGES)

test-python: $(NATIVE) $(STAMPS)/test ## the Python tests: API, vectors, docs, command line
	$(BIN)/python -m pytest

lint: $(NATIVE) $(STAMPS)/test $(STAMPS)/lint ## format check, lints, static types, stubs
	cargo fmt --all --check
	cargo clippy --quiet --workspace --all-targets -- -D warnings
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/python -m mypy.stubtest turnwarden._core --allowlist tests/typing/stubtest_allowlist.txt

format: $(STAMPS)/lint ## format all code
	cargo fmt --all
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(NATIVE) $(STAMPS)/bench ## the side-by-side benchmarks (minutes); figures: benches/README.md
	$(BIN)/python -m benches.compare

bench-smoke: $(NATIVE) $(STAMPS)/bench ## the same with few repeats: that the scripts run, no figures
	$(BIN)/python -m benches.compare --quick

fuzz: ## each fuzz target for FUZZ_SECONDS (20) seconds; needs cargo-fuzz
	tools/fuzz $(FUZZ_SECONDS)

wheel: $(STAMPS)/build ## a release wheel in dist/
	rm -rf dist
	$(BIN)/maturin build --release --out dist

check-wheel: wheel $(STAMPS)/wheel ## contents of the wheel, and the demo from it without Rust
	$(BIN)/python tools/check_wheel.py dist
	$(BIN)/abi3audit --strict dist/*-abi3-*.whl

clean: ## remove everything that was built
	rm -rf $(VENV) target dist rust/fuzz/target benches/rust/target
	find . -name __pycache__ -prune -exec rm -rf {} +
	rm -rf $(NATIVE) .pytest_cache .ruff_cache .mypy_cache .hypothesis

# A release build: the demo and the tests show the speed that users get.
$(NATIVE): $(STAMPS)/build $(RUST_SOURCES) pyproject.toml
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release --quiet
	@touch $@

$(STAMPS)/build: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1' 'maturin>=1.9,<2'
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/%: $(STAMPS)/build pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group $*
	@mkdir -p $(STAMPS) && touch $@
