// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// C = A * B by Cannon's ring. Rank r holds rows of A, B and C (a stripe). In step s it multiplies
// the columns of its A that belong to stripe (r + s) mod ranks with that stripe of B, which it has
// just received from rank r + 1, while it sends it to rank r - 1.
#include "common/clock.h"
#include "common/comm.h"
#include "common/options.h"
#include "common/progress.h"
#include "matmul/matmul_check.h"
#include "matmul/matmul_kernel.h"
#include "matmul/matmul_product.h"
#include "matmul/matmul_values.h"
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
    double *exposed; // [shift]: seconds in starting and waiting, of the best repetition in the end
} problem;

// Seconds, largest of all ranks, best repetition.
typedef struct matmul_times {
    double total;
    double exposed;        // of total: in starting and waiting for the shifts
    double data;           // of exposed: without the waiting for slower ranks
    double product, shift; // products and shifts alone; 0 if they were not measured
} matmul_times;

typedef struct matmul_options {
    int n;
    int repeat;
    int overlap;
    int alone;
    int progress;
    const char *blas;
} matmul_options;

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

static void multiply(problem *p, double *b, size_t first, size_t depth, int moving) {
    product_add(p->c, p->a + first, b, p->rows, p->n, depth, p->n, moving ? ring_progress : NULL);
}

// The rows of B in the stripe of step s; returns their number.
static size_t stripe_of_step(const problem *p, int s, size_t *first) {
    const int owner = (p->rank + s) % p->ranks;
    *first = part_first(p->n, owner, p->ranks);
    return part_first(p->n, owner + 1, p->ranks) - *first;
}

static void product(problem *p, int overlap) {
    const size_t row_bytes = p->n * sizeof(double);
    for (int s = 0; s < p->ranks; ++s) {
        size_t first = 0;
        const size_t depth = stripe_of_step(p, s, &first);
        double *const stripe = p->stripe[s % 2];
        double *const spare = p->stripe[(s + 1) % 2];
        const int last = s + 1 == p->ranks;
        if (!overlap || last) {
            multiply(p, stripe, first, depth, 0);
        }
        if (!last) {
            const double begin = seconds_now();
            ring_start(spare, stripe, depth * row_bytes, p->max_rows * row_bytes);
            const double started = seconds_now();
            if (overlap) {
                multiply(p, stripe, first, depth, 1);
            }
            const double computed = seconds_now();
            ring_finish();
            p->exposed[s] = started - begin + seconds_now() - computed;
        }
    }
}

// The products of a repetition without shifts, one call each.
static double products_alone(problem *p) {
    comm_barrier();
    const double begin = seconds_now();
    for (int s = 0; s < p->ranks; ++s) {
        size_t first = 0;
        const size_t depth = stripe_of_step(p, s, &first);
        multiply(p, p->stripe[0], first, depth, 0);
    }
    return comm_max(seconds_now() - begin);
}

// The shifts of a repetition without products.
static double shifts_alone(problem *p) {
    const size_t row_bytes = p->n * sizeof(double);
    comm_barrier();
    const double begin = seconds_now();
    for (int s = 0; s + 1 < p->ranks; ++s) {
        size_t first = 0;
        const size_t depth = stripe_of_step(p, s, &first);
        ring_start(p->stripe[(s + 1) % 2], p->stripe[s % 2], depth * row_bytes,
                   p->max_rows * row_bytes);
        ring_finish();
    }
    return comm_max(seconds_now() - begin);
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
    p.first = part_first(n, p.rank, p.ranks);
    p.rows = part_first(n, p.rank + 1, p.ranks) - p.first;
    p.max_rows = (n + (size_t)p.ranks - 1) / (size_t)p.ranks;
    p.a = allocate(p.rows * n * sizeof(double));
    p.c = allocate(p.rows * n * sizeof(double));
    p.exposed = allocate((size_t)p.ranks * sizeof(double));
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
    free(p->exposed);
    free(p->a);
    free(p->c);
}

static void measure_alone(problem *p, matmul_times *best) {
    const double product = products_alone(p);
    const double shift = shifts_alone(p);
    best->product = best->product == 0 || product < best->product ? product : best->product;
    best->shift = best->shift == 0 || shift < best->shift ? shift : best->shift;
}

