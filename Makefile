# make demo           makes the environment, builds airpath and the explorer, runs a scenario and says where its report is
# make test           runs every test
# make check          runs what CI runs: format, lints, types, docs, tests
# make bench          measures speed, beside htsim and ns-3
# make docs           writes the documentation as a site, with search and live figures
# make wheel          builds the wheel for users, with the explorer and with a profile of runs, in dist/
# make dev            lists the programs of dev/: `make NAME` runs one, `make NAME ARGS=--help` says how

# No target is a file.
.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*/\1/p' Makefile)
SHELL := /bin/bash -o pipefail
VENV := .venv/bin
DEV := PYTHONPATH=dev $(VENV)/python -m airpath_dev
# Works before there is a .venv.
BARE := PYTHONPATH=dev python3 -m airpath_dev
# Rust tests link no Python; the extension crate has none of its own.
CRATES := --workspace --exclude airpath-py
# QUIC flows, and programs inside the kernel where clang is there.
FEATURES = --features airpath-sim/quic$(if $(shell tools/setup features),$(comma)airpath-bpf/kernel$(comma)airpath-emu/bpf)
comma := ,
# Thousands of tests start airpath: its modules are compiled once.
unexport PYTHONDONTWRITEBYTECODE
# Property tests draw other cases with each commit.
ifndef PROPTEST_RNG_SEED
export PROPTEST_RNG_SEED := $(shell tools/seed)
endif

build:
	@tools/setup

system:
	@tools/setup system

demo: build
	@mkdir -p runs
	$(VENV)/airpath run bufferbloat --report runs/demo.html
	@tools/setup explorer && explorer=1 || explorer=; \
	echo "The report is runs/demo.html: open it in a browser."; \
	if [ "$$explorer" ]; then echo "Change the scenario in a browser: $(VENV)/airpath explore bufferbloat"; \
	else echo "The explorer was not built, for the reason above. Once that is resolved: tools/setup explorer"; fi

# What has a processor whenever tests on the real clock do not.
BESIDE := rust-test unhurried-test
# Each suite writes its outcomes down; the end says them all.
test: export AIRPATH_OUTCOMES = $(CURDIR)/target/outcomes
test: build system compiled
	@: >$(AIRPATH_OUTCOMES); : >$(AIRPATH_OUTCOMES).began
	@echo "Beside the tests on the real clock, which mostly wait: $(BESIDE)."
	@$(MAKE) --no-print-directory python-test rust-root-test && \
	$(MAKE) --no-print-directory -j2 -Otarget real-clock-pairs $(BESIDE) && \
	$(MAKE) --no-print-directory real-clock-deferred; status=$$?; \
	$(BARE) outcomes total; exit $$status

# What the tests of Rust need.
compiled:
	cargo test --quiet --no-run $(CRATES) $(FEATURES)

check: BESIDE += rust-lint
check: quick-lint test

lint: quick-lint rust-lint

quick-lint: build
	cargo fmt --all --check
	rustfmt --check --edition 2024 fuzz/fuzz_targets/*.rs
	$(VENV)/ruff format --check python tests dev
	$(VENV)/ruff check python tests dev
	$(VENV)/mypy
	$(DEV) licences

rust-lint:
	MAKEFLAGS= $(IDLE) cargo clippy --quiet --workspace --all-targets $(FEATURES) -- -D warnings
	RUSTDOCFLAGS="-D warnings" MAKEFLAGS= $(IDLE) cargo doc --quiet --no-deps $(CRATES) $(FEATURES)

# Whatever else wants a processor gets it at once.
IDLE := $(if $(shell command -v chrt),chrt --idle 0)
# TEST=name: only those of that name.
rust-test:
	@# cargo is not given make's jobserver, which is closed to it.
	@echo 'The property tests draw from PROPTEST_RNG_SEED=$(PROPTEST_RNG_SEED).'
	MAKEFLAGS= $(IDLE) cargo test --quiet $(CRATES) $(FEATURES) $(TEST) | $(BARE) outcomes rust

# Those that are marked `#[ignore = "needs root"]`, by name; one at a time, some are on the real clock.
NEEDS_ROOT = $(shell grep -rhA3 'ignore = "needs root"' crates --include='*.rs' | sed -n 's/.*fn \(\w*\)().*/\1/p')
rust-root-test:
	@if [ "$$(id -u)" -eq 0 ]; then \
	cargo test --quiet --tests $(CRATES) $(FEATURES) -- --ignored --test-threads=1 $(NEEDS_ROOT) | \
	$(BARE) outcomes rust; \
	else echo 'Left out, because they need root: $(NEEDS_ROOT)'; fi

# More than processors, because many tests wait for programs that do.
WORKERS := $(shell echo $$(($$(nproc) + 2)))
python-test:
	$(VENV)/python -m pytest --quiet --numprocesses $(WORKERS) --dist loadfile \
	-m 'not real_clock and not unhurried'

