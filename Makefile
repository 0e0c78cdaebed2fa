# One command file for people and for CI. `make` alone prints this help.
SHELL := bash
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
CARGO ?= cargo
# All by name: rustfmt does not see the modules that a macro declares.
RUST_FILES := $(shell find crates examples -name '*.rs' -not -path '*/target/*' 2>/dev/null)
RUST_NEEDED := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
RUST := $(shell find crates -name '*.rs' -o -name 'Cargo.toml' 2>/dev/null) Cargo.toml Cargo.lock

# What the build backend gets for wheels besides `--locked`; with --compatibility pypi maturin looks up which C library a wheel needs.
WHEEL_ARGS ?= --compatibility pypi
ARM := aarch64-unknown-linux
# The Cargo profile that compiles the extension and the agent. READY is an empty file: it is there while .venv holds an
# extension of that profile.
PROFILE ?= release
READY := $(BIN)/.ready-$(PROFILE)
BUILD := PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m build --no-isolation --outdir dist

.DEFAULT_GOAL := help
.PHONY: help setup agent wheel wheel-pgo wheel-aarch64 sdist kernel kernel-tools run test lint lint-rust lint-python format test-rust test-python pytest fuzz soak mutations defects exact bench bench-flows bench-ns3 validation testbeds lockstep gallery docs studies verdict architecture clean

help: ## print this help
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(READY) ## make .venv with bakeoff and everything it needs

