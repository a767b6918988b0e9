# One command for each thing; `make` lists them. Each does all its set-up, and keeps it in the user's cache folder.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/spillway
# Never in the clone: a fresh clone builds nothing anew that another has built.
export CARGO_TARGET_DIR ?= $(CACHE)/target
PYTHON := $(or $(SPILLWAY_BED_PYTHON),$(CACHE)/venv/bin/python)
BENCH := $(CARGO_TARGET_DIR)/debug/spillway-bench
DEMO := $(CARGO_TARGET_DIR)/debug/spillway-demo

# This machine's processor, as SAM calls it: what is tested must run here.
HERE := $(if $(filter aarch64 arm64,$(shell uname -m)),arm64,x86_64)
# Apart from .aws-sam/build, so that a test never changes what the next `sam deploy` ships.
SAM_TEST := .aws-sam/test
# What the functions asked AWS for in the tests.
RIGHTS := $(CURDIR)/.aws-sam/rights
ARCHITECTURE ?= arm64

.PHONY: help demo bed doctor bench chaos fuzz load mutants peers simulate test test-oldest build release test-arm64 lint ci clean bed-setup
.PHONY: venv control-plane programs tests packaged-to-test test-pure test-release test-scenarios test-others

##@ Try it
demo: ## a spot notice and a terminate notice on a real cluster, live (EVENT=events/….json sends another)
	@scripts/need
	@$(MAKE) --jobs=3 venv control-plane programs
	@$(DEMO) demo $(if $(EVENT),--event $(EVENT))

bed: ## the cluster of the demo, kept up for you to play with
	@scripts/need
	@$(MAKE) --jobs=3 venv control-plane programs
	@$(DEMO) play

doctor: ## what the doctor finds in the cluster of the demo (scripts/doctor asks the one of a real account)
	@scripts/need
	@$(MAKE) --jobs=3 venv control-plane programs
	@$(DEMO) doctor

bench: ## how fast and how small: docs/bench.md, from the release build (RUNS=15 for a shorter look)
	@scripts/need
	@$(MAKE) --jobs=3 venv control-plane programs
	@scripts/sam-build $(HERE) $(SAM_TEST)
	@PATH=$(dir $(PYTHON)):$$PATH scripts/progress "what it is measured against" \
		cargo lambda build --release --package spillway-baseline $(if $(filter arm64,$(HERE)),--arm64)
	@SPILLWAY_DRAIN=$(CURDIR)/$(SAM_TEST)/Drain/bootstrap $(BENCH) bench $(if $(RUNS),--runs $(RUNS))

peers: ## beside kubectl drain and NTH, in turn: docs/peers.md, from the release build (RUNS=3 NTH_TUNED=…)
	@scripts/need
	@$(MAKE) --jobs=3 venv control-plane programs
	@scripts/peers
	@PATH=$(dir $(PYTHON)):$$PATH scripts/progress "the evictions alone" \
		cargo lambda build --release --package spillway-baseline $(if $(filter arm64,$(HERE)),--arm64)
	@scripts/sam-build $(HERE) $(SAM_TEST)
	@SPILLWAY_DRAIN=$(CURDIR)/$(SAM_TEST)/Drain/bootstrap $(BENCH) peers \
		$(if $(RUNS),--runs $(RUNS)) $(if $(NTH_TUNED),--nth-tuned $(NTH_TUNED))

load: ## what a drain costs in a cluster of 5,000 nodes and 50,000 pods: docs/load.md, from the release build (NODES=, PODS=)
	@scripts/need
	@$(MAKE) --jobs=3 venv control-plane programs
	@scripts/sam-build $(HERE) $(SAM_TEST)
	@SPILLWAY_DRAIN=$(CURDIR)/$(SAM_TEST)/Drain/bootstrap $(BENCH) load $(if $(NODES),--nodes $(NODES)) $(if $(PODS),--pods $(PODS))

chaos: ## 500 notices while much goes wrong: docs/chaos.md, in about seven minutes (NOTICES=10000 MINUTES=120 SEED=7)
	@scripts/need
	@$(MAKE) --jobs=3 venv control-plane programs
	@$(BENCH) chaos $(if $(NOTICES),--notices $(NOTICES)) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED))

