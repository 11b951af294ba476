# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# One word for each thing a newcomer wants. Everything below is CMake presets and scripts that can be called directly.
#   make demo                     install what is missing, build what the demo needs, run it
#   make check                    install, build, run all tests and checks (what CI runs)
#   make build | bench | coverage
#   make install PREFIX=/opt/diomp
#   make clean
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
DESTDIR ?=

# ccache makes a second build quick; it is used where it is found. Elsewhere the first one is made quick, by precompiled
# headers, with which ccache would keep nothing.
ccache := $(shell command -v ccache 2>/dev/null)
speed_up := $(if $(ccache),-DCMAKE_C_COMPILER_LAUNCHER=$(ccache) -DCMAKE_CXX_COMPILER_LAUNCHER=$(ccache) \
    -DDIOMP_PRECOMPILE=OFF,-DDIOMP_PRECOMPILE=ON)

.PHONY: all build demo check bench install coverage clean setup configure
all: build

setup:
	@scripts/setup.sh
	@scripts/fetch-llvm.sh >/dev/null || echo "Going on without libomptarget: device memory stays outside the address space."

configure: setup
	@cmake --preset release $(speed_up) -DCMAKE_INSTALL_PREFIX="$(PREFIX)" >/dev/null

build: configure
	@cmake --build --preset release -j $(JOBS)

demo: configure
	@cmake --build --preset release -j $(JOBS) --target demo
	@scripts/demo.sh build/release

# The peers of the comparison are looked for when the build is configured, hence their packages first.
bench:
	@scripts/setup.sh --check
	@$(MAKE) --no-print-directory build
	@scripts/bench.sh build/release

check:
	@scripts/setup.sh --check
	@scripts/fetch-llvm.sh >/dev/null || echo "Going on without libomptarget: device memory stays outside the address space."
	@scripts/gpu-toolchain.sh >/dev/null || echo "Going on without code for NVIDIA GPUs: its test is skipped."
	@scripts/dpu-sysroot.sh >/dev/null || echo "Going on without code for 64-bit Arm: its tests are skipped."
	@scripts/check.sh $(PARTS)

install: build
	@DESTDIR="$(DESTDIR)" cmake --install build/release

coverage:
	@scripts/setup.sh --check
	@scripts/coverage.sh

clean:
	@rm -rf build demo-output
