// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A library that opened_library_test.c opens.
#include "diomp.h"

int rank_after_barrier(void) { return ompx_barrier() == OMPX_SUCCESS ? ompx_rank_num() : -1; }
