// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The time loop: driven by the host, with an exchange of halo.h (steps_host.c), or in target
// regions that communicate themselves (steps_region.c). Each program links one of them. All calls
// come from the master thread; all but steps_choose are collective.
#ifndef MINIMOD_STEPS_H
#define MINIMOD_STEPS_H

#include "common/progress.h"
#include "minimod/minimod_model.h"
#include "minimod/minimod_options.h"
#include "minimod/minimod_run.h"

// Returns 0, and a message, if the program does not have the form that --region, --teams and
// --wavefront choose.
int steps_choose(const minimod_options *o, char *message, size_t size);
// Call after compute_enter; comm_barrier must follow before steps_run.
void steps_init(const model *m, const minimod_options *o, float *fields[2], float *seismogram);
// Runs all steps, and adds up the times of the exchange in `result`; -1: they are not known.
void steps_run(const model *m, const minimod_options *o, float *fields[2], run_result *result,
               progress *bar);
// Call after the barrier that follows the last step.
void steps_free(void);

#endif
