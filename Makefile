# Entry points; the work is in cargo and in scripts/. One profile (release) for everything here, so that no dependency
# is compiled twice: CONTRIBUTING.md, "Builds". `make` alone lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# A rustup that this shell has not heard of yet.
export PATH := $(PATH):$(HOME)/.cargo/bin

bin := $(or $(CARGO_TARGET_DIR),target)/release
run := $(bin)/codemode run --trace --tools 'python3 client/examples/sample/tools.py' client/examples/sample/program.ts

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

.PHONY: run
run: build ## Set up, build, and run the sample program on an executor started for it
	$(run)

.PHONY: test
test: build ## Set up, build, and run every check and every test
	scripts/test.sh

.PHONY: setup
setup: ## Install what a build needs and this machine lacks
	@scripts/setup.sh

.PHONY: build
build: runners ## Build executor, command line and runners (target/release)
	cargo build --release --bins

.PHONY: runners
runners: setup ## Build the runner of quickjs, and that of v8 where its library can be had
	cargo build --release -p codemode-runner
	@scripts/v8.sh build

.PHONY: v8
v8: setup ## Build the runner of v8, trying anew what failed before
	@CODEMODE_V8=retry scripts/v8.sh build

.PHONY: conformance
conformance: build ## Run the conformance cases; ARGS='ledger --engine v8' chooses
	$(bin)/conformance --report $(dir $(bin))conformance $(ARGS)

.PHONY: python
python: build ## Run the Python example against an executor, on each engine
	scripts/python-example.sh

.PHONY: bench
bench: build ## Measure, beside peers where they can be had; ARGS='trivial --quick' chooses
	cargo bench --bench json
	cargo bench --bench executor -- $(ARGS)

.PHONY: fmt
fmt: ## Format
	cargo fmt --all

.PHONY: fmt-check
fmt-check: ## Check the format
	cargo fmt --all -- --check

.PHONY: lint
lint: setup ## Clippy on all crates and both engines, the dependency rules, what documents name
	cargo clippy --release --all-targets -- -D warnings
	cargo clippy --release -p codemode-runner --all-targets -- -D warnings
	scripts/v8.sh do cargo clippy --release -p codemode-runner --no-default-features --features v8 --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings -A rustdoc::private_intra_doc_links' cargo doc --release --no-deps --document-private-items --quiet
	scripts/check_dependencies.py
	scripts/check_docs.py

.PHONY: gen
gen: build examples ## Write the generated files: proto, configuration reference, engine differences
	$(bin)/examples/generate
	$(bin)/examples/config_reference
	$(bin)/examples/registry_config_reference
	cargo run --release --bin conformance -- --write-differences

# Tests hold them to be current as well; this says it without running any.
.PHONY: gen-check
gen-check: examples ## Check that the generated files are current
	$(bin)/examples/generate --check
	$(bin)/examples/config_reference --check
	$(bin)/examples/registry_config_reference --check
	cargo test --release --test cases the_page_of_differences_is_current

.PHONY: examples
examples: setup
	cargo build --release --examples

.PHONY: docs
docs: ## Build the crates' documentation (target/doc)
	cargo doc --release --no-deps --document-private-items

.PHONY: clean
clean: ## Remove what builds made
	cargo clean
