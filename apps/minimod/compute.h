// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where the steps are computed: by the host's threads (compute_host.c) or on OpenMP's default
// device (compute_target.c). Each program links one of them.
#ifndef MINIMOD_COMPUTE_H
#define MINIMOD_COMPUTE_H

#include "minimod/minimod_model.h"

#include <stddef.h>

// Which form of the kernel: "auto" (by what the device is), "rows" or "columns" (compute_target.c;
// the same results). Before compute_enter. Returns 0 if there is no such form here.
int compute_choose(const char *form);
// For the report: "2 threads each".
void compute_where(char *text, size_t text_size);

// Brings the model, two fields of zeros and seismogram[steps][receivers] to where the steps run.
// From now until compute_leave they are in use there, and the host's copies are stale.
void compute_enter(const model *m, float *fields[2], float *seismogram, int steps);
// Copies one field to the other there, all zeros still, and returns the best of some, in bytes read
// and written per second: what the steps' traffic is compared with.
double compute_copy(const model *m, float *fields[2]);
// As model_advance.
void compute_advance(const model *m, float *field, float *now, int step, int x_begin, int x_end);
// As model_record, into the row of `step`.
void compute_record(const model *m, float *field, float *seismogram, int step);
// The field of the last step and the seismogram are on the host again; the other field is lost.
void compute_leave(const model *m, float *fields[2], float *seismogram, int steps);

#endif
