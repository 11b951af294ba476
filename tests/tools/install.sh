#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Installs into a temporary prefix, moves it, and builds and runs the examples against it in every way that the
# documentation names.
#   install.sh SOURCE_DIR BUILD_DIR LIBDIR
set -eu
source=${1:?} build=${2:?} libdir=${3:?}
unset LD_LIBRARY_PATH DIOMP_CC DIOMP_CXX DESTDIR
work=$(mktemp -d "$build/install-test.XXXXXX")
trap 'rm -rf "$work"' EXIT

step() { echo "-- $*"; }
run() { timeout 60 "$prefix/bin/diomp-run" -n "$1" "$2"; }

step "install, then move the prefix"
cmake --install "$build" --prefix "$work/first" >"$work/log"
prefix=$work/second
mv "$work/first" "$prefix"
cd "$work"

step "what is installed"
for file in env.sh bin/diomp-run bin/diomp-info bin/diompcc bin/diompcxx include/diomp.h "$libdir/libdiomp.so" \
    "$libdir/diomp/dpu-ld" "$libdir/cmake/DiOMP/DiOMPConfig.cmake" "$libdir/pkgconfig/diomp.pc" \
    bin/diomp-trace share/man/man1/diomp-trace.1 \
    bin/diomp-deviced share/diomp/systemd/diomp-deviced.service share/man/man1/diomp-deviced.1 \
    share/man/man1/diompcc.1 share/man/man1/diompcxx.1 share/man/man1/diomp-info.1 share/man/man7/diomp.7 \
    share/man/man3/diomp.3 share/man/man3/ompx_put.3 share/man/man3/ompx_get_nb.3 \
    share/bash-completion/completions/diomp-run share/zsh/site-functions/_diomp \
    share/fish/vendor_completions.d/diompcc.fish; do
    [ -s "$prefix/$file" ] || { echo "missing: $file"; exit 1; }
done
if grep -rlI -e "$build" -e "$source" "$prefix" >"$work/paths"; then
    echo "these name the build's directories:" && cat "$work/paths" && exit 1
fi
# The build tree's own, too: it has the layout of an installation.
python3 -B "$source/tests/packaging/run_paths.py" "$prefix"
python3 -B "$source/tests/packaging/run_paths.py" "$build"/bin/diomp-* "$build/lib"

for compiler in clang gcc; do
    case $compiler in
    clang) cc=clang-19 cxx=clang++-19 names='hello halo allocate histogram' ;;
    gcc) cc=gcc cxx=g++ names='hello halo histogram' ;;
    esac
    step "CMake package, $compiler"
    cmake -S "$source/examples" -B "$compiler" -DCMAKE_PREFIX_PATH="$prefix" \
        -DCMAKE_C_COMPILER=$cc -DCMAKE_CXX_COMPILER=$cxx >>"$work/log"
    cmake --build "$compiler" >>"$work/log"
    for name in $names; do
        run 2 "$compiler/$name"
    done
    # A program without the launcher is a world of one.
    "$compiler/hello"

    step "pkg-config, $compiler"
    flags=$(PKG_CONFIG_PATH="$prefix/$libdir/pkgconfig" pkg-config --cflags --libs diomp)
    # shellcheck disable=SC2086 # a list of words
    $cc -O2 -fopenmp "$source/examples/halo.c" -o "halo-$compiler" $flags -lm
    run 2 "./halo-$compiler"

    step "diompcc and diompcxx, $compiler"
    export DIOMP_CC=$cc DIOMP_CXX=$cxx
    "$prefix/bin/diompcc" -O2 -Wall -Werror -c "$source/examples/halo.c" -o "a name.o"
    "$prefix/bin/diompcc" "a name.o" -lm -o "a name"
    run 2 "./a name"
    "$prefix/bin/diompcxx" -std=c++20 "$source/examples/histogram.cpp" -o "histogram-$compiler"
    run 3 "./histogram-$compiler"
    echo 'int ompx_rank_num(void); int rank_of_mine(void) { return ompx_rank_num(); }' >part.c
    echo 'int rank_of_mine(void); int main(void) { return rank_of_mine() < 0; }' >main.c
    "$prefix/bin/diompcc" -shared -fPIC part.c -o libpart.so
    "$prefix/bin/diompcc" main.c libpart.so -Wl,-rpath,"$work" -o uses-part
    run 2 ./uses-part
done

if [ -e "$prefix/bin/diompfc" ]; then
    for compiler in clang gcc; do
        step "Fortran, CMake package, $compiler"
        run 2 "$compiler/halo_fortran"
    done
    step "diompfc"
    "$prefix/bin/diompfc" -O2 -c "$source/examples/halo.f90" -o fortran.o
    "$prefix/bin/diompfc" fortran.o -o halo-fortran
    run 4 ./halo-fortran
fi

if [ -e "$prefix/bin/diomp-deviced" ] && [ -e "$prefix/$libdir/diomp/libomptarget.so" ]; then
    step "calls in regions of remote devices"
    mkdir pages
    python3 -B "$source/tests/packaging/pages.py" "$source" pages
    DIOMP_CC=clang-19 "$prefix/bin/diompcc" -fopenmp-targets=x86_64-pc-linux-gnu pages/regions.c -o regions
    OMP_TARGET_OFFLOAD=MANDATORY DIOMP_LOCAL_DEVICES=off \
        timeout 60 "$prefix/bin/diomp-run" -n 2 --remote-devices localhost:2 ./regions >regions.out
    diff pages/regions.expected regions.out
fi

step "order of the libraries: ours before OpenMP's"
for program in clang/halo gcc/halo "a name"; do
    readelf -d "$program" | grep -oE 'lib(diomp|omp|gomp)\.so' | head -n 1 | grep -qx libdiomp.so || {
        echo "$program: the OpenMP runtime comes first" && exit 1
    }
done

step "env.sh"
(
    unset PKG_CONFIG_PATH CMAKE_PREFIX_PATH MANPATH
    # shellcheck disable=SC1091 # installed
    . "$prefix/env.sh"
    [ "$(command -v diompcc)" = "$prefix/bin/diompcc" ]
    # shellcheck disable=SC2046 # a list of words
    cc -O2 -fopenmp "$source/examples/halo.c" -o halo-env $(pkg-config --cflags --libs diomp) -lm
    timeout 60 diomp-run -n 2 ./halo-env
    cmake -S "$source/examples" -B env -DCMAKE_C_COMPILER=clang-19 -DCMAKE_CXX_COMPILER=clang++-19 >>"$work/log"
    LC_ALL=C.UTF-8 man ompx_get_nb | grep -q 'int ompx_get_nb('
    [ "$(LC_ALL=C.UTF-8 man -w diomp-run)" = "$prefix/share/man/man1/diomp-run.1" ]
)

step "the installed tools"
"$prefix/bin/diomp-info" --doctor >doctor || { cat doctor && exit 1; }
version=$("$prefix/bin/diomp-info" --version | awk '{ print $NF }')
[ "$(PKG_CONFIG_PATH="$prefix/$libdir/pkgconfig" pkg-config --modversion diomp)" = "$version" ]
# Without locale and pager; a warning means an error in the page. Those of section 3 have a test of their own.
for page in "$prefix"/share/man/man[17]/*; do
    warnings=$(cd "$prefix/share/man" && LC_ALL=C.UTF-8 MANWIDTH=100 man -l --warnings=w "$page" 2>&1 >/dev/null)
    [ -z "$warnings" ] || { echo "$page: $warnings" && exit 1; }
done
echo "install: ok"
