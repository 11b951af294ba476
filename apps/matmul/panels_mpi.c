// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Panels with MPI: nonblocking broadcasts in communicators.
#include "common/comm.h"
#include "matmul/panels.h"

#include <mpi.h>

/* comm:begin */
static MPI_Comm row, column;
static MPI_Request passed[2][2];
/* comm:end */

void panels_init(int grid_row, int grid_column) {
    /* comm:begin */
    MPI_Comm_split(MPI_COMM_WORLD, grid_row, grid_column, &row);
    MPI_Comm_split(MPI_COMM_WORLD, grid_column, grid_row, &column);
    for (int i = 0; i < 2; ++i) {
        passed[i][0] = passed[i][1] = MPI_REQUEST_NULL;
    }
    /* comm:end */
}

void panels_start(int slot, const panel *a, const panel *b) {
    /* comm:begin */
    const int a_count = (int)(a->bytes / sizeof(double));
    const int b_count = (int)(b->bytes / sizeof(double));
    MPI_Ibcast(a->data, a_count, MPI_DOUBLE, a->root, row, &passed[slot][0]);
    MPI_Ibcast(b->data, b_count, MPI_DOUBLE, b->root, column, &passed[slot][1]);
    /* comm:end */
}

static void test_requests(void) {
    /* comm:begin */
    int done = 0;
    MPI_Testall(4, &passed[0][0], &done, MPI_STATUSES_IGNORE);
    /* comm:end */
}

void (*const panels_progress)(void) = test_requests;

void panels_finish(int slot) {
    /* comm:begin */
    MPI_Waitall(2, passed[slot], MPI_STATUSES_IGNORE);
    /* comm:end */
}

void panels_free(void) {
    /* comm:begin */
    MPI_Comm_free(&row);
    MPI_Comm_free(&column);
    /* comm:end */
}
