// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "calls.h"

int main() { return run_calls(); }
