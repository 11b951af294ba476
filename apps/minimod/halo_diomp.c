// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Halo exchange with DiOMP: each rank writes its edges directly into its neighbours' halos.
//
// No halo is overwritten while its owner reads it: the two fields A and B alternate, and in step n
// every rank reads A with its halos, writes B and puts into the halos of B. These halos were read
// last in step n - 1, which ended with a barrier, and the put comes after it. No edge is sent
// before it is computed: the put follows the computation in program order. The halo is complete in
// step n + 1: the barrier at the end of step n includes every rank's fence, which completes the
// puts; until then the edges are only read.
#include "diomp.h"
#include "minimod/halo.h"

void halo_init(const grid *g) { (void)g; }

void halo_start(const grid *g, float *field, int step) {
    (void)step;
    /* comm:begin */
    const size_t n = HALO * g->plane * sizeof(float); // bytes
    if (g->rank > 0) {
        ompx_put_nb(g->rank - 1, grid_plane(g, field, g->left_nx), grid_plane(g, field, 0), n, 0);
    }
    if (g->rank + 1 < g->ranks) {
        float *const edge = grid_plane(g, field, g->local_nx - HALO);
        ompx_put_nb(g->rank + 1, grid_plane(g, field, -HALO), edge, n, 0);
    }
    /* comm:end */
}

const int halo_progress_interval = 0; // puts progress while the rank computes
void halo_progress(void) {}

void halo_finish(const grid *g, int step) {
    (void)g;
    (void)step;
    /* comm:begin */
    ompx_barrier();
    /* comm:end */
}

void halo_free(void) {}
