# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Sourced by tests that look for instructions in code for GPUs: the file "$code", compiled for "$target".

# has TEXT WHY
has() {
    grep -q -- "$1" "$code" || {
        echo "not in the code for $target: $1: $2" && exit 1
    }
}
# lacks TEXT WHY
lacks() {
    ! grep -q -- "$1" "$code" || {
        echo "in the code for $target: $1: $2" && exit 1
    }
}
