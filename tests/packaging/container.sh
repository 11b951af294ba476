#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# contrib/container/Containerfile, built by buildah from Debian packages that are there, on a Debian that debootstrap makes
# in place of the one that a registry of images would give; the twenty lines run in the image, as its user.
#   container.sh SOURCE_DIR PACKAGES
set -eu
source=${1:?} packages=${DIOMP_TEST_DEBS:-${2:?}}
skip() { echo "skipped: $*" && exit 77; }
fail() { echo "FAILED: $*" && exit 1; }
[ "$(id -u)" = 0 ] || skip "only root can install a Debian"
for tool in debootstrap buildah; do
    command -v $tool >/dev/null || skip "$tool is missing (scripts/setup.sh --deb)"
done
compgen -G "$packages/libdiomp1_*.deb" >/dev/null || skip "no packages in $packages (make deb)"
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
# shellcheck source-path=SCRIPTDIR source=../../scripts/debian-root.sh
. "$source/scripts/debian-root.sh"
work=$(mktemp -d)
# Nothing of the system's images is used or changed. No engine is needed: steps run in a chroot.
export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs
images() { buildah --root "$work/images" --runroot "$work/run" "$@"; }
trap 'rm -rf --one-file-system "$work"' EXIT

mkdir "$work/root" "$work/packages"
new_debian "$work/root" "$suite" ca-certificates
cp "$packages"/*.deb "$work/packages/"
base=$(images from scratch)
images add -q "$base" "$work/root" / >"$work/log" 2>&1 || { cat "$work/log" && fail "no base image"; }
images commit -q "$base" localhost/base >>"$work/log"
images rm "$base" >>"$work/log"
rm -rf --one-file-system "$work/root"

began=$EPOCHSECONDS
images build --network host --build-context "packages=$work/packages" --build-arg BASE=localhost/base \
    -f "$source/contrib/container/Containerfile" -t localhost/diomp "$source" >>"$work/log" 2>&1 ||
    { tail -n 30 "$work/log" && fail "the image is not built"; }
echo "-- the image: $((EPOCHSECONDS - began)) s"

# The page's example, as `podman run -v DIR:/work diomp COMMAND` runs it.
mkdir -m 777 "$work/examples"
python3 -B "$source/tests/packaging/pages.py" "$source" "$work/examples"
inside=$(images from --pull-never localhost/diomp)
images run -v "$work/examples:/work" --workingdir /work "$inside" -- \
    sh -c 'id -un && diompcc halo.c -o halo && diomp-run -n 4 ./halo' >"$work/out" 2>&1 || { cat "$work/out" && fail "the example"; }
{ echo user && cat "$work/examples/halo.expected"; } | diff - "$work/out" || fail "the image prints something else"
[ "$(images inspect --format '{{.OCIv1.Config.Cmd}}' "$inside")" = "[diomp-info]" ] || fail "another command"
cat "$work/out"
echo "container: ok"
