# What people run: see README.md.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
.PHONY: run test lint bench release packages

# A folder of your own for the first manifest.
FOLDER ?= $(CURDIR)/target/first
TARGET := $(shell uname -m)-unknown-linux-musl

# What the tests need besides Rust, as Debian packages.
PACKAGES := gcc acl attr e2fsprogs mmdebstrap openssl python3 strace systemd-container util-linux

run:
	cargo run -q -- apply examples/first \
	  --data folder=$(FOLDER) --data user=$$(id -un) --data group=$$(id -gn)

test: packages
	@mkdir -p target
	cargo test --workspace --no-fail-fast 2>&1 | tee target/tests.log; status=$$?; \
	awk '/^test result:/ { passed += $$4; failed += $$6; skipped += $$8 } \
	     END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped }' target/tests.log; \
	exit $$status

# Only root on a Debian machine installs anything, and only what is missing.
packages:
	@missing=; for package in $(PACKAGES); do \
	  dpkg -s $$package 2>/dev/null | grep -q '^Status: .* installed' || missing="$$missing $$package"; done; \
	if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing; \
	elif [ -n "$$missing" ]; then echo "not installed:$$missing; tests that need them are skipped"; fi

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

bench:
	cargo build --release
	cargo bench --profile dev --bench peers -- target/release/ccm

# One static, stripped binary.
release:
	rustup target add $(TARGET)
	cargo build --release --target $(TARGET)
	@ls -l target/$(TARGET)/release/ccm
