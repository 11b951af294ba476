# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Sourced by scripts that take packages from parts of the distribution's archive that this machine does not use.

# other_sources FOLDER TYPE EXPRESSION: makes apt-get and apt-cache use, from then on in this shell, the machine's package
# sources for TYPE (deb, deb-src) with sed's EXPRESSION applied to their suites, and lists of their own in FOLDER. Nothing of
# the system changes. `apt-get update` comes next.
other_sources() {
    mkdir -p "$1/sources" "$1/lists/partial" "$1/cache/archives/partial"
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
        case $file in
        *.sources) sed "s/^Types:.*/Types: $2/; /^Suites:/{ $3
}" "$file" ;;
        *.list) sed -n "s/^deb /$2 /p" "$file" ;;
        *) continue ;;
        esac >"$1/sources/$(basename "$file")" 2>/dev/null || true
    done
    cat >"$1/apt.conf" <<CONFIGURATION
quiet "2";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$1/sources";
Dir::State::lists "$1/lists";
Dir::Cache "$1/cache";
APT::Sandbox::User "";
CONFIGURATION
    APT_CONFIG=$1/apt.conf
    export APT_CONFIG
}
