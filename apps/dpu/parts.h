// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transfers of the parts of a problem, and their synchronisation: with OpenMP's devices
// (parts_target.c), or with MPI, where rank 0 is the host and each further rank acts as a device
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
// Returns whether this process has the inputs, checks and reports.
int parts_host(void);
const char *parts_name(void); // "devices" or "ranks"
// Returns the number of parts; 0 with a message on failure. `devices` is the text of --devices or
// NULL.
int parts_choose(const char *devices, char *message, size_t message_size);

// Computes the problem in all parts; the result is in the host's arrays. Collective.
part_times parts_run(const dpu_kernel *kernel, const problem *p);
// Computes the problem on the host alone; returns the seconds.
double parts_run_on_host(const dpu_kernel *kernel, const problem *p);

// Returns the address on the part's device of a range that begins at `data` on the host.
double *part_at(const part *own, double *data);
// Exchanges `count` values with each neighbour: copies own `low` into `high_halo` of part index -
// 1, and own `high` into `low_halo` of part index + 1; all addresses are the host's. On return the
// own halos are filled and all parts have called this. Collective, blocks.
void part_exchange(part *own, double *low_halo, double *low, double *high, double *high_halo,
                   size_t count);

// Returns part `index` of `count`, with its units.
static inline part part_make(int units, int index, int count, int device) {
    const int first = (int)((long long)units * index / count);
    const int end = (int)((long long)units * (index + 1) / count);
    return (part){.index = index, .count = count, .device = device, .first = first, .end = end};
}

#endif
