// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parts on ranks: rank 0 sends the inputs and receives the results, rank r + 1 is the device of
// part r and computes in its own memory. Halos go from rank to rank.
#include "common/clock.h"
#include "dpu/parts.h"

#include <mpi.h>
#include <omp.h>
#include <stdio.h>

enum { HOST = 0, TO_LOW, TO_HIGH };

static int rank, ranks;

void parts_begin(int *argc, char ***argv) {
    int provided = MPI_THREAD_SINGLE;
    MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

void parts_end(void) { MPI_Finalize(); }

int parts_host(void) { return rank == HOST; }

const char *parts_name(void) { return "ranks"; }

int parts_choose(const char *devices, char *message, size_t message_size) {
    if (devices != NULL) {
        snprintf(message, message_size,
                 "--devices: with MPI, ranks act as devices; mpirun -n sets their number");
        return 0;
    }
    if (ranks < 2) {
        snprintf(message, message_size, "needs 2 ranks or more: rank 0 is the host");
        return 0;
    }
    return ranks - 1;
}

double *part_at(const part *own, double *data) {
    (void)own;
    return data;
}

void part_exchange(part *own, double *low_halo, double *low, double *high, double *high_halo,
                   size_t count) {
    const double start = seconds_now();
    const int below = own->index > 0 ? rank - 1 : MPI_PROC_NULL;
    const int above = own->index + 1 < own->count ? rank + 1 : MPI_PROC_NULL;
    const int n = (int)count;
    MPI_Sendrecv(low, n, MPI_DOUBLE, below, TO_LOW, high_halo, n, MPI_DOUBLE, above, TO_LOW,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(high, n, MPI_DOUBLE, above, TO_HIGH, low_halo, n, MPI_DOUBLE, below, TO_HIGH,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    own->transfer += seconds_now() - start;
}

// Counts are int in MPI 3, so large ranges are sent in several messages.
static void move(double *data, size_t count, int peer, int send) {
    for (size_t done = 0; done < count;) {
        const size_t left = count - done;
        const int n = left < (1u << 27) ? (int)left : 1 << 27;
        if (send) {
            MPI_Send(data + done, n, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD);
        } else {
            MPI_Recv(data + done, n, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        done += (size_t)n;
    }
}

// Moves all ranges of a part between the host and `peer`: inputs, or results.
static void move_ranges(const dpu_kernel *kernel, const problem *p, const part *peer_part, int peer,
                        int send, int inputs) {
    array_range ranges[MAX_RANGES];
    const int count = kernel->ranges(p, peer_part, ranges);
    for (int i = 0; i < count; ++i) {
        if (inputs && ranges[i].send) {
            move(ranges[i].data, ranges[i].count, peer, send);
        } else if (!inputs) {
            move(ranges[i].back, ranges[i].back_count, peer, send);
        }
    }
}

static void serve(const dpu_kernel *kernel, const problem *p, int units) {
    for (int inputs = 1; inputs >= 0; --inputs) {
        for (int r = 1; r < ranks; ++r) {
            const part peer_part = part_make(units, r - 1, ranks - 1, 0);
            move_ranges(kernel, p, &peer_part, r, inputs, inputs);
        }
    }
}

static part_times compute(const dpu_kernel *kernel, const problem *p, int units) {
    part own = part_make(units, rank - 1, ranks - 1, omp_get_initial_device());
    part_times t = {0};
    double start = seconds_now();
    move_ranges(kernel, p, &own, HOST, 0, 1);
    t.transfer = seconds_now() - start;
    start = seconds_now();
    kernel->work(p, &own);
    t.kernel = seconds_now() - start - own.transfer;
    start = seconds_now();
    move_ranges(kernel, p, &own, HOST, 1, 0);
    t.transfer += seconds_now() - start + own.transfer;
    return t;
}

part_times parts_run(const dpu_kernel *kernel, const problem *p) {
    const int units = kernel->units(&p->o);
    part_times own = {0};
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = seconds_now();
    if (rank == HOST) {
        serve(kernel, p, units);
    } else {
        own = compute(kernel, p, units);
    }
    double total = seconds_now() - start;
    // Ranks leave the barrier at different times; the longest time counts.
    MPI_Reduce(rank == HOST ? MPI_IN_PLACE : &total, &total, 1, MPI_DOUBLE, MPI_MAX, HOST,
               MPI_COMM_WORLD);
    double sums[3] = {own.transfer, own.kernel, own.wait};
    MPI_Reduce(rank == HOST ? MPI_IN_PLACE : sums, sums, 3, MPI_DOUBLE, MPI_SUM, HOST,
               MPI_COMM_WORLD);
    const int n = ranks - 1;
    return (part_times){total, sums[0] / n, sums[1] / n, sums[2] / n};
}

double parts_run_on_host(const dpu_kernel *kernel, const problem *p) {
    part all = part_make(kernel->units(&p->o), 0, 1, omp_get_initial_device());
    // Includes the exchanges, which have no neighbours here.
    const double start = seconds_now();
    kernel->work(p, &all);
    return seconds_now() - start;
}
