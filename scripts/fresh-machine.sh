#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Do the README's commands work on a new machine? Makes a Debian in a temporary folder that has git, make and a compiler
# and nothing else of what we use, clones what is committed here into it, and calls make there. A machine that has been
# worked on cannot show that scripts/setup.sh forgets a package.
#
#   scripts/fresh-machine.sh [TARGET...]      make TARGET... there; without one: demo
#   SUITE=trixie scripts/fresh-machine.sh     on another release of Debian than this machine's
#
# Needs root, debootstrap, and some 6 GiB in TMPDIR. Packages come from the archive that this machine uses. The last line
# says how long make took; the exit status is make's.
set -eu
cd "$(dirname "$0")/.."
[ $# != 0 ] || set -- demo
if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
    echo "fresh-machine.sh: needs root and the package debootstrap" >&2
    exit 77
fi

here=$(. /etc/os-release && echo "$VERSION_CODENAME")
suite=${SUITE:-$here}
archive=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Codename: $here" | head -n 1)
root=$(mktemp -d)
chmod 755 "$root" # it is the / of others than root, too
trap 'rm -rf --one-file-system "$root"' EXIT
echo "== a new $suite"
debootstrap --variant=minbase --include=git,make,gcc,ca-certificates "$suite" "$root" "$archive" >"$root.log" 2>&1 ||
    { tail -n 20 "$root.log" >&2 && rm -f "$root.log" && exit 1; }
rm -f "$root.log"

# Its way to the archive is this machine's; packages already fetched are not.
rm -f "$root"/etc/apt/sources.list
for part in sources.list sources.list.d apt.conf.d auth.conf.d keyrings trusted.gpg.d; do
    [ ! -e "/etc/apt/$part" ] || cp -rT "/etc/apt/$part" "$root/etc/apt/$part"
done
find "$root/etc/apt" -name "*.list" -o -name "*.sources" | xargs -r sed -i "s/\b$here\b/$suite/g; s/\b$here-/$suite-/g"
cp -rn /usr/share/keyrings/. "$root/usr/share/keyrings/"
cp /etc/resolv.conf /etc/hosts "$root/etc/"
cp -L --remove-destination /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
[ ! -e /etc/pip.conf ] || cp /etc/pip.conf "$root/etc/"
git clone -q . "$root/root/diomp"

# In namespaces of its own, so that nothing it starts outlives it, and with the new folder as the root of all mounts: in
# a mere chroot the system allows no user namespaces.
export HOME=/root
began=$EPOCHSECONDS
status=0
# shellcheck disable=SC2016 # expanded in there
unshare --mount --pid --fork --kill-child bash -c '
    root=$1 && shift
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs tmpfs "$root/mnt"
    cd "$root" && pivot_root . mnt && umount --lazy /mnt && cd / || exit 1
    exec make -C /root/diomp "$@"' bash "$root" "$@" || status=$?
echo "fresh-machine.sh: make $*: status $status, $((EPOCHSECONDS - began)) s with the packages"
exit "$status"
