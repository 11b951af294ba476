#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Installs the Debian packages that the build, the demo and the checks need. Quick when all are there: then it asks
# dpkg and does nothing else. Works as root or through sudo.
#
#   scripts/setup.sh           what `make build` needs
#   scripts/setup.sh --demo    less: what `make demo` needs
#   scripts/setup.sh --check   also what `make check` and the comparisons need
#   scripts/setup.sh --llvm 22 also another version of LLVM, beside the packaged one (scripts/llvm-toolchain.sh), and the
#                              source of its libomptarget; build with -DDIOMP_LLVM_VERSIONS="19;22" (docs/llvm.md)
#   scripts/setup.sh --flang   also flang, of 19 and of each --llvm: the Fortran module is built and tested for it, too (1 GB
#                              for each; without it these tests are skipped)
#   scripts/setup.sh --deb     what `make deb` and the test of its packages need, beside what the build needs
#   scripts/setup.sh --list    prints the packages and their reasons, installs nothing
#
# What the build and the demo need is of the LLVM that scripts/llvm-choice.sh names, so that DIOMP_LLVM=22 takes another one
# than it would; the checks and the Debian packages need 19.
set -eu

# One package a line: name, then the reason.
demo_packages='
clang-19              compiler; brings libstdc++ and the linker
clang-tools-19        clang-offload-packager and clang-linker-wrapper, which programs with target regions are linked with
libomp-19-dev         omp.h and the OpenMP runtime that programs run on
llvm-19               llvm-symbolizer, for backtraces and the call sites of DIOMP_STATS
cmake                 build system
ninja-build           build system, keeps all cores busy
pkg-config            finds libraries here, and installed copies of DiOMP in the tests
libfmt-dev            text formatting in the runtime
libcli11-dev          options of the tools
nlohmann-json3-dev    JSON output of diomp-info and diomp-bench
libhwloc-dev          cores and NUMA nodes in diomp-run and diomp-info
libpmix-dev           start-up under mpirun, prterun and srun; without it DiOMP builds and says so there
llvm-19-dev           what libomptarget is built with; its source comes by scripts/fetch-llvm.sh
zlib1g-dev            the same
libzstd-dev           the same
xz-utils              the source of libomptarget is unpacked with it
libffi-dev            host devices, ours on other hosts too, call their target regions through it
libsodium-dev         connections prove who they are, see docs/security.md
libseccomp-dev        system call filters for sessions of device services
libxxhash-dev         device images are known by their hash
libucx-dev            ranks on several nodes; without it DiOMP builds and says so there
python3               scripts
python3-numpy         reads the wavefield of the demo
python3-matplotlib    pictures of the demo and of the benchmarks
'
# A build without them has no kernels for AMD GPUs, and no pragmas of DiOMP.
build_packages='
lld-19                device code for AMD GPUs is linked with it, that of the runtime too
libclang-19-dev       what the plugin for the pragmas is built with
'
check_packages='
ccache                builds that are repeated are quick
libgtest-dev          unit and multi-rank tests
libgmock-dev          mocks in the unit tests
clang-format-19       formatting check
clang-tidy-19         lint
libclang-rt-19-dev    run-time libraries of the address, undefined-behaviour and thread sanitizers
rocm-device-libs      mathematical functions for AMD GPUs
binutils-aarch64-linux-gnu  links code for 64-bit Arm, see scripts/dpu-sysroot.sh
qemu-user-static      runs it here
python3-dev           headers for the package for Python
python3-venv          its environment, see scripts/python-env.sh
python3-pip           fetches what device code for NVIDIA GPUs is compiled with, see scripts/gpu-toolchain.sh
ucx-utils             what bench/compare-remote compares with
busybox-static        scripts/gpu-check.sh try: a machine that has nothing else
gfortran              the Fortran module and its tests
g++                   the host-only compiler that DiOMP must build with too
gdb                   backtraces of tests that hang
man-db                checks the manual pages
mandoc                the same
lmod                  the modulefile is tested under it
zsh                   completion for it is tested in it
fish                  the same
mkdocs                makes the documentation site (scripts/docs-site.py)
procps                the tests of diomp-run look for processes left behind
iproute2              test hosts: their network and its faults
iputils-ping          test hosts: that they reach each other
slurmctld             a Slurm on the test hosts; its tests are skipped without it
slurmd                the same
slurm-client          the same
munge                 the same
libsimgrid-dev        collectives of many ranks on simulated time, see docs/simulation.md
libopenblas0-pthread  products of the apps matmul and train; without it they use their own kernels
openmpi-bin           MPI twins of the apps, and a peer in bench/compare
libopenmpi-dev        the same; also oshcc, for OpenSHMEM
mpich                 a second MPI in bench/compare
libmpich-dev          the same
'
deb_packages='
build-essential       what builds of Debian packages take for granted
dpkg-dev              builds them
debhelper             the same
dh-python             the same, for the package for Python
lintian               checks them
debootstrap           a new Debian to install them in: the tests packages.*, scripts/fresh-machine.sh
systemd-container     a host that lends devices, by its unit, in the same tests
buildah               an image of contrib/container, in the test packages.container
gfortran              the Fortran module
python3-dev           headers for the package for Python
python3-venv          its environment, see scripts/python-env.sh
'

