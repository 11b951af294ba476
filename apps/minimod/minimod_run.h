// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The time loop, and the output of a run.
#ifndef MINIMOD_RUN_H
#define MINIMOD_RUN_H

#include "minimod/minimod_model.h"
#include "minimod/minimod_options.h"

#include <stddef.h>
#include <stdint.h>

typedef struct run_result {
    float *field;        // after the last step (one of the two buffers)
    float *seismogram;   // [step][receiver]; on rank 0 complete, elsewhere own receivers
    double seconds;      // of the time loop on this rank
    double put_seconds;  // of it in halo_start
    double wait_seconds; // of it in halo_finish
    double bandwidth;    // of compute_bandwidth, on this rank
    const char *bandwidth_of;
} run_result;

// Runs all steps with halo exchange. `fields` are two arrays of part.count floats from comm_alloc.
// Collective. The caller frees result->seismogram.
void run_steps(const model *m, const minimod_options *o, float *fields[2], run_result *result);

// Digest of the own points of a field, to be added over ranks: independent of the split.
uint64_t run_digest(const model *m, float *field);

// On rank 0: computes the same run on a single grid without communication and compares. `whole` is
// the gathered wavefield, planes laid out as in the parts. Returns 1 if equal within 1e-6 of the
// largest value, else 0; prints what it found.
int run_check(const minimod_options *o, double slowest, double fastest, const float *whole,
              const float *seismogram);

// On rank 0: writes slice.raw (float32 [nx][nz], the plane through the source), seismogram.csv and
// run.json into options.out. Returns 0, or -1 with a message.
int run_write(const minimod_options *o, const model *m, int ranks, const char *library,
              const float *slice, const float *seismogram, char *message, size_t message_size);

#endif
