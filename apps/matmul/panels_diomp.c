// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Panels with DiOMP: non-blocking bcasts in groups of ranks.
#include "common/comm.h"
#include "diomp.h"
#include "matmul/panels.h"

/* comm:begin */
static ompx_group_t row, column;
static ompx_event_t passed[2][2];
/* comm:end */

void panels_init(int grid_row, int grid_column) {
    /* comm:begin */
    ompx_group_split(ompx_group_world, grid_row, grid_column, &row);
    ompx_group_split(ompx_group_world, grid_column, grid_row, &column);
    /* comm:end */
}

void panels_start(int slot, const panel *a, const panel *b) {
    /* comm:begin */
    ompx_bcast_from_nb(a->data, a->bytes, a->root, row, &passed[slot][0]);
    ompx_bcast_from_nb(b->data, b->bytes, b->root, column, &passed[slot][1]);
    /* comm:end */
}

void (*const panels_progress)(void) = NULL;

void panels_finish(int slot) {
    /* comm:begin */
    ompx_event_wait(&passed[slot][0]);
    ompx_event_wait(&passed[slot][1]);
    /* comm:end */
}

void panels_free(void) {
    /* comm:begin */
    ompx_group_free(&row);
    ompx_group_free(&column);
    /* comm:end */
}
