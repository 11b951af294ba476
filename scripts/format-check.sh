#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Are all C and C++ files formatted as .clang-format says? With --fix: format them.
set -u
cd "$(dirname "$0")/.." || exit 1
formatter=${CLANG_FORMAT:-clang-format-19} # one version, since versions differ in their output
mode=(--dry-run --Werror)
[ "${1:-}" != --fix ] || mode=(-i)

mapfile -d '' files < <(git ls-files -z --cached --others --exclude-standard -- '*.h' '*.hpp' '*.c' '*.cpp')
existing=()
for file in "${files[@]}"; do
    [ ! -f "$file" ] || existing+=("$file")
done
if printf '%s\0' "${existing[@]}" | xargs -0 -P "$(nproc)" -n 8 "$formatter" "${mode[@]}"; then
    echo "format: ${#existing[@]} files"
else
    echo "format: run scripts/format-check.sh --fix" >&2
    exit 1
fi
