#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Debian's packages as a user meets them: makes them, installs them into a new Debian, runs the examples of the pages there
# (inside.sh), purges them, and looks for what is left. Another new Debian (lender.sh) has the package of the device service
# only, whose unit its systemd starts; programs of the first one use its devices.
#   debian.sh SOURCE_DIR FOLDER [SUITE]
# Packages of this machine's Debian are made here, into FOLDER, with ccache; those of another release (SUITE=trixie) in a new
# Debian of that release. DIOMP_TEST_DEBS names a folder with packages, which are taken instead.
set -eu
source=${1:?} folder=${2:?}
here=$(. /etc/os-release && echo "$VERSION_CODENAME")
suite=${3:-$here}
skip() { echo "skipped: $*" && exit 77; }
[ "$(id -u)" = 0 ] || skip "only root can install a Debian"
for tool in debootstrap dpkg-buildpackage dh systemd-nspawn; do
    command -v $tool >/dev/null || skip "$tool is missing (scripts/setup.sh --deb)"
done
# shellcheck source-path=SCRIPTDIR source=../../scripts/debian-root.sh
. "$source/scripts/debian-root.sh"
work=$(mktemp -d)
lender=
end() {
    [ -z "$lender" ] || { kill "$lender" && wait "$lender"; } 2>/dev/null || true
    rm -rf --one-file-system "$work"
}
trap end EXIT
/usr/lib/apt/apt-helper download-file "$(debian_archive)/dists/$suite/InRelease" "$work/InRelease" >"$work/log" 2>&1 ||
    skip "no package archive with $suite is within reach: $(tail -n 1 "$work/log")"

# The packages of another release, made there from the tree as it stands.
make_there() {
    mkdir "$work/builder"
    new_debian "$work/builder" "$suite" ca-certificates,make
    local tree=$work/builder/root/diomp llvm
    mkdir -p "$tree/build"
    (cd "$source" && git ls-files -z --cached --others --exclude-standard |
        tar -c --null --files-from=- --ignore-failed-read) | tar -xC "$tree"
    # What this machine has fetched serves there if it is the same version.
    llvm=$("$source/scripts/fetch-llvm.sh" --folder)
    [ ! -e "$llvm/version" ] || { mkdir -p "$work/builder/root/.cache/diomp" && cp -r "$llvm" "$work/builder/root/.cache/diomp/"; }
    # With the packages that are made only where these are installed.
    in_debian "$work/builder" env -u DIOMP_LLVM_SOURCE PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -ec \
        "cd /root/diomp && scripts/setup.sh --deb --flang && scripts/setup.sh --llvm 22 && make deb" >"$work/log" 2>&1 ||
        { tail -n 40 "$work/log" && exit 1; }
    tail -n 1 "$work/log"
    mkdir -p "$folder"
    cp "$tree"/build/deb/*.deb "$tree"/build/deb/lintian.txt "$folder/"
    rm -rf --one-file-system "$work/builder"
}

debs=${DIOMP_TEST_DEBS:-}
if [ -z "$debs" ]; then
    debs=$folder
    if [ "$suite" = "$here" ]; then
        "$source/scripts/deb.sh" "$folder"
    else
        make_there
    fi
fi

# lend PORT: starts the service there.
lend() {
    local root=$work/lender port=$1 waited=0
    cp -a "$work/root" "$root"
    mkdir "$root/packages"
    cp "$debs"/*.deb "$source/tests/packaging/lender.sh" "$work/token" "$root/packages/"
    (cd "$root/packages" && dpkg-scanpackages --multiversion . >Packages 2>"$work/log") || { cat "$work/log" && exit 1; }
    in_debian "$root" env PATH=/usr/sbin:/usr/bin:/sbin:/bin bash /packages/lender.sh "$port"
    # Containers may not call Landlock by default.
    systemd-nspawn --quiet --directory="$root" --machine="diomp-$$" --register=no --keep-unit --console=pipe --boot \
        --system-call-filter="landlock_create_ruleset landlock_add_rule landlock_restrict_self" </dev/null >"$work/boot" 2>&1 &
    lender=$!
    until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do
        if [ $((waited += 1)) -gt 120 ] || ! kill -0 "$lender" 2>/dev/null; then
            tail -n 20 "$work/boot"
            service_log
            echo "FAILED: the unit's service does not listen at port $port" && exit 1
        fi
        sleep 0.5
    done
}
service_log() { journalctl -D "$work/lender/var/log/journal" -u diomp-deviced -o cat --no-pager; }

(umask 077 && od -An -N32 -tx1 /dev/urandom | tr -d ' \n' >"$work/token")
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
mkdir "$work/root"
new_debian "$work/root" "$suite" ca-certificates
lend "$port"

mkdir "$work/root/packages" "$work/root/examples"
cp "$debs"/*.deb "$work/root/packages/"
cp "$source/tests/packaging/inside.sh" "$source/tests/packaging/run_paths.py" "$source/tests/offload/remote/events.c" \
    "$work/token" "$work/root/packages/"
echo "127.0.0.1:$port" >"$work/root/packages/lender"
python3 -B "$source/tests/packaging/pages.py" "$source" "$work/root/examples"
in_debian "$work/root" env PATH=/usr/sbin:/usr/bin:/sbin:/bin bash /packages/inside.sh

service_log >"$work/log"
! grep -e "confined in part" "$work/log" || { echo "FAILED: the unit's service does without a part of --confine" && exit 1; }
echo "packages of $suite: ok"
