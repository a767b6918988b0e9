# One command for each thing; `make` lists them. Each does its set-up first, and keeps it in the user's cache folder.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/spillway
# Not in the clone, but one for all clones: a fresh one finds the dependencies built, which take a quarter of an hour.
export CARGO_TARGET_DIR ?= $(CACHE)/target
PYTHON := $(or $(SPILLWAY_BED_PYTHON),$(CACHE)/venv/bin/python)
BENCH := $(CARGO_TARGET_DIR)/debug/spillway-bench
DEMO := $(CARGO_TARGET_DIR)/debug/spillway-demo

# This machine's processor, as SAM calls it: what is tested must run here.
HERE := $(if $(filter aarch64 arm64,$(shell uname -m)),arm64,x86_64)
ARCHITECTURE ?= arm64
# Apart from .aws-sam/build, so that a test never changes what the next `sam deploy` ships.
SAM_TEST := .aws-sam/test
# What the functions asked AWS for in the tests.
RIGHTS := $(CURDIR)/.aws-sam/rights

# The functions' release build, and that of what they are measured against.
RELEASE_BUILD = scripts/sam-build $(HERE) $(SAM_TEST)
BASELINE = PATH=$(dir $(PYTHON)):$$PATH scripts/step --quiet "baseline" \
	cargo lambda build --release --package spillway-baseline $(if $(filter arm64,$(HERE)),--arm64)
# What needs the packages and a control plane of its own. `load` counts what the API server puts off, so it runs when the others have ended.
SIDE_BY_SIDE := test-scenarios test-enroll test-others
END_TO_END := $(SIDE_BY_SIDE) test-load
# Each variable that was given, as an option: RUNS=3 as --runs "3".
given = $(foreach name,$(1),$(if $($(name)),--$(shell tr A-Z_ a-z- <<<$(name)) "$($(name))"))

.PHONY: help demo bed doctor bench simulate fuzz night mutants test test-oldest test-arm64 lint ci build release clean
.PHONY: bed-setup ready need venv control-plane own-clone programs tests packaged test-python test-rust test-release $(END_TO_END)

##@ Try it
demo: ready ## a spot notice and a terminate notice on a real cluster, live (EVENT=events/….json sends another)
	@$(DEMO) demo $(call given,EVENT)

bed: ready ## the cluster of the demo, kept up for you to play with
	@$(DEMO) play

doctor: ready ## what the doctor finds in the cluster of the demo (tools/spillway doctor asks the one of a real account)
	@$(DEMO) doctor

bench: ready ## how fast, how small, beside NTH: docs/contributing/measured/bench.md, from the release build (RUNS=6 CASES=750x2 BEFORE=…/bootstrap NTH=…)
	@$(RELEASE_BUILD)
	@$(BASELINE)
	@$(BENCH) run $(call given,RUNS CASES EXECUTIONS BEFORE NTH)

simulate: need own-clone ## many worlds in memory, each drawn from a seed: SEEDS=1000000 for a night, SEED=17 is one with its history
	@SEEDS=$(or $(SEEDS),10000) WORLDS=$(CACHE)/worlds $(if $(SEED),SEED=$(SEED)) $(if $(FROM),FROM=$(FROM)) \
		cargo test --workspace --lib worlds_obey_all_laws -- --nocapture

fuzz: need own-clone ## inputs for each parser, guided by what its code does with them (TARGET=notices, FOR=seconds or RUNS=n)
	@RUNS=$(RUNS) FOR=$(or $(FOR),60) scripts/fuzz $(TARGET)

night: need ## all that is too long or too random for `make test`, and a page about it (PARTS="worlds faults stalls oldest storm fuzz mutants")
	@scripts/night $(PARTS)

mutants: need ## changes in the pure code that no test notices (PACKAGE=spillway-notice, SHARD=0/8)
	@scripts/mutants $(call given,PACKAGE SHARD)

##@ Work on it
test: need ## everything: pure, on the wire, the template, end to end with the binary that `sam build` makes (BUNDLE=dist/… takes a release's)
	@$(MAKE) --jobs=3 venv control-plane tests
	@$(MAKE) --jobs=2 packaged test-python test-rust
	@$(MAKE) --jobs=4 $(SIDE_BY_SIDE)
	@$(MAKE) --jobs=2 test-load test-release
	@scripts/step "least rights" env PYTHONPATH=tests/bed/aws $(PYTHON) tests/rights/least.py $(RIGHTS)
	@scripts/step "least rights in the cluster" $(PYTHON) tests/rights/cluster.py $(RIGHTS)

lint: need venv ## format, clippy, dependencies, scripts, language
	@scripts/step "format" cargo fmt --all --check
	@scripts/step "clippy" cargo clippy --workspace --all-targets -- -D warnings
	@scripts/step "dependencies" scripts/check-dependencies
	@scripts/step "scripts" scripts/check-syntax
	@scripts/step "language" scripts/check-language

ci: ## what the continuous integration runs: test, then lint
	@.ci/run

build: need venv ## the package to deploy, as `sam build` (ARCHITECTURE=arm64 or x86_64)
	@scripts/sam-build $(ARCHITECTURE) .aws-sam/build

release: need venv ## dist/: the bundle of both architectures, its bill of materials and its checksums, from the committed sources
	@scripts/test-arm64 --need
	@test -z "$$(git status --porcelain)" || { echo "make release: there are changes that are not committed" >&2; exit 1; }
	@$(PYTHON) scripts/release changes
	@$(PYTHON) scripts/release measured
	@rm -rf dist .aws-sam/release
	@SPILLWAY_RELEASE=1 scripts/sam-build arm64 .aws-sam/release/arm64
	@SPILLWAY_RELEASE=1 scripts/sam-build x86_64 .aws-sam/release/x86_64
	@for binary in .aws-sam/release/*/*/bootstrap; do scripts/check-glibc $$binary; done
	@$(PYTHON) scripts/release pack arm64=.aws-sam/release/arm64 x86_64=.aws-sam/release/x86_64
	@scripts/sbom dist
	@$(PYTHON) scripts/release sums dist
	@$(MAKE) test-arm64

