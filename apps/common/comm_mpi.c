// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "common/comm.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* comm:begin */
void comm_init(int *argc, char ***argv) {
    int provided = MPI_THREAD_SINGLE;
    MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided);
    if (provided < MPI_THREAD_FUNNELED) {
        fprintf(stderr, "this MPI does not offer MPI_THREAD_FUNNELED\n");
        comm_abort(1);
    }
}

void comm_finalize(void) { MPI_Finalize(); }

int comm_rank(void) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

int comm_ranks(void) {
    int ranks = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    return ranks;
}

const char *comm_name(void) { return "MPI"; }

void comm_abort(int code) {
    MPI_Abort(MPI_COMM_WORLD, code);
    abort();
}

void *comm_alloc(size_t bytes) {
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (memory == NULL) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        comm_abort(1);
    }
    return memory;
}

void comm_free(void *memory) { free(memory); }

void comm_barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }

// Counts are int in MPI 3, so large parts are sent in chunks.
static void transfer_chunks(char *data, size_t bytes, int peer, int send) {
    for (size_t done = 0; done < bytes;) {
        const size_t left = bytes - done;
        const int chunk = left < (1u << 30) ? (int)left : 1 << 30;
        if (send) {
            MPI_Send(data + done, chunk, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
        } else {
            MPI_Recv(data + done, chunk, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        done += (size_t)chunk;
    }
}

void comm_gather(void *whole, void *part, const size_t *offsets) {
    const int rank = comm_rank();
    if (rank != 0) {
        transfer_chunks(part, offsets[rank + 1] - offsets[rank], 0, 1);
        return;
    }
    for (size_t i = 0; i < offsets[1]; ++i) {
        ((char *)whole)[i] = ((char *)part)[i];
    }
    for (int r = 1; r < comm_ranks(); ++r) {
        transfer_chunks((char *)whole + offsets[r], offsets[r + 1] - offsets[r], r, 0);
    }
}

double comm_max(double value) {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return value;
}

uint64_t comm_sum(uint64_t value) {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    return value;
}

void comm_sum_to_root(float *values, size_t count) {
    const int root = comm_rank() == 0;
    MPI_Reduce(root ? MPI_IN_PLACE : values, values, (int)count, MPI_FLOAT, MPI_SUM, 0,
               MPI_COMM_WORLD);
}
/* comm:end */
