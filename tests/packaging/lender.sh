#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Runs in a new Debian as root, for debian.sh: a host that lends two devices at port $1 of this machine, as the unit of the
# package of the service says, with what that package depends on and nothing else of DiOMP. /packages has the packages.
set -eu
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
port=${1:?}
fail() { echo "FAILED: $*" && exit 1; }
# apt takes from the folder what the service's package asks for.
echo "deb [trusted=yes] file:/packages ./" >/etc/apt/sources.list.d/packages.list
apt-get update -qq
apt-get install -y --no-install-recommends -o Dpkg::Use-Pty=0 systemd diomp-deviced >/tmp/log 2>&1 ||
    { tail -n 30 /tmp/log && fail "apt-get install diomp-deviced"; }
ours=$(dpkg-query -W -f='${Package} ${source:Package}\n' | awk '$2 == "diomp" { print $1 }' | sort | xargs)
[ "$ours" = "diomp-deviced diomp-offload-19 libdiomp1" ] || fail "installed of DiOMP: $ours"
! command -v clang-19 >/dev/null || fail "a compiler came with the service"

# As docs/remote.md shows.
[ ! -e /etc/systemd/system/multi-user.target.wants/diomp-deviced.service ] || fail "the service starts without a token"
(umask 077 && cp /packages/token /etc/diomp/token)
echo "DIOMP_DEVICED_OPTIONS=--port $port --devices 2 --memory 1G" >/etc/diomp/deviced.conf
systemctl enable -q diomp-deviced
mkdir -p /var/log/journal # the test reads it
echo "-- the service's package brings: $ours"