# The extension is rebuilt when Rust changes; Python is used from the tree.
$(READY): pyproject.toml requirements.lock $(RUST)
	@found=$$($(CARGO) --version 2>/dev/null | cut -d' ' -f2); printf '%s\n' $(RUST_NEEDED) "$${found:-0}" | sort --version-sort --check=silent || \
		{ echo "bakeoff needs cargo of Rust $(RUST_NEEDED) or newer, and this machine has $${found:-none}."; \
		echo "Debian 13 has one in its backports (apt install -t trixie-backports cargo); rustup has one for every machine."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { echo "bakeoff needs Python's venv module: apt install python3-venv"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	@mkdir -p target
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --profile $(PROFILE) --locked --quiet >target/setup.log 2>&1 || { cat target/setup.log; exit 1; }
	@rm -f $(BIN)/.ready-*
	@touch $@

# FIRST names what is done before it: nothing, unless `make test` sets it.
agent: $(FIRST) ## the traffic generator of the engines kernel and netns
	$(CARGO) rustc --profile $(PROFILE) --locked --quiet --package bakeoff-agent --bin bakeoff-agent -- -C target-feature=+crt-static

# The extension is the one of `make setup`, the agent that of `make agent`: little is left to compile.
wheel: setup ## a wheel for machines like this one, into dist/
	$(BUILD) --wheel -C build-args="--locked $(WHEEL_ARGS)"

# Portable code; in a target folder of its own, because each change of flags would have the other compiled anew.
wheel-pgo: setup ## the same, compiled twice: optimised by a profile of packaging/training.toml's runs
	@llvm=$$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p'); \
	for tools in "$$(rustc --print target-libdir)/../bin" "/usr/lib/llvm-$$llvm/bin" "$$(dirname "$$(command -v llvm-profdata)")" ""; do \
		"$$tools/llvm-profdata" --version 2>/dev/null | grep -q "LLVM version $$llvm\." && break; done; \
	test -n "$$tools" || { echo "A profile needs the llvm-profdata of rustc's own LLVM $$llvm: rustup component add llvm-tools, or apt install llvm-$$llvm."; exit 1; }; \
	export CARGO_TARGET_DIR=$(CURDIR)/target/pgo; PATH="$$tools:$$PATH"; \
	$(BUILD) --wheel -C build-args="--locked $(WHEEL_ARGS) --pgo"
	$(BIN)/python packaging/training.py check "$$(ls -t dist/*.whl | head -1)"

wheel-aarch64: setup ## a wheel for 64-bit ARM, cross-compiled, into dist/
	@for target in $(ARM)-gnu $(ARM)-musl; do \
		test -d "$$(rustc --print target-libdir --target $$target)" || \
		{ echo "Rust's standard library for $$target is missing: rustup target add $(ARM)-gnu $(ARM)-musl"; exit 1; }; done
	$(BIN)/python -m pip install --quiet --disable-pip-version-check ziglang
	$(BUILD) --wheel -C build-args="--locked $(WHEEL_ARGS) --zig --target $(ARM)-gnu"

sdist: setup ## a source distribution, into dist/
	$(BUILD) --sdist

# First, so that nobody waits for a download or a compiler to learn what is missing.
kernel-tools:
	@$(PYTHON) -I python/bakeoff/engines/kernel/build_tools.py

# KERNEL names it; its release does otherwise.
kernel: kernel-tools setup agent ## a virtual-time kernel from Debian's linux-source package, once (10 minutes)
	$(BIN)/python kernel/fetch-programs --suite forky
	$(BIN)/bakeoff kernel build $(if $(KERNEL),--name $(KERNEL)) --source "$$($(BIN)/python kernel/fetch-source --suite trixie-backports)"

run: setup ## a first bake-off: Prague against CUBIC in a shared queue
	$(BIN)/bakeoff run 'l4s-tests/s6-rfc3168/*cubic*fq_codel(1q)*' 'l4s-tests/s6-rfc3168/*cubic*pie-*' --out results/first --resume
	$(BIN)/bakeoff table results/first
	$(BIN)/bakeoff plot results/first
	@echo
	@echo "Next: $(BIN)/bakeoff duel prague cubic --qdisc 'fq_codel flows 1' --rate 50mbit --rtt 20ms"

# Where .venv has the release build of `make setup`, that is tested, and otherwise the profile `ci`, which is compiled
# sooner, and shares what it compiles with Rust's tests. Two things at a time, because each uses a single core for a while,
# and the tests of the shell often wait for something. Rust's tests link an agent into the same place as `make agent`, but
# one that needs this machine's C library. So the static one is linked after them.
test: ## the linters and all tests
	@$(MAKE) --no-print-directory --question $(BIN)/.ready-release && profile=release || profile=ci; \
	$(MAKE) --no-print-directory --jobs=2 --output-sync=target PROFILE=$$profile FIRST=test-rust \
		lint-rust setup test-rust agent lint-python test-python

lint: lint-rust lint-python ## formatting, clippy, ruff, mypy; warnings are errors

# By the profile of the tests: the macros and build scripts of all crates are then compiled once for both.
lint-rust:
	rustfmt --edition 2024 --check $(RUST_FILES)
	$(CARGO) clippy --profile ci --workspace --all-targets --locked --quiet -- -D warnings

lint-python: setup
	$(BIN)/ruff format --check --quiet bench python packaging tests examples docs
	$(BIN)/ruff check --quiet bench python packaging tests examples docs
	$(BIN)/mypy --no-error-summary

format: setup ## Rust and Python as rustfmt and ruff write them, and the generated pages
	rustfmt --edition 2024 $(RUST_FILES)
	$(BIN)/ruff format --quiet bench python packaging tests examples docs
	$(BIN)/python docs/catalog.py
	$(BIN)/python docs/measures.py

# The extension has no tests of its own in Rust, and would be compiled for nothing. Nor have the examples, which clippy
# reads already.
test-rust: ## the simulator's tests
	$(CARGO) test --profile ci --workspace --exclude bakeoff-bindings --lib --bins --tests --locked --quiet
	$(CARGO) test --profile ci --package bakeoff-document --features schema --test schema --locked --quiet

# By a make of its own, so that `make test` shows how far they are instead of holding it back to the end.
test-python: setup agent ## the shell's tests
	@$(MAKE) --no-print-directory --output-sync=none pytest

# Two processes more than there are cores: many tests wait, for a kernel, a browser, real time or each other. A process
# without work takes tests from the others, whose costs differ by a hundred times.
pytest:
	BAKEOFF_TEST_PROFILE=$(PROFILE) $(BIN)/python -m pytest -n $$(($$(nproc) + 2)) --dist worksteal

FUZZ_CASES ?= 20000
FUZZ_FILES ?= 5000
FUZZ_RUNS ?= 2000
SOAK_MINUTES ?= 10
SOAK_KILLS ?= 200
SOAK_SEED ?= 1
fuzz: setup ## random documents, captures and packetdrill scripts for the Rust side (FUZZ_CASES), then scenarios, captures, expressions and other files (FUZZ_FILES of each kind) and whole runs with their measures (FUZZ_RUNS)
	PROPTEST_CASES=$(FUZZ_CASES) $(CARGO) test --profile ci --package bakeoff-sim --locked --quiet --test all fuzz_documents
	PROPTEST_CASES=$(FUZZ_CASES) $(CARGO) test --profile ci --package bakeoff-trace --locked --quiet --test all -- hostile datagrams
	PROPTEST_CASES=$(FUZZ_CASES) $(CARGO) test --profile ci --package bakeoff-packetdrill --locked --quiet --test mutated_scripts
	BAKEOFF_FUZZ=$(FUZZ_FILES) $(BIN)/python -m pytest -n auto --timeout 0 $(filter-out %_runs.py %_inventories.py,$(wildcard tests/hostile/test_fuzz*.py))
	BAKEOFF_FUZZ=$(FUZZ_RUNS) $(BIN)/python -m pytest -n auto --timeout 0 tests/hostile/test_fuzz_runs.py

soak: setup agent ## kills campaigns, workers, kernels and schedulers SOAK_KILLS times in SOAK_MINUTES, and compares what came out
	SOAK_MINUTES=$(SOAK_MINUTES) SOAK_KILLS=$(SOAK_KILLS) SOAK_SEED=$(SOAK_SEED) $(BIN)/python tests/soak/soak.py

bench: setup ## speed: data packets per CPU second, and instructions per data packet held against bench/instructions.json
	$(BIN)/python bench/workloads.py
	$(BIN)/python bench/instructions.py

mutations: setup ## claims under their mutations: none may still hold (MUTATIONS, all claims)
	$(BIN)/bakeoff verify $(MUTATIONS) --mutations --quiet

defects: setup ## catalog/defects/measured.csv: which cases catch the defects of catalog/defects (30 minutes)
	$(BIN)/python -m bakeoff.cli.defects --csv catalog/defects/measured.csv

exact: setup ## all runs of the laboratories with the event loop's shortcuts and step by step; their digests have to be equal
	$(BIN)/python bench/exact.py

bench-flows: setup ## what a packet costs with thousands of flows, beside one: instructions, time, memory (8 minutes)
	$(BIN)/python bench/many_flows.py

bench-ns3: setup agent ## speed beside ns-3, in one run; needs libns3-dev and libgsl-dev, and takes a kernel if one was built
	$(BIN)/python bench/ns3.py

validation: setup ## the runs and tables of docs/validation/results.md (10 minutes)
	$(BIN)/python docs/validation/generate.py

testbeds: setup ## the runs and the page of docs/validation/testbeds.md (20 minutes)
	$(BIN)/python docs/validation/testbeds.py

lockstep: setup agent ## docs/validation/lockstep.csv: linux/single and linux/pairs, packet by packet beside the kernel (1 hour; needs a kernel)
	$(BIN)/python docs/validation/lockstep.py

gallery: setup ## the pictures and the page of docs/gallery.md (5 minutes)
	rm -rf results/gallery
	for name in flows home-uplink home-tree parking-lot rate-step web fairness; do \
		case $$name in flows) more="--trace cc";; fairness) more="--seeds 3";; *) more="";; esac; \
		$(BIN)/bakeoff run examples/gallery/$$name.yaml $$more --out results/gallery/$$name --quiet || exit 1; done
	$(BIN)/bakeoff run 'slow-start/paths/*-1bdp' --out results/gallery/slow-start --quiet
	$(BIN)/bakeoff render examples/gallery/gallery.md --results results/gallery --out docs/ --record

