#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Runs in a new Debian as root, for scripts/fresh-machine.sh --ways, in a clone of this repository: the ways of
# docs/install.md from nothing to a running example, except those that have tests of their own. Prints how many commands each
# takes, and how long.
set -eu
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 HOME=/root
clone=$(cd "$(dirname "$0")/../.." && pwd)
fail() { echo "FAILED: $*" && exit 1; }
install() { apt-get install -y -o Dpkg::Use-Pty=0 "$@" >/tmp/apt.log 2>&1 || { tail -n 30 /tmp/apt.log && fail "apt-get install $*"; }; }

# way NAME EXPECTED, commands on standard input, one a line: the last one prints what the file EXPECTED says.
way() {
    local name=$1 expected=$2 commands count began=$EPOCHSECONDS
    commands=$(cat)
    count=$(wc -l <<<"$commands")
    # The output of all but the last one goes elsewhere.
    { echo "set -e; exec 3>&1 >/tmp/log 2>&1" && sed '$s/$/ >\&3/' <<<"$commands"; } >/tmp/way.sh
    (cd "$clone" && bash /tmp/way.sh) >/tmp/out || { tail -n 30 /tmp/log && fail "$name"; }
    diff "$expected" /tmp/out || fail "$name prints something else"
    echo "-- $name: $count commands, $((EPOCHSECONDS - began)) s"
}

apt-get update -qq
install python3
python3 -B "$clone/tests/packaging/pages.py" "$clone" "$clone"

way "from a clone with CMake" "$clone/halo.expected" <<'COMMANDS'
scripts/setup.sh
scripts/fetch-llvm.sh
cmake --preset release -DCMAKE_INSTALL_PREFIX=/opt/diomp
cmake --build --preset release
cmake --install build/release
. /opt/diomp/env.sh
diompcc halo.c -o halo
diomp-run -n 4 ./halo
COMMANDS

# What a site has already.
install lmod
echo ". /usr/share/lmod/lmod/init/bash" >/tmp/site
BASH_ENV=/tmp/site way "module" "$clone/halo.expected" <<'COMMANDS'
module use /opt/diomp/share/modulefiles
module load diomp
diompcc halo.c -o halo
diomp-run -n 4 ./halo
COMMANDS

way "pip" "$clone/program.expected" <<'COMMANDS'
apt-get install -y g++ python3-dev python3-venv
python3 -m venv --system-site-packages env
. env/bin/activate
DIOMP_DIR=/opt/diomp pip install ./python
/opt/diomp/bin/diomp-run -n 4 python3 program.py
COMMANDS