test-arm64: bed-setup own-clone ## a handful of scenarios on the arm64 package in dist/, under qemu-user where the machine is another
	@scripts/step "scenarios on arm64" scripts/test-arm64 dist/spillway-$$($(PYTHON) scripts/release version).tar.gz

test-oldest: need ## what `make test` does end to end, on the oldest supported Kubernetes
	@$(MAKE) --jobs=3 venv control-plane tests
	@scripts/control-plane oldest
	@$(MAKE) packaged
	@export SPILLWAY_BED_BIN=$(CACHE)/control-plane/oldest; $(MAKE) --jobs=4 $(SIDE_BY_SIDE) && $(MAKE) test-load

bed-setup: need ## only the set-up: Python packages and the control plane's programs
	@$(MAKE) --jobs=2 venv control-plane

clean: ## takes away all that was built, the cache folder too
	rm -rf .aws-sam $(CACHE)

help:
	@awk -F ':.*## ' '/^##@ / {print "\n" substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile
	@echo
	@echo "The first build takes 10 to 15 minutes on 2 cores and 6 GiB of memory (test: 25, and 9 GiB); kept in $(CACHE)"

# What the demo and the measurements need, made side by side: Python, Go and Rust each have a long single-threaded stretch.
ready: need
	@$(MAKE) --jobs=3 venv control-plane programs

need:
	@scripts/need

venv:
	@scripts/venv

control-plane:
	@scripts/control-plane
	@scripts/karpenter

# Cargo takes for fresh what another clone built of the same sources. A test built there looks for its files there, and that clone may
# be gone, so our own crates are built once more.
own-clone:
	@[[ $$(cat $(CARGO_TARGET_DIR)/clone 2>/dev/null) == "$(CURDIR)" ]] || { \
		find bench crates demo functions tests -name '*.rs' -exec touch {} + && mkdir -p $(CARGO_TARGET_DIR) && echo "$(CURDIR)" >$(CARGO_TARGET_DIR)/clone; }

# Only what is started, because the whole workspace takes several minutes more.
PROGRAMS ?= demo drain
bench: export PROGRAMS := bench drain

programs: own-clone
	@scripts/step --quiet "Rust programs" cargo build --bins $(PROGRAMS:%=--package spillway-%)

# Built before they run, because two builds at once take more memory than most machines have.
tests: own-clone
	@scripts/step --quiet "Rust tests" cargo test --workspace --no-run

# With BUNDLE=dist/spillway-VERSION.tar.gz, what is in a release is tested, and nothing is built for it.
packaged:
	@$(if $(BUNDLE),$(PYTHON) scripts/release unpack $(BUNDLE) $(HERE) $(SAM_TEST),$(RELEASE_BUILD))
	@for function in Drain Announcer; do scripts/check-glibc $(SAM_TEST)/$$function/bootstrap; done
	@rm -rf $(RIGHTS) && mkdir -p $(RIGHTS)

# What needs no package, in Python and in Rust: it runs beside the release build, which takes one core for minutes to link.
python-tests = @$(NICE) scripts/step "$(1)" env PYTHONPATH=tests/bed/aws \
	$(PYTHON) -m unittest discover --start-directory $(1) $(if $(2),--top-level-directory $(2))
test-python:
	@scripts/step "template: lint" scripts/check-template
	$(call python-tests,tests/template)
	$(call python-tests,tests/pages)
	$(call python-tests,tests/bed/aws/tests,tests/bed/aws)
	$(call python-tests,tests/attacks)
	$(call python-tests,tests/scripts)
	$(call python-tests,tools/tests,tools)

test-rust:
	@scripts/step "Rust tests, in process" cargo test --workspace --lib --bins
	@# Without make's own job slots, which rustdoc is told of and cannot find.
	@scripts/step "Rust tests, in the documentation" env -u MAKEFLAGS -u MFLAGS cargo test --workspace --doc

# What needs the packages, and no control plane. The bundle is made of the very binaries that the scenarios run.
test-release:
	$(call python-tests,tests/release)

# End to end, half of a test's time is waiting: more of them at once than there are cores. The longest programs run beside each
# other, and beside all others, which run one after another.
bench test-release $(END_TO_END): export SPILLWAY_DRAIN := $(CURDIR)/$(SAM_TEST)/Drain/bootstrap
test-release $(END_TO_END): export SPILLWAY_ANNOUNCE := $(CURDIR)/$(SAM_TEST)/Announcer/bootstrap
test-scenarios test-others: export RUST_TEST_THREADS := 8
$(END_TO_END): export SPILLWAY_RIGHTS := $(RIGHTS)
# Those that ask for no time let those go first that do.
test-release test-enroll: NICE := nice -n 5

test-scenarios test-enroll test-load: test-%:
	@$(NICE) scripts/step "Rust tests, $*" cargo test --workspace --test $*

TESTS := $(wildcard $(addsuffix /tests/*.rs,bench demo crates/* functions/* tests/*) tests/*/tests/*/main.rs)
OTHER_TESTS := $(filter-out scenarios enroll load,$(basename $(notdir $(TESTS:/main.rs=))))

test-others:
	@scripts/step "Rust tests, all others" cargo test --workspace $(OTHER_TESTS:%=--test=%)