unhurried-test:
	MAKEFLAGS= $(IDLE) $(VENV)/python -m pytest --quiet --numprocesses 2 --dist loadfile -m unhurried

# Two at a time; what goes wrong beside another one is judged alone. With three on two processors so many
# have to be judged alone that all take longer.
DEFERRED := $(CURDIR)/target/deferred
real-clock-test:
	$(MAKE) --no-print-directory real-clock-pairs
	$(MAKE) --no-print-directory real-clock-deferred

real-clock-pairs:
	AIRPATH_DEFERRED=$(DEFERRED) $(VENV)/python -m pytest --quiet --numprocesses 2 --dist loadgroup \
	-m real_clock

real-clock-deferred:
	[ ! -s $(DEFERRED) ] || $(VENV)/python -m pytest --quiet @$(DEFERRED)

# PYTEST='tests/python/test_doctor.py -x': only that.
STRANGERS := iperf inetutils-ping tcptrace nuttcp busybox fping
test-strangers: build
	mkdir -p target/strangers
	cd target/strangers && apt-get download --quiet $(STRANGERS) && for each in *.deb; do dpkg -x $$each .; done
	$(DEV) machines strangers --packages target/strangers -- $(PYTEST)

test-least: build
	$(DEV) machines least -- $(PYTEST)

# Only builds with debug assertions can leave out fast paths, and so compare.
FUZZ_CASES ?= 200000
fuzz: export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS = true
fuzz: export CARGO_PROFILE_RELEASE_LTO = off
fuzz:
	seed=$$(date +%s); echo "PROPTEST_RNG_SEED=$$seed"; \
	PROPTEST_RNG_SEED=$$seed PROPTEST_CASES=$(FUZZ_CASES) cargo test --release -p airpath-tcp --test behaviour two_ends; \
	PROPTEST_RNG_SEED=$$seed PROPTEST_CASES=$(FUZZ_CASES) cargo test --release -p airpath-path --test laws --test fast_paths; \
	PROPTEST_RNG_SEED=$$seed PROPTEST_CASES=$$(( $(FUZZ_CASES) / 10 )) cargo test --release -p airpath-radio --test cell -- laws fast_paths

SCENARIOS ?= 10000
fuzz-scenarios:
	SCENARIOS=$(SCENARIOS) cargo test --quiet -p airpath-findings --test drawn

# Exit code 3: not checked, because nightly Rust or cargo-fuzz is missing. TARGETS='gtpu trace': only those.
SECONDS ?= 600
fuzz-coverage:
	$(BARE) fuzz-coverage run $(SECONDS) $(TARGETS)

fuzz-corpus:
	$(BARE) fuzz-coverage corpus $(TARGETS)

# Cargo.lock is renewed by `cargo update`.
lock: build
	$(VENV)/python -m pip install --quiet uv
	$(VENV)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --extra dev \
	  --custom-compile-command 'make lock' --output-file requirements.lock pyproject.toml

FINDINGS_COUNT ?= 100
FINDINGS_SEED ?= 1
findings: export FINDINGS_KEEP = $(CURDIR)/target/findings
findings:
	rm -rf $(FINDINGS_KEEP)
	FINDINGS_COUNT=$(FINDINGS_COUNT) FINDINGS_SEED=$(FINDINGS_SEED) cargo test --quiet --release -p airpath-findings \
	  --test planted -- --ignored --nocapture
	ADVICE_ONLY=$(ADVICE_ONLY) ADVICE_LOG=$(ADVICE_LOG) cargo test --quiet --release -p airpath-findings \
	  --test advice -- --ignored --nocapture
	cargo test --quiet --release -p airpath-sim --test breakdown -- --ignored

studies: build
	$(VENV)/airpath reproduce --report runs/studies.html

explorer:
	@tools/setup explorer

wheel: explorer
	@tools/setup wheel

# Exit code 1: a table differs, or Node is missing.
wasm-parity: explorer
	cargo test --quiet --release -p airpath-wasm --test parity -- --include-ignored --nocapture

# Rewrites the goldens, the generated reference and the types of documents; look at the diff.
bless: build
	AIRPATH_BLESS=1 cargo test --quiet $(CRATES)
	AIRPATH_BLESS=1 $(VENV)/python -m pytest --quiet

clean:
	rm -rf target .venv runs dist benches/peers/build

dev:
	@$(BARE) --help

bench docs: build
	$(DEV) $@ $(ARGS)

# Any other name is a program of dev/. It finds SEED=2, COUNT=5 and such in its environment.
.DEFAULT:
	@$(BARE) --help | grep '^  $@ ' >/dev/null || { echo "make: neither a target nor one of \`make dev\`: $@" >&2; exit 2; }
	@tools/setup
	@$(DEV) $@ $(ARGS)