// The last rank to arrive at the end of a shift waits for data only, so the least of all ranks is
// what a shift costs by itself; the rest is waiting for slower ranks.
static void sum_exposed(const problem *p, matmul_times *times) {
    double own = 0;
    times->data = 0;
    for (int s = 0; s + 1 < p->ranks; ++s) {
        own += p->exposed[s];
        times->data -= comm_max(-p->exposed[s]);
    }
    times->exposed = comm_max(own);
}

static matmul_times measure(problem *p, const matmul_options *o) {
    matmul_times best = {.total = 1e300};
    progress bar;
    progress_start(&bar, comm_name(), o->repeat, p->rank == 0 ? o->progress : 0,
                   2e-9 * (double)p->n * (double)p->n * (double)p->n, "GFLOP/s");
    fill(p);
    for (int r = 0; r < o->repeat; ++r) {
        if (o->alone) {
            measure_alone(p, &best);
        }
        if (r > 0 || o->alone) {
            fill(p);
        }
        comm_barrier();
        const double start = seconds_now();
        product(p, o->overlap);
        const double seconds = comm_max(seconds_now() - start);
        if (seconds < best.total) {
            best.total = seconds;
            sum_exposed(p, &best);
        }
        progress_update(&bar, r + 1);
    }
    progress_finish(&bar);
    matmul_unload(p->c, p->rows * p->n);
    return best;
}

static void report_times(const problem *p, const matmul_options *o, const matmul_times *t) {
    const double flops = 2 * (double)p->n * (double)p->n * (double)p->n;
    printf("time        %.4f s (best of %d), %.4f s of it in starting and waiting for the shift\n",
           t->total, o->repeat, t->exposed);
    printf("speed       %.2f GFLOP/s", flops / t->total * 1e-9);
    if (o->alone) {
        printf(", %.3f of the products alone (%.2f)", t->product / t->total,
               flops / t->product * 1e-9);
    }
    printf("\n");
    if (p->ranks > 1) {
        printf("shift       %.6f s beside the products", t->data);
        if (o->alone) {
            printf(", %.6f s alone: %.1f %% hidden", t->shift,
                   t->data < t->shift ? 100 * (1 - t->data / t->shift) : 0);
        }
        printf("; waiting for slower ranks: %.6f s\n", t->exposed - t->data);
    }
}

static int run(const matmul_options *o) {
    problem p = open_problem((size_t)o->n);
    if (!check_open("matmul", o->blas, p.a)) {
        close_problem(&p);
        return 2;
    }
    const matmul_times times = measure(&p, o);
    const uint64_t with_library = comm_sum((uint64_t)product_by_blas());
    if (p.rank == 0) {
        char where[64];
        matmul_where(where, sizeof where);
        printf("matrix      %d x %d, doubles\n", o->n, o->n);
        printf("ranks       %d (%s), %s, overlap %s\n", p.ranks, comm_name(), where,
               o->overlap ? "on" : "off");
        printf("product     %s (a library on %llu of %d ranks)\n", product_name(),
               (unsigned long long)with_library, p.ranks);
        report_times(&p, o, &times);
    }
    const block own = {.n = p.n,
                       .first_row = p.first,
                       .rows = p.rows,
                       .first_column = 0,
                       .columns = p.n,
                       .values = p.c};
    const int passed = check_blocks("matmul", &own);
    product_close();
    close_problem(&p);
    return !passed;
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
    matmul_options o = {
        .n = 1024, .repeat = 3, .overlap = 1, .alone = 1, .progress = -1, .blas = "auto"};
    const option_row rows[] = {
        {"--n", OPTION_INT, 1, 0, &o.n, "N", "rows and columns [1024]"},
        {"--repeat", OPTION_INT, 1, 0, &o.repeat, "N", "products; the best time counts [3]"},
        {"--overlap", OPTION_SWITCH, 1, 0, &o.overlap, "on|off",
         "pass stripes on while computing with them [on]"},
        {"--blas", OPTION_TEXT, 1, 0, &o.blas, "auto|off|FILE",
         "library of the products; off: own kernel [auto]"},
        {"--alone", OPTION_SWITCH, 1, 0, &o.alone, "on|off",
         "also measure products and shifts alone [on]"},
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
