// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// C = A * B by Cannon's ring. Rank r holds rows of A, B and C (a stripe). In step s it multiplies
// the columns of its A that belong to stripe (r + s) mod ranks with that stripe of B, which it has
// just received from rank r + 1, while it sends it to rank r - 1.
#include "common/clock.h"
#include "common/comm.h"
#include "common/options.h"
#include "common/progress.h"
#include "matmul/matmul_kernel.h"
#include "matmul/ring.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct problem {
    size_t n;
    int rank, ranks;
    size_t first, rows, max_rows; // own stripe; most rows of any stripe
    double *a, *c;                // [rows][n]
    double *stripe[2];            // [max_rows][n]
    double wait_seconds;
} problem;

typedef struct matmul_options {
    int n;
    int repeat;
    int overlap;
    int progress;
} matmul_options;

static size_t stripe_first(size_t n, int rank, int ranks) {
    const size_t extra = n % (size_t)ranks;
    const size_t r = (size_t)rank;
    return r * (n / (size_t)ranks) + (r < extra ? r : extra);
}

// Small integers, so that every product is exact in whatever order it is summed.
static double a_value(size_t i, size_t j) { return (double)((i * 7 + j * 13) % 17) - 8; }
static double b_value(size_t i, size_t j) { return (double)((i * 5 + j * 11 + i * j) % 19) - 9; }

static void fill(problem *p) {
    for (size_t i = 0; i < p->rows; ++i) {
        for (size_t j = 0; j < p->n; ++j) {
            p->a[i * p->n + j] = a_value(p->first + i, j);
            p->stripe[0][i * p->n + j] = b_value(p->first + i, j);
            p->c[i * p->n + j] = 0;
        }
    }
    matmul_load(p->a, p->rows * p->n);
    matmul_load(p->stripe[0], p->rows * p->n);
    matmul_load(p->c, p->rows * p->n);
}

// Multiplies own rows in a few chunks, so that the library is called between them.
static void multiply(problem *p, const double *b, size_t first, size_t depth, int moving) {
    const size_t chunk = p->rows / 4 > 64 ? p->rows / 4 : 64;
    for (size_t i = 0; i < p->rows; i += chunk) {
        const size_t rows = p->rows - i < chunk ? p->rows - i : chunk;
        matmul_add(p->c + i * p->n, p->a + i * p->n + first, b, rows, p->n, depth, p->n);
        if (moving) {
            ring_progress();
        }
    }
}

static void product(problem *p, int overlap) {
    const size_t row_bytes = p->n * sizeof(double);
    for (int s = 0; s < p->ranks; ++s) {
        const int owner = (p->rank + s) % p->ranks;
        const size_t first = stripe_first(p->n, owner, p->ranks);
        const size_t depth = stripe_first(p->n, owner + 1, p->ranks) - first;
        double *const stripe = p->stripe[s % 2];
        double *const spare = p->stripe[(s + 1) % 2];
        const int last = s + 1 == p->ranks;
        if (!overlap || last) {
            multiply(p, stripe, first, depth, 0);
        }
        if (!last) {
            ring_start(spare, stripe, depth * row_bytes, p->max_rows * row_bytes);
            if (overlap) {
                multiply(p, stripe, first, depth, 1);
            }
            const double computed = seconds_now();
            ring_finish();
            p->wait_seconds += seconds_now() - computed;
        }
    }
}

static int check_entry(const problem *p, size_t i, size_t j) {
    double sum = 0;
    for (size_t k = 0; k < p->n; ++k) {
        sum += a_value(p->first + i, k) * b_value(k, j);
    }
    const double got = p->c[i * p->n + j];
    if (got != sum) {
        fprintf(stderr, "matmul: rank %d: c[%zu][%zu] is %g, should be %g\n", p->rank, p->first + i,
                j, got, sum);
    }
    return got == sum;
}

// Compares with the definition: all entries for small sizes, otherwise entries spread over all own
// rows.
static size_t count_wrong(const problem *p, size_t *checked) {
    const size_t stride = p->n <= 400 ? 1 : p->n / 8 + 1;
    size_t wrong = 0;
    *checked = 0;
    for (size_t i = 0; i < p->rows && wrong < 4; ++i) {
        for (size_t j = i % stride; j < p->n && wrong < 4; j += stride) {
            wrong += !check_entry(p, i, j);
            ++*checked;
        }
    }
    return wrong;
}

static uint64_t digest(const problem *p) {
    uint64_t sum = 0;
    for (size_t i = 0; i < p->rows; ++i) {
        uint64_t hash = 14695981039346656037u ^ (p->first + i);
        for (size_t j = 0; j < p->n; ++j) {
            uint64_t bits = 0;
            memcpy(&bits, &p->c[i * p->n + j], sizeof bits);
            hash = (hash ^ bits) * 1099511628211u;
        }
        sum += hash;
    }
    return sum;
}

static void *allocate(size_t bytes) {
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (memory == NULL) {
        fprintf(stderr, "matmul: no memory for %zu bytes\n", bytes);
        comm_abort(1);
    }
    return memory;
}