check=no
deb=no
demo=no
flang=no
list=no
llvm=
while [ $# != 0 ]; do
    case $1 in
    --check) check=yes ;;
    --deb) deb=yes ;;
    --demo) demo=yes ;;
    --flang) flang=yes ;;
    --list) list=yes ;;
    --llvm)
        llvm="$llvm ${2:?--llvm needs a version, such as 22}"
        shift
        ;;
    *)
        echo "setup.sh: unknown argument '$1' (known: --check, --deb, --demo, --flang, --llvm, --list)" >&2
        exit 2
        ;;
    esac
    shift
done

# Last: the packages of the system first, which it is unpacked and built with.
add_llvm() {
    for version in $llvm; do
        "$(dirname "$0")/llvm-toolchain.sh" --llvm "$version" >/dev/null
        "$(dirname "$0")/fetch-llvm.sh" --llvm "$version" >/dev/null
    done
}

if [ "$list" = yes ]; then
    printf 'Demo and build:\n%s\nBuild:\n%s\nChecks and comparisons:\n%s\nDebian packages:\n%s' \
        "$demo_packages" "$build_packages" "$check_packages" "$deb_packages"
    exit 0
fi

as_root=
[ "$(id -u)" = 0 ] || ! command -v sudo >/dev/null || as_root=sudo
here=$(dirname "$0")
major=19
if [ "$check$deb" = nono ] && command -v apt-get >/dev/null; then
    # The lists of a new machine may be empty.
    "$here/llvm-choice.sh" >/dev/null 2>&1 || [ $? = 2 ] || $as_root apt-get update -qq >/dev/null 2>&1 || true
    major=$("$here/llvm-choice.sh" --installed) || [ $? = 1 ] || exit
    chosen=$("$here/llvm-choice.sh") || [ $? = 1 ] || exit
    major=${major:-19}
    [ "${chosen:-$major}" = "$major" ] || llvm="$llvm $chosen"
fi
wanted=$demo_packages
[ "$demo" = yes ] || wanted=$wanted$build_packages
wanted=$(printf '%s' "$wanted" | sed "s/^\([a-z-]*\)-19/\1-$major/")
[ "$major" -lt 20 ] || wanted="$wanted
liboffload-$major
liboffload-$major-dev
"
[ "$check" = no ] || wanted=$wanted$check_packages
[ "$deb" = no ] || wanted=$wanted$deb_packages
names=$(printf '%s' "$wanted" | awk 'NF && !seen[$1]++ { print $1 }')
[ "$flang" = no ] || for version in 19 $llvm; do names="$names flang-$version"; done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "setup.sh: this is no Debian system; please install the counterparts of:" "$names" >&2
    exit 1
fi

# shellcheck disable=SC2086 # a list of words
installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' $names 2>/dev/null | awk '$2 == "installed" { print $1 }')
missing=
for name in $names; do
    printf '%s\n' "$installed" | grep -qxF "$name" || missing="$missing $name"
done
[ -n "$missing" ] || { add_llvm; exit; }

if [ "$(id -u)" != 0 ] && [ -z "$as_root" ]; then
    echo "setup.sh: these packages are missing and only root may install them:" >&2
    echo "    apt-get install$missing" >&2
    echo "Run that as root, or install sudo, then run this again." >&2
    exit 1
fi

echo "setup.sh: installing$missing"
# Configuration files that were changed here stay as they are: dpkg would ask otherwise, and end without an answer.
install_missing() {
    # shellcheck disable=SC2086 # a list of words
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        -o Dpkg::Use-Pty=0 -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold $missing
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Package lists may be absent or too old; only then is the update worth its time.
if ! install_missing >"$log" 2>&1; then
    if ! $as_root apt-get update -qq >>"$log" 2>&1 || ! install_missing >>"$log" 2>&1; then
        tail -n 20 "$log" >&2
        echo "setup.sh: apt-get could not install:$missing" >&2
        echo "The lines above say why. Needed is a Debian 12 (or newer) with its package archive within reach." >&2
        exit 1
    fi
fi
add_llvm
