# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Sourced by scripts that need a Debian as it is after its installation: a folder made by debootstrap, with this machine's way
# to the package archive. Both functions need root.

# debian_archive: the address of the archive that this machine's packages come from, without a slash at its end: some servers
# refuse two in the middle of a path.
debian_archive() {
    # shellcheck disable=SC2016 # apt's variable
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' \
        "Codename: $(. /etc/os-release && echo "$VERSION_CODENAME")" | sed -n '1s|/*$||p'
}

# new_debian ROOT SUITE PACKAGES: makes it in the empty folder ROOT, with PACKAGES (separated by commas) added to the least
# that a Debian has. dpkg there does not wait for the disk after each file, as in Debian's images for containers: it would
# take longer for that than for all else where the disk is shared.
new_debian() {
    local root=$1 suite=$2 packages=$3 here part log
    here=$(. /etc/os-release && echo "$VERSION_CODENAME")
    log=$(mktemp)
    chmod 755 "$root" # it is the / of others than root, too
    mkdir -p "$root/etc/dpkg/dpkg.cfg.d"
    echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/unsafe-io"
    debootstrap --variant=minbase --include="$packages" "$suite" "$root" "$(debian_archive)" >"$log" 2>&1 ||
        { tail -n 20 "$log" >&2 && rm -f "$log" && return 1; }
    rm -f "$log" "$root/etc/apt/sources.list"
    # Its way to the archive is this machine's; packages already fetched are not.
    for part in sources.list sources.list.d auth.conf.d keyrings trusted.gpg.d; do
        [ ! -e "/etc/apt/$part" ] || cp -rT "/etc/apt/$part" "$root/etc/apt/$part"
    done
    # What a package brought here is another file to the package there, about which dpkg would ask.
    for part in /etc/apt/apt.conf.d/*; do
        dpkg-query --search "$part" >/dev/null 2>&1 || cp "$part" "$root/etc/apt/apt.conf.d/"
    done
    find "$root/etc/apt" -name "*.list" -o -name "*.sources" |
        xargs -r sed -i "s/\b$here\b/$suite/g; s/\b$here-/$suite-/g"
    cp -rn /usr/share/keyrings/. "$root/usr/share/keyrings/"
    cp /etc/resolv.conf /etc/hosts "$root/etc/"
    cp -L --remove-destination /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
    [ ! -e /etc/pip.conf ] || cp /etc/pip.conf "$root/etc/"
}

# in_debian ROOT COMMAND...: runs it there, in namespaces of its own, so that nothing it starts outlives it, and with ROOT as
# the root of all mounts: in a mere chroot the system allows no user namespaces.
in_debian() {
    # shellcheck disable=SC2016 # expanded in there
    HOME=/root unshare --mount --pid --fork --kill-child bash -c '
        root=$1 && shift
        mount --bind "$root" "$root"
        mount -t proc proc "$root/proc"
        mount --rbind /sys "$root/sys"
        mount --rbind /dev "$root/dev"
        mount -t tmpfs tmpfs "$root/mnt"
        cd "$root" && pivot_root . mnt && umount --lazy /mnt && cd / || exit 1
        exec "$@"' bash "$@"
}
