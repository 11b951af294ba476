#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The modulefile under Lmod, and under Environment Modules if it is there instead: loaded, repeated, unloaded, from a moved
# prefix and through a symbolic link.
#   modulefile.sh MODULEFILE LIBDIR
set -u
file=${1:?modulefile} libdir=${2:?}
version=$(basename "$file")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
prefix="$work/moved"
mkdir -p "$prefix/share/modulefiles/diomp" "$prefix/bin" "$work/site/diomp"
cp "$file" "$prefix/share/modulefiles/diomp/"
ln -s "$prefix/share/modulefiles/diomp/$version" "$work/site/diomp/$version"
lmod=/usr/share/lmod/lmod/init/bash
modules=${MODULES_INIT:-/usr/share/modules/init/bash}

# expect WANTED INIT SCRIPT: the script prints this in a shell that has read INIT.
expect() {
    local got
    got=$(env -i HOME="$work" PATH=/usr/bin:/bin SITE="$work/site" PREFIX="$prefix" bash -c ". $2 >/dev/null; $3" 2>&1)
    [ "$got" = "$1" ] || {
        printf 'FAILED: %s\n  wanted %s\n  got    %s\n' "$3" "$1" "$got"
        failures=$((failures + 1))
    }
}

# shellcheck disable=SC2016 # expanded in there
check() {
    local show='echo "$DIOMP_ROOT|${PATH%%:*}|$PKG_CONFIG_PATH|$CMAKE_PREFIX_PATH|${MANPATH%%:*}|${MANPATH: -1}"'
    local loaded="$prefix|$prefix/bin|$prefix/$libdir/pkgconfig|$prefix|$prefix/share/man|:"
    expect "$loaded" "$1" 'module use "$PREFIX/share/modulefiles"; module load diomp; '"$show"
    expect "$loaded" "$1" 'module use "$PREFIX/share/modulefiles"; module load diomp/'"$version; $show"
    expect "$loaded" "$1" 'module use "$SITE"; module load diomp; '"$show"
    expect "$loaded" "$1" 'module use "$SITE"; module load diomp; module load diomp; '"$show"
    expect "none" "$1" 'module use "$SITE"; module load diomp; module unload diomp
        case ":$PATH:${DIOMP_ROOT:-}:${MANPATH:-}:" in *"$PREFIX"*) echo left;; *) echo none;; esac'
    expect "named" "$1" 'module use "$SITE"; module whatis diomp 2>&1 | grep -q "one address space" && echo named'
    expect "told" "$1" 'module use "$SITE"; module help diomp 2>&1 | grep -q "diomp-run -n RANKS" && echo told'
    tested=$((tested + 1))
}
tested=0
for init in "$lmod" "$modules"; do
    [ ! -e "$init" ] || check "$init"
done
[ "$tested" -gt 0 ] || {
    echo "modulefile: neither Lmod nor Environment Modules is installed"
    exit 77
}
[ "$failures" = 0 ] && echo "modulefile: ok under $tested"
exit $((failures > 0))
