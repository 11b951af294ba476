# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# For scripts that fetch something into a folder of a cache, which source this file. Such a script has functions and
# variables of these names:
#
#   folder      what it makes; its file `version` is written last
#   setting     the environment variable that names another folder
#   is_there    function: whether the folder is complete

# fail MESSAGE: ends the script.
fail() {
    echo "$(basename "$0"): $1" >&2
    exit 1
}

# begin_folder: prints the folder and ends the script if the folder is there. Otherwise waits for another run of the script,
# looks again, and sets `work` to a new folder beside it, which is removed at the end.
begin_folder() {
    ! is_there || { echo "$folder" && exit; }
    command -v flock >/dev/null || fail "needs flock (package util-linux)"
    if [ -e "$folder" ] && [ ! -e "$folder/version" ]; then
        fail "$folder is there, but not made by this script (no file 'version'): remove it, or set $setting to another folder"
    fi
    mkdir -p "$(dirname "$folder")"
    exec 9>"$folder.lock"
    flock 9
    ! is_there || { echo "$folder" && exit; }
    work=$(mktemp -d "$folder.XXXXXX")
    trap 'rm -rf "$work"' EXIT
}

# fail_fetching MESSAGE: prints the end of $work/log first.
fail_fetching() {
    tail -n 5 "$work/log" >&2
    fail "$1; the lines above say why"
}

# inner_links ROOT: links that name their target from the root of the file system would leave the folder.
inner_links() {
    find "$1" -type l -lname '/*' | while IFS= read -r link; do
        target=$1$(readlink "$link")
        [ ! -e "$target" ] || ln -sfnr "$target" "$link"
    done
}

# end_folder ROOT: puts it in place of the folder, and prints that.
end_folder() {
    rm -rf "$folder"
    mv -T "$1" "$folder"
    echo "$folder"
}
