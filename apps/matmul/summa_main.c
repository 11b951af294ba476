// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// C = A * B by SUMMA (van de Geijn and Watts, 1997) on a grid of ranks: each holds a block of rows
// and columns of A, B and C. For one panel of A's columns and B's rows after the other, their
// owners pass them to the ranks of their grid row and column, and all multiply. A rank receives
// n^2 / rows + n^2 / columns values (of the grid), where the ring passes n^2 through each rank.
#include "common/clock.h"
#include "common/comm.h"
#include "common/options.h"
#include "matmul/matmul_check.h"
#include "matmul/matmul_kernel.h"
#include "matmul/matmul_product.h"
#include "matmul/matmul_values.h"
#include "matmul/panels.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct summa_options {
    int n;
    int grid[2]; // rows and columns of ranks; 0: as square as the ranks permit
    int panel;
    int repeat;
    int overlap;
    const char *blas;
} summa_options;

// A range of the whole matrix' rows or columns.
typedef struct range {
    size_t first, count;
} range;

typedef struct panel_place {
    range columns; // of A, and rows of B
    int a_owner;   // grid column
    int b_owner;   // grid row
} panel_place;

typedef struct problem {
    size_t n;
    int grid[2];
    int row, column;         // of this rank in the grid
    range rows, columns;     // of C
    range a_columns, b_rows; // of the own blocks
    double *a, *b, *c;       // own blocks
    double *a_panel[2], *b_panel[2];
    panel_place *places;
    size_t num_places;
} problem;

// Seconds, largest of all ranks, best repetition.
typedef struct summa_times {
    double total;
    double exposed;  // of total: in starting the bcasts and waiting for them
    double products; // alone
} summa_times;

static range part(size_t n, int number, int parts) {
    const size_t first = part_first(n, number, parts);
    return (range){first, part_first(n, number + 1, parts) - first};
}

