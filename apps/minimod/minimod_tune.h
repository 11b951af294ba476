// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which form of the rows' loop is fastest on this machine, by trying each.
#ifndef MINIMOD_TUNE_H
#define MINIMOD_TUNE_H

#include "minimod/minimod_model.h"

// One for planes that come from memory, one for planes that a wavefront has just computed.
typedef struct tuned_rows {
    row_form memory;
    row_form cache;
} tuned_rows;

// Computes planes x_begin to x_end - 1 of fields[0] from fields[1]; both are zero and stay so.
typedef void rows_trial(const model *m, float *fields[2], row_form form, int x_begin, int x_end);

// Takes the time of about four steps over the own planes, on all threads that `trial` uses. Returns
// rows_untried() for both where there are too few planes to measure. Calls `trial` on the caller's
// thread.
tuned_rows tune_rows(const model *m, float *fields[2], rows_trial *trial);

#endif
