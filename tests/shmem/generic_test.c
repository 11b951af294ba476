/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "generic_test.inc"
