#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What env.sh does in each shell that is installed: it finds its prefix from any folder, changes nothing when it is read
# again, keeps what the variables had, and leaves no names behind.
#   environment_file.sh ENV_SH LIBDIR COMPLETION_DIR
set -u
file=${1:?env.sh} libdir=${2:?} completion=${3:?directory of completion scripts}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
prefix="$work/a prefix"
mkdir -p "$prefix/bin" "$work/elsewhere"
cp "$file" "$prefix/env.sh"
touch "$prefix/bin/diomp-run"
mkdir -p "$prefix/share/bash-completion/completions" "$prefix/share/zsh/site-functions"
cp "$completion/diomp.bash" "$prefix/share/bash-completion/completions/diomp-run"
cp "$completion/_diomp" "$prefix/share/zsh/site-functions"
expected="$prefix/bin:/usr/bin:/bin|$prefix/share/man:|$prefix/$libdir/pkgconfig|$prefix"

# expect WANTED SHELL... SCRIPT: the script prints this.
expect() {
    local wanted=$1 got
    shift
    got=$(cd "$work/elsewhere" && env -i PATH=/usr/bin:/bin WORK="$work" PREFIX="$prefix" "$@" 2>&1)
    [ "$got" = "$wanted" ] || {
        printf 'FAILED: %s\n  wanted %s\n  got    %s\n' "$*" "$wanted" "$got"
        failures=$((failures + 1))
    }
}
# shellcheck disable=SC2016 # expanded in there
show='printf "%s|%s|%s|%s\n" "$PATH" "$MANPATH" "$PKG_CONFIG_PATH" "$CMAKE_PREFIX_PATH"'

# shellcheck disable=SC2016 # expanded in there
check() {
    expect "$expected" "$@" -euc '. "$PREFIX/env.sh"; '"$show"
    expect "$expected" "$@" -euc '. "$PREFIX/env.sh"; . "$PREFIX/env.sh"; '"$show"
    expect "$expected" "$@" -euc 'cd "$PREFIX/bin"; . ../env.sh; '"$show"
    expect "$expected" "$@" -euc 'cd "$PREFIX"; (. ./env.sh; '"$show)"
    expect "$expected" "$@" -euc 'read_it() { . "$PREFIX/env.sh"; }; read_it; '"$show"
    expect "$expected" "$@" -euc '. "$PREFIX/env.sh"; env -u HOME sh -c '"'$show'" # exported
    expect "$prefix/share/man:/m|$prefix/$libdir/pkgconfig:/p|$prefix:/c" "$@" -euc \
        'MANPATH=/m PKG_CONFIG_PATH=/p CMAKE_PREFIX_PATH=/c; . "$PREFIX/env.sh"
         echo "$MANPATH|$PKG_CONFIG_PATH|$CMAKE_PREFIX_PATH"'
    expect "" "$@" -euc '. "$PREFIX/env.sh"; set | grep "^_diomp" || true'
    # Read from a pipe it has no path.
    expect "status 1" "$@" -uc 'cat "$PREFIX/env.sh" | (. /dev/stdin 2>"$WORK/err"; echo "status $?")'
    grep -q 'change to its directory' "$work/err" || {
        echo "FAILED: $*: no message without a path"
        failures=$((failures + 1))
    }
}

for shell in dash bash zsh ksh "busybox sh" "bash --posix"; do
    if command -v "${shell%% *}" >/dev/null; then
        # shellcheck disable=SC2086 # a word or two
        check $shell
        echo "checked: $shell"
    else
        echo "not installed, not checked: $shell"
    fi
done

# Completion: only in interactive shells, before and after zsh's compinit, once.
# shellcheck disable=SC2016 # expanded in there
{
    expect none bash --norc -c '. "$PREFIX/env.sh"; complete -p diomp-run >/dev/null 2>&1 || echo none'
    expect "complete -o default -F _diomp diomp-run" \
        bash -c 'bash --norc -ic ". \"$PREFIX/env.sh\"; complete -p diomp-run" 2>/dev/null' # without a terminal it warns
    if command -v zsh >/dev/null; then
        expect "_diomp" zsh -fic 'autoload -Uz compinit; compinit -D -u; . "$PREFIX/env.sh"; echo "$_comps[diomp-run]"'
        expect "_diomp 1" zsh -fic '. "$PREFIX/env.sh"; . "$PREFIX/env.sh"; autoload -Uz compinit; compinit -D -u
            found=(${(M)fpath:#$PREFIX*}); echo "$_comps[diompcc] $#found"'
    fi
}
[ "$failures" = 0 ] && echo "environment_file: ok"
exit "$failures"