static problem open_problem(size_t n) {
    problem p = {.n = n, .rank = comm_rank(), .ranks = comm_ranks()};
    p.first = stripe_first(n, p.rank, p.ranks);
    p.rows = stripe_first(n, p.rank + 1, p.ranks) - p.first;
    p.max_rows = (n + (size_t)p.ranks - 1) / (size_t)p.ranks;
    p.a = allocate(p.rows * n * sizeof(double));
    p.c = allocate(p.rows * n * sizeof(double));
    // The stripes first: arrays of equal size on all ranks then have the same offset on their
    // devices.
    for (int i = 0; i < 2; ++i) {
        p.stripe[i] = comm_alloc(p.max_rows * n * sizeof(double));
        matmul_map(p.stripe[i], p.max_rows * n);
    }
    matmul_map(p.a, p.rows * n);
    matmul_map(p.c, p.rows * n);
    return p;
}

static void close_problem(problem *p) {
    matmul_unmap(p->c, p->rows * p->n);
    matmul_unmap(p->a, p->rows * p->n);
    for (int i = 1; i >= 0; --i) {
        matmul_unmap(p->stripe[i], p->max_rows * p->n);
        comm_free(p->stripe[i]);
    }
    free(p->a);
    free(p->c);
}

// Returns the best time of all repetitions; *wait gets the part of it spent waiting for the shift.
static double measure(problem *p, const matmul_options *o, double *wait) {
    double best = 1e300;
    progress bar;
    progress_start(&bar, comm_name(), o->repeat, p->rank == 0 ? o->progress : 0,
                   2e-9 * (double)p->n * (double)p->n * (double)p->n, "GFLOP/s");
    for (int r = 0; r < o->repeat; ++r) {
        fill(p);
        p->wait_seconds = 0;
        comm_barrier();
        const double start = seconds_now();
        product(p, o->overlap);
        const double seconds = comm_max(seconds_now() - start);
        if (seconds < best) {
            best = seconds;
            *wait = comm_max(p->wait_seconds);
        }
        progress_update(&bar, r + 1);
    }
    progress_finish(&bar);
    matmul_unload(p->c, p->rows * p->n);
    return best;
}

static int run(const matmul_options *o) {
    problem p = open_problem((size_t)o->n);
    double wait = 0;
    const double best = measure(&p, o, &wait);
    size_t checked = 0;
    const size_t wrong = count_wrong(&p, &checked);
    const uint64_t all_checked = comm_sum(checked);
    const uint64_t all_wrong = comm_sum(wrong);
    const uint64_t checksum = comm_sum(digest(&p));
    if (p.rank == 0) {
        const double flops = 2 * (double)p.n * (double)p.n * (double)p.n;
        char where[64];
        matmul_where(where, sizeof where);
        printf("matrix      %d x %d, doubles\n", o->n, o->n);
        printf("ranks       %d (%s), %s, overlap %s\n", p.ranks, comm_name(), where,
               o->overlap ? "on" : "off");
        printf("time        %.4f s (best of %d), %.4f s of it waiting for the shift\n", best,
               o->repeat, wait);
        printf("speed       %.2f GFLOP/s\n", flops / best * 1e-9);
        printf("checksum    %016llx\n", (unsigned long long)checksum);
        printf("check       %s: %llu of %llu entries compared are right\n",
               all_wrong == 0 ? "passed" : "FAILED", (unsigned long long)(all_checked - all_wrong),
               (unsigned long long)all_checked);
        fflush(stdout);
    }
    close_problem(&p);
    return all_wrong != 0;
}

static int check_options(const void *options, char *message, size_t message_size) {
    const matmul_options *const o = options;
    if (o->n < comm_ranks() || o->n > 100000 || o->repeat < 1) {
        snprintf(message, message_size,
                 "--n %d, --repeat %d: n must be between the number of ranks (%d) and 100000, "
                 "repeat at least 1",
                 o->n, o->repeat, comm_ranks());
        return 0;
    }
    return 1;
}

int main(int argc, char **argv) {
    comm_init(&argc, &argv);
    matmul_options o = {.n = 1024, .repeat = 3, .overlap = 1, .progress = -1};
    const option_row rows[] = {
        {"--n", OPTION_INT, 1, 0, &o.n, "N", "rows and columns [1024]"},
        {"--repeat", OPTION_INT, 1, 0, &o.repeat, "N", "products; the best time counts [3]"},
        {"--overlap", OPTION_SWITCH, 1, 0, &o.overlap, "on|off",
         "pass stripes on while computing with them [on]"},
        {"--progress", OPTION_AUTO, 1, 0, &o.progress, "on|off|auto", "progress bar [auto]"},
    };
    enum { NUM_ROWS = sizeof rows / sizeof rows[0] };
    int status = 0;
    if (!options_handle(rows, NUM_ROWS, argc, argv, check_options, &o, "matmul",
                        "Matrix product by Cannon's ring.", comm_rank(), &status)) {
        status = run(&o);
    }
    comm_finalize();
    return status;
}
