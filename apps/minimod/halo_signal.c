// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Halo exchange with DiOMP, synchronising neighbours only: the put carries a signal.
//
// No halo is overwritten while its owner J reads it: the two fields A and B alternate; in step n,
// rank I puts into the halo of B at J. J read that halo last in step n - 1, and only in the
// computation of its edge towards I (the interior reads no halo). J computed that edge before it
// put it into the halo of I with signal n - 1, and I waited for that signal before it began step n.
// A signal cannot run ahead: J's put of step n + 1 needs signal n of I first, so it can only
// overwrite the other field's halo early, which I finished reading before it sent signal n. The
// counters therefore only grow, and waiting for "at least n" is correct.
#include "common/comm.h"
#include "diomp.h"
#include "minimod/halo.h"

enum { FROM_LEFT, FROM_RIGHT };

/* comm:begin */
static uint64_t *arrived; // [2]: the last step whose edge came from the left, from the right
/* comm:end */

void halo_init(const grid *g) {
    (void)g;
    /* comm:begin */
    arrived = omp_calloc(2, sizeof *arrived, ompx_symmetric_mem_alloc);
    if (arrived == NULL) {
        comm_abort(1);
    }
    /* comm:end */
}

void halo_start(const grid *g, float *field, int step) {
    /* comm:begin */
    const size_t bytes = HALO * g->plane * sizeof(float);
    if (g->rank > 0) {
        ompx_put_signal(g->rank - 1, grid_plane(g, field, g->left_nx), grid_plane(g, field, 0),
                        bytes, &arrived[FROM_RIGHT], (uint64_t)step, OMPX_SIGNAL_SET);
    }
    if (g->rank + 1 < g->ranks) {
        float *const edge = grid_plane(g, field, g->local_nx - HALO);
        ompx_put_signal(g->rank + 1, grid_plane(g, field, -HALO), edge, bytes, &arrived[FROM_LEFT],
                        (uint64_t)step, OMPX_SIGNAL_SET);
    }
    /* comm:end */
}

const int halo_progress_interval = 0;
void halo_progress(void) {}

void halo_finish(const grid *g, int step) {
    /* comm:begin */
    if (g->rank > 0) {
        ompx_signal_wait(&arrived[FROM_LEFT], OMPX_CMP_GE, (uint64_t)step);
    }
    if (g->rank + 1 < g->ranks) {
        ompx_signal_wait(&arrived[FROM_RIGHT], OMPX_CMP_GE, (uint64_t)step);
    }
    /* comm:end */
}

void halo_free(void) { omp_free(arrived, ompx_symmetric_mem_alloc); }
