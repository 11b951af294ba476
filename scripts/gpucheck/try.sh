#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Part of scripts/gpu-check.sh: shows that the bundle needs nothing of the machine. It runs in a root folder with the bundle,
# a static busybox, /proc, /dev, /sys and an empty /tmp. Needs to be root, or user namespaces; 77: neither.
set -eu
folder=$(realpath "$1")
busybox=$(command -v busybox) || { echo "gpu-check.sh try: needs busybox (package busybox-static)" >&2 && exit 77; }
[ -e "$folder/run.sh" ] || { echo "gpu-check.sh try: there is no bundle in $folder" >&2 && exit 2; }
unshare=(unshare --mount --pid --fork --kill-child)
[ "$(id -u)" = 0 ] || unshare+=(--map-root-user)
"${unshare[@]}" true 2>/dev/null || { echo "gpu-check.sh try: this machine allows no namespaces" >&2 && exit 77; }

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/{bin,bundle,dev,out,proc,sys,tmp}
cp "$busybox" "$root/bin/busybox"
for tool in $("$busybox" --list | grep -vx busybox); do
    ln -sf busybox "$root/bin/$tool"
done
cp -r "$folder/." "$root/bundle/"
status=0
# shellcheck disable=SC2016 # for the shell inside
"${unshare[@]}" bash -c '
    root=$1
    mount --rbind /dev "$root/dev" && mount --rbind /sys "$root/sys" && mount -t proc proc "$root/proc" || exit 77
    exec env -i PATH=/bin OUT=/out HOME=/tmp /usr/sbin/chroot "$root" /bin/sh /bundle/run.sh' - "$root" || status=$?
mkdir -p "${OUT:-.}"
cp "$root"/out/* "${OUT:-.}/"
exit "$status"
