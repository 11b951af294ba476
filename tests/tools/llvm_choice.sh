#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The version of LLVM that make builds for, on machines that have some versions installed and an archive with others.
#   llvm_choice.sh SOURCE_DIR
set -u
source=${1:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/dpkg-query" <<'END'
#!/bin/sh
for name; do :; done
case " $INSTALLED " in *" ${name#libomp-} "*) printf installed ;; *) exit 1 ;; esac
END
cat >"$work/apt-cache" <<'END'
#!/bin/sh
shift # policy
for name; do
    for version in $ARCHIVE; do
        case $name in *-"$version" | *-"$version"-dev) printf '%s:\n  Installed: (none)\n  Candidate: 1:%s.1\n' "$name" "$version" ;; esac
    done
done
END
chmod +x "$work/dpkg-query" "$work/apt-cache"
export PATH=$work:$PATH
failures=0
# chooses EXPECTED INSTALLED ARCHIVE DIOMP_LLVM [OPTION]; versions as dpkg-query sees them: 19-dev
chooses() {
    local expected=$1 got
    got=$(INSTALLED=$2 ARCHIVE=$3 DIOMP_LLVM=$4 "$source/scripts/llvm-choice.sh" ${5:+"$5"} 2>"$work/messages")
    [ "$got ($?)" = "$expected" ] && return
    echo "FAILED: '$got' instead of '$expected': installed '$2', archive '$3', DIOMP_LLVM '$4' ${5:-}"
    cat "$work/messages"
    failures=$((failures + 1))
}
chooses "19 (0)" "" "19 22" ""       # Debian 12 and 13: 22 has no device runtime for GPUs
chooses "21 (0)" "" "19 21 22" ""    # with backports
chooses "21 (0)" "" "20 21" ""       # Ubuntu 26.04
chooses "22 (0)" "" "22" ""          # better than nothing
chooses " (1)" "" "14 20" ""         # nothing that DiOMP knows
chooses " (1)" "" "" ""              # lists of packages were not fetched yet
chooses "19 (0)" "19-dev" "19 21" "" # what is there stays
chooses "22 (0)" "22-dev" "19 22" ""
chooses "22 (0)" "" "19 22" 22
chooses "22 (0)" "19-dev" "19 22" 22
chooses "19 (0)" "19-dev" "19 22" 22 --installed # whose clang compiles the rest
chooses "22 (0)" "" "19 22" 22 --installed
chooses "19 (0)" "" "19 22" "" --installed
chooses " (2)" "" "19 22" 23
grep -q "does not know LLVM '23' (known: .*19.*22)" "$work/messages" || { echo "FAILED: no message" && failures=1; }
exit $((failures > 0))
