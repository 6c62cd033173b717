# make demo           makes the environment, builds airpath, runs a scenario and says where its report is
# make test           runs every test
# make test-strangers runs the tests of Python where PATH has programs that airpath never asked for
# make test-least     runs them with no program but those that README asks for
# make check          runs what CI runs: format, lints, types, docs, tests
# make bench          measures speed, beside htsim and ns-3
# make instructions   counts instructions per packet, by which changes of speed are judged
# make hashes         prints the SHA-256 of every table of what is shipped: a refactoring changes none
# make fuzz           runs the property tests with other cases, and with many
# make fuzz-scenarios  runs 10,000 scenarios drawn from the JSON schema: no panic, no impossible figure
# make fuzz-coverage  fuzzes by coverage: each target for ten minutes of processor time, or SECONDS=60
# make fuzz-corpus    puts the fewest files that cover what it found into fuzz/corpus
# make fuzz-campaigns  damages campaign files and the folders of campaigns and has them read, for ten minutes
# make fuzz-importers  damages outputs of iperf3, ping, ss, nuttcp and flent and has them read, for ten minutes
# make fuzz-runs      damages run directories and gives them to every command that takes one, for ten minutes
# make fuzz-diagnosed  damages captures and outputs of tools and gives them to `airpath diagnose`, for ten minutes
# make lock           renews requirements.lock: the newest packages that pyproject.toml allows; needs a network
# make audit          asks for known vulnerabilities of what airpath depends on; needs a network
# make findings       plants causes at random: are they named, and does the advice hold on other seeds?
# make findings-captures  plants causes at random and captures at the server: are they blamed? (root)
# make captures-compared  compares captures with tshark and tcptrace: equal, or by a written rule
# make captures-recorded  draws runs and compares the sender's capture with what the run itself records
# make captures-kernel  emulates such runs and compares the capture with what the kernel records (root)
# make fit            draws paths, captures them and fits scenarios: is it found again? as a table (root)
# make studies        runs the published experiments and writes a report
# make studies-emulated  runs one of them with the kernel's TCP, as a page (root)
# make calibrate      chooses the parameters of a study again, each by its figure alone
# make cures          compares cures for a deep buffer, as a page
# make study-search   searches jointly what studies leave open, as pages
# make private        writes the page of the study lte-private: windows, RTTs, a firewall
# make soak           emulates for 20 minutes: does it leak? FLOWS=100000 does so with many flows (root)
# make referee        compares the host kernel's TCP with airpath's, as a table (root)
# make twin           simulates and emulates scenarios and compares them, as a page (root)
# make twin-random    does so with random scenarios (root)
# make hostile        runs hostile programs inside an emulation, as a table (root)
# make cluster        runs a campaign on Dask and on a Slurm of this one node, and kills what runs it (root)
# make which-cc       runs the campaign which-cc and writes its page
# make wheel          builds the wheel for users, with the explorer and with a profile of runs, in dist/
# make explorer       builds what `airpath explore` serves; needs Node and a target of Rust
# make docs           the documentation as a site, with search and live figures
# make wasm-parity    native against WebAssembly: the same tables of all that is shipped, and the speed
# make hystart        runs slow starts inside the kernel over the study's LTE, as a page (root)

# No target is a file.
.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*/\1/p' Makefile)
SHELL := /bin/bash -o pipefail
VENV := .venv/bin
# Rust tests link no Python; the extension crate has none of its own.
CRATES := --workspace --exclude airpath-py
# Programs inside the kernel, where clang is there.
BPF = $(if $(shell tools/setup features),--features airpath-bpf/kernel$(comma)airpath-emu/bpf)
comma := ,
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
	@echo "The report is runs/demo.html: open it in a browser."

# Each suite writes its outcomes down; the end says them all.
test: export AIRPATH_OUTCOMES = $(CURDIR)/target/outcomes
test: build system compiled
	@: >$(AIRPATH_OUTCOMES); : >$(AIRPATH_OUTCOMES).began
	@$(MAKE) --no-print-directory rust-test rust-root-test python-test; status=$$?; \
	tools/outcomes total; exit $$status

# What the tests of Rust need.
compiled:
	cargo test --quiet --no-run $(CRATES) $(BPF)

check: lint test

