# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# One word for each thing a newcomer wants. Everything below is CMake presets and scripts that can be called directly.
#   make demo                     install what is missing, build what the demo needs, run it
#   make demo LLVM=22             the same with another version of LLVM than scripts/llvm-choice.sh takes; also make build, install
#   make check                    install, build, run tests and checks (what CI runs; PARTS="dev tidy" for some of them)
#   make check-all                the same with the thorough tests, gcc, 64-bit Arm, every test under the sanitizers
#   make build | bench | coverage
#   make install PREFIX=/opt/diomp
#   make deb                      Debian packages in build/deb
#   make docs                     the documentation as a site in build/site
#   make clean
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
DESTDIR ?=

# ccache makes a second build quick; it is used where it is found.
ccache := $(shell command -v ccache 2>/dev/null)
speed_up := $(if $(ccache),-DCMAKE_C_COMPILER_LAUNCHER=$(ccache) -DCMAKE_CXX_COMPILER_LAUNCHER=$(ccache))

# Asked after setup has installed what is missing.
wanted_llvm := $(or $(LLVM),$(DIOMP_LLVM))
ifneq ($(wanted_llvm),)
export DIOMP_LLVM := $(wanted_llvm)
endif
llvm = $(shell DIOMP_LLVM=$(wanted_llvm) scripts/llvm-choice.sh)
clang = $(shell DIOMP_LLVM=$(wanted_llvm) scripts/llvm-choice.sh --installed)
compilers = -DCMAKE_C_COMPILER=clang-$(clang) -DCMAKE_CXX_COMPILER=clang++-$(clang) $(if $(wanted_llvm)$(filter-out 19,$(llvm)),-DDIOMP_LLVM_VERSIONS=$(llvm))

.PHONY: all build demo check check-all bench install deb coverage docs clean setup configure
all: build

setup:
	@scripts/setup.sh $(packages)
	@scripts/fetch-llvm.sh --llvm $(llvm) >/dev/null || echo "Going on without libomptarget: device memory stays outside the address space."

configure: setup
	@cmake --preset release $(speed_up) $(compilers) -DCMAKE_INSTALL_PREFIX="$(PREFIX)" >/dev/null

build: configure
	@cmake --build --preset release -j $(JOBS)

# With fewer packages than a build of everything needs: what they are for is not part of the demo.
demo: packages := --demo
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
	@scripts/llvm-toolchain.sh --llvm 22 >/dev/null && scripts/fetch-llvm.sh --llvm 22 >/dev/null || echo "Going on without LLVM 22: its tests are skipped."
	@scripts/fetch-llvm.sh >/dev/null || echo "Going on without libomptarget: device memory stays outside the address space."
	@scripts/gpu-toolchain.sh >/dev/null || echo "Going on without code for NVIDIA GPUs: its test is skipped."
	@scripts/dpu-sysroot.sh >/dev/null || echo "Going on without code for 64-bit Arm: its tests are skipped."
	@scripts/python-env.sh >/dev/null || echo "Going on without the package for Python: its tests are skipped."
	@scripts/check.sh $(CHECK) $(PARTS)

check-all:
	@scripts/setup.sh --deb
	@$(MAKE) --no-print-directory check CHECK=--all

install: build
	@DESTDIR="$(DESTDIR)" cmake --install build/release

deb:
	@scripts/setup.sh --deb
	@JOBS=$(JOBS) scripts/deb.sh

coverage:
	@scripts/setup.sh --check
	@scripts/coverage.sh

docs:
	@scripts/setup.sh --check
	@scripts/docs-site.py build/site

clean:
	@rm -rf build demo-output
