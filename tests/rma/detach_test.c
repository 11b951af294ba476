/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * A task graph in which a get releases a dependent task: fetch (detached) -> double it -> put the
 * result (detached) -> sum. The dependent tasks may run only after the transfer fulfilled the
 * event. */
#include <diomp.h>
#include <omp.h>
#include <stdio.h>

enum { BLOCKS = 16, LENGTH = 1000 };

int main(void) {
    int const me = ompx_rank_num();
    int const ranks = ompx_num_ranks();
    int const peer = (me + 1) % ranks;
    double *mine = omp_alloc(sizeof(double) * BLOCKS * LENGTH, ompx_symmetric_mem_alloc);
    double *back = omp_alloc(sizeof(double) * BLOCKS * LENGTH, ompx_symmetric_mem_alloc);
    static double fetched[BLOCKS][LENGTH];
    static double doubled[BLOCKS][LENGTH];
    for (int i = 0; i < BLOCKS * LENGTH; ++i) {
        mine[i] = me * 1000000.0 + i;
        back[i] = -1;
    }
    ompx_barrier();
    int stored = 0;
#pragma omp parallel num_threads(3)
#pragma omp single
    for (int b = 0; b < BLOCKS; ++b) {
        omp_event_handle_t arrived;
#pragma omp task detach(arrived) depend(out : fetched[b]) firstprivate(b)
        ompx_get_detach(fetched[b], peer, mine + b * LENGTH, sizeof(double) * LENGTH, arrived);
#pragma omp task depend(in : fetched[b]) depend(out : doubled[b]) firstprivate(b)
        for (int i = 0; i < LENGTH; ++i) {
            doubled[b][i] = 2 * fetched[b][i];
        }
        omp_event_handle_t sent;
#pragma omp task detach(sent) depend(inout : doubled[b]) firstprivate(b)
        ompx_put_detach(peer, back + b * LENGTH, doubled[b], sizeof(double) * LENGTH, sent);
#pragma omp task depend(in : doubled[b]) shared(stored)
        {
#pragma omp atomic
            stored++;
        }
    }
    ompx_barrier();
    int wrong = stored != BLOCKS;
    for (int i = 0; i < BLOCKS * LENGTH; ++i) {
        wrong += back[i] != 2 * (me * 1000000.0 + i);
    }
    if (wrong) {
        fprintf(stderr, "rank %d: %d values wrong, %d of %d tasks ran\n", me, wrong, stored,
                BLOCKS);
    }
    omp_free(back, ompx_symmetric_mem_alloc);
    omp_free(mine, ompx_symmetric_mem_alloc);
    return wrong != 0;
}