# Python without a suffix.
TOOLS := tools/pages tools/audit tools/calibrate tools/document_types.py tools/fuzz tools/licences tools/outcomes tools/profiled tools/search
lint: build
	cargo fmt --all --check
	rustfmt --check --edition 2024 fuzz/fuzz_targets/*.rs
	cargo clippy --quiet --workspace --all-targets $(BPF) -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --quiet --no-deps $(CRATES) $(BPF)
	$(VENV)/ruff format --check python tests benches $(TOOLS)
	$(VENV)/ruff check python tests benches $(TOOLS)
	$(VENV)/mypy
	$(VENV)/python tools/licences

# TEST=name: only those of that name.
rust-test:
	@echo 'The property tests draw from PROPTEST_RNG_SEED=$(PROPTEST_RNG_SEED).'
	cargo test --quiet $(CRATES) $(BPF) $(TEST) | tools/outcomes rust

# Those that are marked `#[ignore = "needs root"]`, by name; one at a time, some are on the real clock.
NEEDS_ROOT = $(shell grep -rhA3 'ignore = "needs root"' crates --include='*.rs' | sed -n 's/.*fn \(\w*\)().*/\1/p')
rust-root-test:
	@if [ "$$(id -u)" -eq 0 ]; then \
	cargo test --quiet --tests $(CRATES) $(BPF) -- --ignored --test-threads=1 $(NEEDS_ROOT) | \
	tools/outcomes rust; \
	else echo 'Left out, because they need root: $(NEEDS_ROOT)'; fi

# What is on the real clock runs alone.
python-test:
	$(VENV)/python -m pytest --quiet --numprocesses auto --dist loadfile -m 'not real_clock'
	$(VENV)/python -m pytest --quiet -m real_clock

# PYTEST='tests/python/test_doctor.py -x': only that.
STRANGERS := iperf inetutils-ping tcptrace nuttcp busybox fping
test-strangers: build
	mkdir -p target/strangers
	cd target/strangers && apt-get download --quiet $(STRANGERS) && for each in *.deb; do dpkg -x $$each .; done
	PYTHONPATH=tests $(VENV)/python -m machines strangers --packages target/strangers $(PYTEST)

test-least: build
	PYTHONPATH=tests $(VENV)/python -m machines least $(PYTEST)

# Each step prints its figures as they come; those that fail are named in the end.
bench: build
	$(VENV)/python benches/steps.py

instructions: build
	@tools/setup package valgrind
	$(VENV)/python benches/instructions.py

hashes:
	@tools/setup
	@$(VENV)/python benches/hashes.py

FUZZ_CASES ?= 200000
fuzz:
	seed=$$(date +%s); echo "PROPTEST_RNG_SEED=$$seed"; \
	PROPTEST_RNG_SEED=$$seed PROPTEST_CASES=$(FUZZ_CASES) cargo test --release -p airpath-tcp --test behaviour two_ends; \
	PROPTEST_RNG_SEED=$$seed PROPTEST_CASES=$(FUZZ_CASES) cargo test --release -p airpath-path --test laws; \
	PROPTEST_RNG_SEED=$$seed PROPTEST_CASES=$$(( $(FUZZ_CASES) / 10 )) cargo test --release -p airpath-radio --test cell laws

SCENARIOS ?= 10000
fuzz-scenarios:
	SCENARIOS=$(SCENARIOS) cargo test --quiet -p airpath-findings --test drawn

# Exit code 3: not checked, because nightly Rust or cargo-fuzz is missing. TARGETS='gtpu trace': only those.
SECONDS ?= 600
fuzz-coverage:
	python3 tools/fuzz run $(SECONDS) $(TARGETS)

# Exit code 1: a file was neither read nor refused in a line, or took more than a second.
fuzz-importers: build
	PYTHONPATH=tests nice -n 19 $(VENV)/python -m fuzzed $(SECONDS) $(FUZZ_SEED)

# Exit code 1: something was neither read nor refused in a line, or took too long or too much memory.
fuzz-campaigns fuzz-diagnosed fuzz-runs: fuzz-%: build
	PYTHONPATH=tests nice -n 19 $(VENV)/python -m fuzzed.$* $(SECONDS) $(FUZZ_SEED)