// The part that index k lies in.
static int owner_of(size_t n, size_t k, int parts) {
    int owner = 0;
    while (part_first(n, owner + 1, parts) <= k) {
        ++owner;
    }
    return owner;
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

static void *allocate(size_t bytes) {
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (memory == NULL) {
        fprintf(stderr, "summa: no memory for %zu bytes\n", bytes);
        comm_abort(1);
    }
    return memory;
}

// Each panel has one owner in A and one in B.
static void place_panels(problem *p, size_t widest) {
    p->places = allocate(p->n * sizeof *p->places);
    for (size_t k = 0; k < p->n;) {
        panel_place *const next = &p->places[p->num_places++];
        next->a_owner = owner_of(p->n, k, p->grid[1]);
        next->b_owner = owner_of(p->n, k, p->grid[0]);
        const size_t end = smaller(part_first(p->n, next->a_owner + 1, p->grid[1]),
                                   part_first(p->n, next->b_owner + 1, p->grid[0]));
        next->columns = (range){k, smaller(widest, end - k)};
        k += next->columns.count;
    }
}

static problem open_problem(const summa_options *o, const int grid[2]) {
    problem p = {.n = (size_t)o->n, .grid = {grid[0], grid[1]}};
    p.row = comm_rank() / grid[1];
    p.column = comm_rank() % grid[1];
    p.rows = p.b_rows = part(p.n, p.row, grid[0]);
    p.columns = p.a_columns = part(p.n, p.column, grid[1]);
    p.a = allocate(p.rows.count * p.a_columns.count * sizeof(double));
    p.b = allocate(p.b_rows.count * p.columns.count * sizeof(double));
    p.c = allocate(p.rows.count * p.columns.count * sizeof(double));
    const size_t widest = smaller((size_t)o->panel, p.n);
    for (int i = 0; i < 2; ++i) {
        p.a_panel[i] = comm_alloc(part(p.n, 0, grid[0]).count * widest * sizeof(double));
        p.b_panel[i] = comm_alloc(part(p.n, 0, grid[1]).count * widest * sizeof(double));
    }
    place_panels(&p, widest);
    for (size_t i = 0; i < p.rows.count; ++i) {
        for (size_t k = 0; k < p.a_columns.count; ++k) {
            p.a[i * p.a_columns.count + k] = a_value(p.rows.first + i, p.a_columns.first + k);
        }
    }
    for (size_t k = 0; k < p.b_rows.count; ++k) {
        for (size_t j = 0; j < p.columns.count; ++j) {
            p.b[k * p.columns.count + j] = b_value(p.b_rows.first + k, p.columns.first + j);
        }
    }
    return p;
}

static void close_problem(problem *p) {
    for (int i = 0; i < 2; ++i) {
        comm_free(p->a_panel[i]);
        comm_free(p->b_panel[i]);
    }
    free(p->places);
    free(p->c);
    free(p->b);
    free(p->a);
}

// Copies the own parts of a panel into its slot, and starts to pass them on.
static void start(problem *p, size_t number) {
    const panel_place *const at = &p->places[number];
    const int slot = (int)(number % 2);
    const size_t width = at->columns.count;
    if (p->column == at->a_owner) {
        for (size_t i = 0; i < p->rows.count; ++i) {
            memcpy(p->a_panel[slot] + i * width,
                   p->a + i * p->a_columns.count + (at->columns.first - p->a_columns.first),
                   width * sizeof(double));
        }
    }
    if (p->row == at->b_owner) {
        memcpy(p->b_panel[slot], p->b + (at->columns.first - p->b_rows.first) * p->columns.count,
               width * p->columns.count * sizeof(double));
    }
    const panel a = {p->a_panel[slot], p->rows.count * width * sizeof(double), at->a_owner};
    const panel b = {p->b_panel[slot], p->columns.count * width * sizeof(double), at->b_owner};
    panels_start(slot, &a, &b);
}

static void multiply(problem *p, size_t number, int moving) {
    const int slot = (int)(number % 2);
    const size_t width = p->places[number].columns.count;
    product_add(p->c, p->a_panel[slot], p->b_panel[slot], p->rows.count, p->columns.count, width,
                width, moving ? panels_progress : NULL);
}

// Returns the seconds in starting the bcasts and waiting for them.
static double product(problem *p, int overlap) {
    double exposed = 0;
    for (size_t i = 0; i < p->num_places; ++i) {
        const double begin = seconds_now();
        if (i == 0 || !overlap) {
            start(p, i);
        }
        panels_finish((int)(i % 2));
        const int has_next = overlap && i + 1 < p->num_places;
        if (has_next) {
            start(p, i + 1);
        }
        exposed += seconds_now() - begin;
        multiply(p, i, has_next);
    }
    return exposed;
}

static void clear(problem *p) {
    memset(p->c, 0, p->rows.count * p->columns.count * sizeof(double));
}

static summa_times measure(problem *p, const summa_options *o) {
    summa_times best = {.total = 1e300, .products = 1e300};
    for (int r = 0; r < o->repeat; ++r) {
        // On whatever the panels hold.
        comm_barrier();
        double begin = seconds_now();
        for (size_t i = 0; i < p->num_places; ++i) {
            multiply(p, i, 0);
        }
        const double alone = comm_max(seconds_now() - begin);
        best.products = alone < best.products ? alone : best.products;
        clear(p);
        comm_barrier();
        begin = seconds_now();
        const double exposed = product(p, o->overlap);
        const double seconds = comm_max(seconds_now() - begin);
        const double most = comm_max(exposed);
        if (seconds < best.total) {
            best.total = seconds;
            best.exposed = most;
        }
    }
    return best;
}

static void report(const problem *p, const summa_options *o, const summa_times *t) {
    const double flops = 2 * (double)p->n * (double)p->n * (double)p->n;
    char where[64];
    matmul_where(where, sizeof where);
    printf("matrix      %d x %d, doubles, %zu panels of up to %d\n", o->n, o->n, p->num_places,
           o->panel);
    printf("ranks       %d x %d (%s), %s, overlap %s\n", p->grid[0], p->grid[1], comm_name(), where,
           o->overlap ? "on" : "off");
    printf("product     %s\n", product_name());
    printf("time        %.4f s (best of %d), %.4f s of it in starting and waiting for the bcasts\n",
           t->total, o->repeat, t->exposed);
    printf("speed       %.2f GFLOP/s, %.3f of the products alone (%.2f)\n", flops / t->total * 1e-9,
           t->products / t->total, flops / t->products * 1e-9);
}

static int run(const summa_options *o, const int grid[2]) {
    problem p = open_problem(o, grid);
    if (!check_open("summa", o->blas, p.a)) {
        close_problem(&p);
        return 2;
    }
    panels_init(p.row, p.column);
    const summa_times times = measure(&p, o);
    if (comm_rank() == 0) {
        report(&p, o, &times);
    }
    const block own = {.n = p.n,
                       .first_row = p.rows.first,
                       .rows = p.rows.count,
                       .first_column = p.columns.first,
                       .columns = p.columns.count,
                       .values = p.c};
    const int passed = check_blocks("summa", &own);
    panels_free();
    product_close();
    comm_barrier();
    close_problem(&p);
    return !passed;
}

// As square as the ranks permit, with more columns than rows.
static void choose_grid(const summa_options *o, int ranks, int grid[2]) {
    memcpy(grid, o->grid, 2 * sizeof(int));
    if (grid[0] == 0) {
        for (int rows = 1; rows * rows <= ranks; ++rows) {
            if (ranks % rows == 0) {
                grid[0] = rows;
            }
        }
        grid[1] = ranks / grid[0];
    }
}

static int check_options(const void *options, char *message, size_t message_size) {
    const summa_options *const o = options;
    const int ranks = comm_ranks();
    if ((o->grid[0] != 0 || o->grid[1] != 0) && (long)o->grid[0] * o->grid[1] != ranks) {
        snprintf(message, message_size, "--grid %d %d: the product must be the number of ranks, %d",
                 o->grid[0], o->grid[1], ranks);
        return 0;
    }
    if (o->n < ranks || o->n > 100000 || o->repeat < 1 || o->panel < 1) {
        snprintf(message, message_size,
                 "--n %d, --repeat %d, --panel %d: n must be between the number of ranks (%d) and "
                 "100000, the others at least 1",
                 o->n, o->repeat, o->panel, ranks);
        return 0;
    }
    return 1;
}

int main(int argc, char **argv) {
    comm_init(&argc, &argv);
    summa_options o = {.n = 1024, .panel = 256, .repeat = 3, .overlap = 1, .blas = "auto"};
    const option_row rows[] = {
        {"--n", OPTION_INT, 1, 0, &o.n, "N", "rows and columns [1024]"},
        {"--grid", OPTION_INT, 2, 0, o.grid, "ROWS COLUMNS",
         "of ranks [as square as their number permits]"},
        {"--panel", OPTION_INT, 1, 0, &o.panel, "N", "most columns of a panel [256]"},
        {"--repeat", OPTION_INT, 1, 0, &o.repeat, "N", "products; the best time counts [3]"},
        {"--overlap", OPTION_SWITCH, 1, 0, &o.overlap, "on|off",
         "pass panels on while computing with the ones before [on]"},
        {"--blas", OPTION_TEXT, 1, 0, &o.blas, "auto|off|FILE",
         "library of the products; off: own kernel [auto]"},
    };
    enum { NUM_ROWS = sizeof rows / sizeof rows[0] };
    int status = 0;
    if (!options_handle(rows, NUM_ROWS, argc, argv, check_options, &o, "summa",
                        "Matrix product by SUMMA on a grid of ranks.", comm_rank(), &status)) {
        int grid[2];
        choose_grid(&o, comm_ranks(), grid);
        status = run(&o, grid);
    }
    comm_finalize();
    return status;
}