docs: setup ## the documentation as a site, into build/docs; it fails at a link that leads nowhere
	$(BIN)/python docs/catalog.py
	$(BIN)/python docs/measures.py
	$(BIN)/python docs/build_site.py
	@echo "Open build/docs/index.html in a browser."

# Claims are decided by the runs of `bakeoff verify`; runs.txt has those that only a picture or a table needs. What was
# done before comes from the store of runs.
studies: setup ## the pages of docs/studies: the runs that are missing, then their numbers and pictures (40 minutes the first time)
	$(BIN)/bakeoff verify --quiet
	rm -rf results/studies
	mapfile -t runs <catalog/studies/runs.txt && $(BIN)/bakeoff run "$${runs[@]}" --seeds 3 --out results/studies --quiet
	$(BIN)/bakeoff render catalog/studies/*.md --results results/verify/sim --results results/studies --out docs/studies/ --record

# Separate from `studies`: no claim has to be decided for it, so that it takes minutes.
verdict: setup ## docs/verdict.md: the runs of catalog/verdict/runs.txt that are missing, then the page and its pictures (5 minutes)
	rm -rf results/verdict
	mapfile -t runs <catalog/verdict/runs.txt && $(BIN)/bakeoff run "$${runs[@]}" --seeds 5 --out results/verdict --quiet
	$(BIN)/bakeoff render catalog/verdict/verdict.md --results results/verdict --out docs/ --record

architecture: setup ## the picture of docs/architecture.md, from the code
	$(BIN)/python docs/draw_modules.py

clean: ## remove what make made
	rm -rf $(VENV) target dist build
