// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How the parts of a problem reach the devices and how they meet: with OpenMP's devices
// (parts_target.c), or with MPI, where rank 0 is the host and each further rank plays a device
// (parts_mpi.c). Each program links one of them.
#ifndef DPU_PARTS_H
#define DPU_PARTS_H

#include "dpu/kernel.h"

// Seconds; `total` from the first transfer to the last, the others means over the parts.
typedef struct part_times {
    double total, transfer, kernel, wait;
} part_times;

void parts_begin(int *argc, char ***argv);
void parts_end(void);
// The process that has the inputs, checks and reports.
int parts_host(void);
const char *parts_name(void); // "devices" or "ranks"
// How many parts there will be; 0 with a message. `devices` is the text of --devices or NULL.
int parts_choose(const char *devices, char *message, size_t message_size);

// Computes the problem in all parts; the result is in the host's arrays. Collective.
part_times parts_run(const dpu_kernel *kernel, const problem *p);
// The same by the host alone.
double parts_run_on_host(const dpu_kernel *kernel, const problem *p);

// Where the part's device has what a piece begins with.
double *part_at(const part *own, double *data);
// Neighbours' values move as many as `count`: own `low` into the piece `high_halo` of part index -
// 1, own `high` into `low_halo` of part index + 1, named as on the host. Those of own halos are
// there when it returns, and all parts have come.
void part_exchange(part *own, double *low_halo, double *low, double *high, double *high_halo,
                   size_t count);

// The units of part `index` of `count`.
static inline part part_make(int units, int index, int count, int device) {
    const int first = (int)((long long)units * index / count);
    const int end = (int)((long long)units * (index + 1) / count);
    return (part){.index = index, .count = count, .device = device, .first = first, .end = end};
}

#endif