simulate: ## many worlds in memory, each drawn from a seed: SEEDS=1000000 for a night, SEED=17 is one with its history
	@scripts/need
	@scripts/own-clone
	@SEEDS=$(or $(SEEDS),10000) $(if $(SEED),SEED=$(SEED)) $(if $(FROM),FROM=$(FROM)) \
		cargo test --workspace --lib simulation::whatever_happens -- --nocapture

fuzz: ## inputs for each parser, guided by what its code does with them (TARGET=notices, FOR=seconds or RUNS=n)
	@scripts/need
	@scripts/own-clone
	@RUNS=$(RUNS) FOR=$(or $(FOR),60) scripts/fuzz $(TARGET)

mutants: ## changes in the pure code that no test notices (PACKAGE=spillway-notice, SHARD=1/8)
	@scripts/need
	@SHARD=$(SHARD) scripts/mutants $(if $(PACKAGE),--package $(PACKAGE))

##@ Work on it
test: ## everything: pure, on the wire, the template, end to end with the binary that `sam build` makes (BUNDLE=dist/… takes a release's)
	@scripts/need
	@$(MAKE) --jobs=3 venv control-plane tests
	@$(MAKE) --jobs=2 packaged-to-test test-pure
	@rm -rf $(RIGHTS) && mkdir -p $(RIGHTS)
	@$(MAKE) --jobs=2 test-scenarios test-others test-release
	@scripts/timed "least rights" env PYTHONPATH=tests/bed/aws $(PYTHON) tests/rights/least.py $(RIGHTS)

lint: ## format, clippy, the order of the rooms, dependencies, scripts
	@scripts/need
	@$(MAKE) venv
	@scripts/timed "format" cargo fmt --all --check
	@scripts/timed "clippy" cargo clippy --workspace --all-targets -- -D warnings
	@scripts/timed "one direction" scripts/check-direction
	@scripts/timed "one TLS stack" scripts/check-tls
	@scripts/timed "dependencies" scripts/check-dependencies
	@scripts/timed "scripts" scripts/check-syntax

ci: ## what the continuous integration runs: test, then lint
	@.ci/run

build: ## the package to deploy, as `sam build` (ARCHITECTURE=arm64 or x86_64)
	@scripts/need
	@$(MAKE) venv
	@scripts/sam-build $(ARCHITECTURE) .aws-sam/build

release: ## dist/: the bundle of both architectures, its bill of materials and its checksums, from the committed sources
	@scripts/need
	@$(MAKE) venv
	@test -z "$$(git status --porcelain)" || { echo "make release: there are changes that are not committed" >&2; exit 1; }
	@$(PYTHON) scripts/release changes
	@rm -rf dist .aws-sam/release
	@SPILLWAY_RELEASE=1 scripts/sam-build arm64 .aws-sam/release/arm64
	@SPILLWAY_RELEASE=1 scripts/sam-build x86_64 .aws-sam/release/x86_64
	@for binary in .aws-sam/release/*/*/bootstrap; do scripts/check-glibc $$binary; done
	@$(PYTHON) scripts/release pack arm64=.aws-sam/release/arm64 x86_64=.aws-sam/release/x86_64
	@scripts/sbom dist
	@$(PYTHON) scripts/release sums dist
	@$(MAKE) test-arm64

test-arm64: ## a handful of scenarios on the arm64 package in dist/, under qemu-user where the machine is another
	@scripts/need
	@$(MAKE) --jobs=2 venv control-plane
	@scripts/own-clone
	@scripts/timed "Rust tests, scenarios on arm64" scripts/test-arm64 dist/spillway-$$($(PYTHON) scripts/release version).tar.gz

test-oldest: ## what `make test` does end to end, on the oldest Kubernetes that EKS supports
	@scripts/need
	@$(MAKE) --jobs=3 venv control-plane tests
	@scripts/control-plane-oldest
	@$(MAKE) packaged-to-test
	@rm -rf $(RIGHTS) && mkdir -p $(RIGHTS)
	@SPILLWAY_BED_BIN=$(CACHE)/control-plane/oldest $(MAKE) --jobs=2 test-scenarios test-others

bed-setup: ## only the set-up: Python packages and the control plane's programs
	@scripts/need
	@$(MAKE) --jobs=2 venv control-plane