fuzz-corpus:
	python3 tools/fuzz corpus $(TARGETS)

# Cargo.lock is renewed by `cargo update`.
lock: build
	$(VENV)/python -m pip install --quiet uv
	$(VENV)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --extra dev \
	  --custom-compile-command 'make lock' --output-file requirements.lock pyproject.toml

# Exit code 3: not checked.
audit: build
	$(VENV)/python tools/audit

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

# Exit code 1: too few are named first, or too many of the healthy.
PLANTED_SEED ?= 1
findings-captures: build
	PYTHONPATH=tests $(VENV)/python -m planted $(PLANTED_SEED)

# Exit code 1: a difference has no rule. 3: AIRPATH_PCAPS names no folder, or a tool is missing.
captures-compared: build
	-@tools/setup package tshark tcptrace
	PYTHONPATH=tests $(VENV)/python -m compared --page docs/reference/captures-compared.md

# Exit code 1: retransmissions are not the same, or another figure is wrong in more than one run of ten.
RECORDED_SEED ?= 1
captures-recorded: build
	PYTHONPATH=tests $(VENV)/python -m recorded $(RECORDED_SEED)

# The same, as root. Exit code 3: not root.
captures-kernel: build
	PYTHONPATH=tests $(VENV)/python -m recorded.kernel $(RECORDED_SEED)

# Exit code 1: a figure is wrong.
FIT_SEED ?= 1
fit: build
	PYTHONPATH=tests $(VENV)/python -m fitted $(FIT_SEED)

studies: build
	$(VENV)/airpath reproduce --report runs/studies.html

# Exit code 0 without root: it says what is absent and why.
studies-emulated: build
	PYTHONPATH=tests $(VENV)/python -m private

STUDY ?= nr-bbr-cubic
calibrate: build
	$(VENV)/python tools/calibrate $(STUDY)

SEARCHED ?= 3g-latency 5g-drx lte-cubic-hystart nr-bbr-cubic
study-search: build
	for study in $(SEARCHED); do $(VENV)/python tools/search $$study $(if $(BUDGET),--budget $(BUDGET)) || exit; done

cures: build
	$(VENV)/python tools/pages/cures.py

private: build
	$(VENV)/python tools/pages/private.py

soak: build
	$(VENV)/python benches/soak.py $(if $(FLOWS),--flows $(FLOWS))

referee: build
	PYTHONPATH=tests $(VENV)/python -m referee

twin: build
	PYTHONPATH=tests $(VENV)/python -m twin

# Exit code 1: fewer than nine in ten judged figures agree, or one scenario in twenty was not judged.
SEED ?= 1
COUNT ?= 16
twin-random: build
	PYTHONPATH=tests $(VENV)/python -m twin.drawn $(SEED) $(COUNT) $(if $(PAGE),--page $(PAGE))

hostile: build
	PYTHONPATH=tests $(VENV)/python -m hostile

# Exit code 3: without Slurm, whose packages are slurm-wlm and munge.
cluster: build
	-@tools/setup package slurm-wlm munge
	PYTHONPATH=tests:tests/python $(VENV)/python -m cluster

# At most 60 minutes of processor time; interrupted, it goes on where it was.
which-cc: build
	$(VENV)/airpath sweep which-cc --out runs/which-cc --resume
	$(VENV)/python tools/pages/which_cc.py runs/which-cc

explorer:
	@tools/setup explorer

wheel: explorer
	@tools/setup wheel

# Exit code 1: a link leads nowhere. Figures are live where `make explorer` has been.
docs: build
	$(VENV)/python tools/pages/website.py target/site
	@echo 'The site is target/site: python3 -m http.server --directory target/site'

# Exit code 1: a table differs, or Node is missing.
wasm-parity: explorer
	cargo test --quiet --release -p airpath-wasm --test parity -- --include-ignored --nocapture

hystart: build
	PYTHONPATH=tests $(VENV)/python -m hystart

# Rewrites the goldens, the generated reference and the types of documents; look at the diff.
bless: build
	AIRPATH_BLESS=1 cargo test --quiet $(CRATES)
	AIRPATH_BLESS=1 $(VENV)/python -m pytest --quiet

clean:
	rm -rf target .venv runs dist benches/peers/build
