// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Computation of the steps: by the host's threads (compute_host.c) or on OpenMP's default device
// (compute_target.c). Each program links one of them.
#ifndef MINIMOD_COMPUTE_H
#define MINIMOD_COMPUTE_H

#include "minimod/minimod_model.h"

#include <stddef.h>

// Chooses the form of the kernel: "auto" (by the kind of device), "rows" or "columns"
// (compute_target.c), with equal results. Call before compute_enter. Returns 0 if the program does
// not have the form.
int compute_choose(const char *form);
// For the report: "2 threads each".
void compute_where(char *text, size_t text_size);

// Copies the model, two fields of zeros and seismogram[steps][receivers] to the device of the
// steps. Until compute_leave the host's copies are stale.
void compute_enter(const model *m, float *fields[2], float *seismogram, int steps);
// Measures the memory on the device of the steps several times, with fields that are still zero and
// stay so. Returns the best rate, in bytes read and written per second, for comparison with the
// steps' memory traffic; *measured becomes "copy" (on GPUs) or "triad", that of STREAM (McCalpin,
// 1995), whose a = b + s * c counts 12 bytes an element.
double compute_bandwidth(const model *m, float *fields[2], const char **measured);
// Does the work of model_advance. is_cached: a cache has the planes, since the step before has just
// computed them.
void compute_advance(const model *m, float *field, float *now, int step, int x_begin, int x_end,
                     int is_cached);
// Does the work of model_record for own planes x_begin to x_end - 1, into the row of `step`.
void compute_record(const model *m, float *field, float *seismogram, int step, int x_begin,
                    int x_end);
// Copies the field of the last step and the seismogram back to the host; the other field is lost.
void compute_leave(const model *m, float *fields[2], float *seismogram, int steps);

#endif