clean: ## takes away all that was built, the cache folder too
	rm -rf .aws-sam $(CACHE)

help:
	@awk -F ':.*## ' '/^##@ / {print "\n" substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile
	@echo
	@echo "The first build takes about 15 minutes on 2 cores (test: 40) and 9 GiB of memory; kept in $(CACHE)"

# The set-up, made side by side: Python downloads, Go and Rust each have a long single-threaded stretch.
venv:
	@scripts/venv

control-plane:
	@scripts/control-plane
	@scripts/karpenter

programs:
	@scripts/own-clone
	@scripts/progress "Rust programs" cargo build --bins --package spillway-announce --package spillway-bed --package spillway-demo --package spillway-drain

# Built before they run, because two builds at once take more memory than most machines have.
tests:
	@scripts/own-clone
	@scripts/progress "Rust tests" cargo test --workspace --no-run

# With BUNDLE=dist/spillway-VERSION.tar.gz, what is in a release is tested, and nothing is built for it.
packaged-to-test:
	@$(if $(BUNDLE),$(PYTHON) scripts/release unpack $(BUNDLE) $(HERE) $(SAM_TEST),scripts/sam-build $(HERE) $(SAM_TEST))
	@scripts/check-glibc $(SAM_TEST)/Drain/bootstrap
	@scripts/check-glibc $(SAM_TEST)/Announcer/bootstrap

# What needs no package: it runs beside the release build, which takes one core for minutes to link.
test-pure:
	@scripts/timed "template: lint" scripts/check-template
	@scripts/timed "template: tests" env PYTHONPATH=tests/bed/aws $(PYTHON) -m unittest discover --start-directory tests/template
	@scripts/timed "test bed: AWS side" env PYTHONPATH=tests/bed/aws \
		$(PYTHON) -m unittest discover --top-level-directory tests/bed/aws --start-directory tests/bed/aws/tests
	@scripts/timed "least rights: tests" env PYTHONPATH=tests/bed/aws $(PYTHON) -m unittest discover --start-directory tests/rights
	@scripts/timed "tools: tests" $(PYTHON) -m unittest discover --top-level-directory tools --start-directory tools/tests
	@scripts/timed "smoke: tests" $(PYTHON) -m unittest discover --top-level-directory tests/smoke --start-directory tests/smoke/tests
	@scripts/timed "scripts: tests" $(PYTHON) -m unittest discover --start-directory tests/scripts
	@scripts/timed "Rust tests, in process" cargo test --workspace --lib --bins
	@# Without make's own job slots, which rustdoc is told of and cannot find.
	@scripts/timed "Rust tests, in the documentation" env -u MAKEFLAGS -u MFLAGS cargo test --workspace --doc

# What needs the packages, and no control plane. The bundle is made of the very binaries that the scenarios run.
test-release:
	@scripts/timed "the release: tests" $(PYTHON) -m unittest discover --start-directory tests/release

# End to end, most of a test's time is waiting: more of them at once than there are cores, and beside the scenarios, which
# are one program, all others, one after another.
test-release test-scenarios test-others: export SPILLWAY_DRAIN := $(CURDIR)/$(SAM_TEST)/Drain/bootstrap
test-release test-scenarios test-others: export SPILLWAY_ANNOUNCE := $(CURDIR)/$(SAM_TEST)/Announcer/bootstrap
test-scenarios test-others: export RUST_TEST_THREADS := 6
test-scenarios test-others: export SPILLWAY_RIGHTS := $(RIGHTS)

test-scenarios:
	@scripts/timed "Rust tests, scenarios" cargo test --workspace --test scenarios

CRATES := bench bench/baseline demo crates/* functions/* tests/*
TEST_FILES := $(wildcard $(CRATES:%=%/tests/*.rs))
TEST_FOLDERS := $(patsubst %/main.rs,%,$(wildcard $(CRATES:%=%/tests/*/main.rs)))
OTHER_TESTS := $(filter-out scenarios,$(basename $(notdir $(TEST_FILES))) $(notdir $(TEST_FOLDERS)))

test-others:
	@scripts/timed "Rust tests, all others" cargo test --workspace $(OTHER_TESTS:%=--test=%)
