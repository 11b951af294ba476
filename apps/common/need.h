// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Errors that end a program's job, with the text of the runtime's last error.
#ifndef COMMON_NEED_H
#define COMMON_NEED_H

#include <diomp.h>
#include <stdio.h>

// Ends the job unless `holds`; `what` says what has gone wrong.
static inline void need(int holds, const char *program, const char *what) {
    if (!holds) {
        fprintf(stderr, "%s: rank %d: %s: %s\n", program, ompx_rank_num(), what, ompx_last_error());
        ompx_abort(1);
    }
}

#endif
