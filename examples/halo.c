// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Halo exchange: heat flow along a rod that is distributed over the ranks. Each block has an
// additional cell at both ends, which the neighbours fill.
//
// A put cannot overwrite a halo while its owner reads it: the two fields alternate, so the halo was
// last read two steps ago, and the barrier of the step in between followed that read.
#include <diomp.h>
#include <math.h>
#include <stdio.h>

enum { cells = 1000, steps = 200 };

int main(void) {
    const int me = ompx_rank_num();
    const int ranks = ompx_num_ranks();
    double *now = omp_alloc((cells + 2) * sizeof *now, ompx_symmetric_mem_alloc);
    double *next = omp_alloc((cells + 2) * sizeof *next, ompx_symmetric_mem_alloc);
    for (int i = 0; i < cells + 2; ++i) {
        now[i] = next[i] = 0;
    }
    if (me == 0) {
        now[1] = 1e6; // one hot cell at the left end of the rod
    }
    ompx_barrier(); // all ranks have initialised their blocks: puts may begin

    for (int step = 0; step < steps; ++step) {
        if (me > 0) {
            ompx_put(me - 1, &now[cells + 1], &now[1], sizeof(double));
        } else {
            now[0] = now[1]; // nothing flows out of the rod
        }
        if (me < ranks - 1) {
            ompx_put(me + 1, &now[0], &now[cells], sizeof(double));
        } else {
            now[cells + 1] = now[cells];
        }
        ompx_barrier();
#pragma omp parallel for
        for (int i = 1; i <= cells; ++i) {
            next[i] = now[i] + 0.25 * (now[i - 1] - 2 * now[i] + now[i + 1]);
        }
        double *swap = now;
        now = next;
        next = swap;
    }

    double heat = 0;
    for (int i = 1; i <= cells; ++i) {
        heat += now[i];
    }
    ompx_allreduce(&heat, &heat, 1, OMPX_DOUBLE, OMPX_SUM, ompx_group_world);
    if (me == 0) {
        printf("heat in the rod after %d steps: %.3f\n", steps, heat);
    }
    return fabs(heat - 1e6) < 1e-3 ? 0 : 1;
}
