/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * The kernels of python/examples in C, with the same calls of DiOMP and the same loops, for
 * compare-kernels. Parallel Research Kernels nstream, transpose and stencil (Van der Wijngaart and
 * Mattson 2014).
 *
 *     kernels nstream|transpose|stencil SIZE ITERATIONS */
#include <diomp.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RADIUS = 2, TILE = 32 };
static const double scalar = 3.0;
static const double near = 1.0 / (2 * 1 * RADIUS), far = 1.0 / (2 * 2 * RADIUS);

static int me, num_ranks;
static size_t order, width;                /* width: rows of a rank */
static double *a, *b, *c, *block, *result; /* what each kernel uses of them */
static uint64_t *signals, num_steps;

static double *shared_array(size_t count) {
    return omp_calloc(count, sizeof(double), ompx_symmetric_mem_alloc);
}

static void fill(double *array, size_t count, double value) {
    for (size_t i = 0; i < count; ++i) {
        array[i] = value;
    }
}

static void start_nstream(void) {
    a = shared_array(order);
    b = shared_array(order);
    c = shared_array(order);
    fill(b, order, 2);
    fill(c, order, 2);
}

static void step_nstream(void) {
    for (size_t i = 0; i < order; ++i) {
        a[i] += b[i] + scalar * c[i];
    }
}

static int nstream_is_valid(int calls) {
    double const wanted = calls * (2 + scalar * 2);
    double error = 0;
    for (size_t i = 0; i < order; ++i) {
        error += a[i] > wanted ? a[i] - wanted : wanted - a[i];
    }
    return error <= 1e-8 * wanted * (double)order;
}

/* Row i of a rank's arrays is column `me * width + i` of the matrix. */
static void start_transpose(void) {
    a = shared_array(width * order);
    b = calloc(width * order, sizeof *b);
    block = malloc(width * width * sizeof *block);
    for (size_t i = 0; i < width; ++i) {
        for (size_t j = 0; j < order; ++j) {
            a[i * order + j] = (double)(((size_t)me * width + i) * order + j);
        }
    }
}

static void add_transposed(double *restrict to, const double *restrict from) {
    for (size_t first_row = 0; first_row < width; first_row += TILE) {
        for (size_t first_column = 0; first_column < width; first_column += TILE) {
            for (size_t i = first_row; i < first_row + TILE && i < width; ++i) {
                for (size_t j = first_column; j < first_column + TILE && j < width; ++j) {
                    to[i * order + j] += from[j * width + i];
                }
            }
        }
    }
}

static void step_transpose(void) {
    size_t const square[2] = {width, width}, own[2] = {width, order};
    size_t const zero[2] = {0, 0}, first[2] = {0, (size_t)me * width};
    ompx_barrier(); /* all ranks have changed their columns */
    for (int distance = 0; distance < num_ranks; ++distance) {
        int const peer = (me + distance) % num_ranks;
        ompx_get_rect(block, peer, a, sizeof(double), 2, square, zero, first, square, own);
        add_transposed(b + (size_t)peer * width, block);
    }
    ompx_barrier(); /* all ranks have read them */
    for (size_t i = 0; i < width * order; ++i) {
        a[i] += 1;
    }
}

static int transpose_is_valid(int calls) {
    double error = 0, sum = 0;
    for (size_t i = 0; i < width; ++i) {
        for (size_t j = 0; j < order; ++j) {
            double const first = (double)(j * order + (size_t)me * width + i);
            double const wanted = first * calls + (double)calls * (calls - 1) / 2;
            double const got = b[i * order + j];
            error += got > wanted ? got - wanted : wanted - got;
            sum += wanted;
        }
    }
    return error <= 1e-8 * sum;
}

/* A rank's rows with a halo of two rows on each side. */
static void start_stencil(void) {
    a = shared_array((width + 2 * RADIUS) * order);
    signals = omp_calloc(2, sizeof *signals, ompx_symmetric_mem_alloc);
    result = calloc((width + 2 * RADIUS) * order, sizeof *result);
    for (size_t i = 0; i < width; ++i) {
        for (size_t j = 0; j < order; ++j) {
            a[(i + RADIUS) * order + j] = (double)((size_t)me * width + i + j);
        }
    }
}

static void find_interior(size_t *begin, size_t *end) {
    size_t const first = (size_t)me * width;
    *begin = (first > RADIUS ? first : RADIUS) - first + RADIUS;
    *end = (first + width < order - RADIUS ? first + width : order - RADIUS) - first + RADIUS;
}

static void add_star(const double *restrict points, double *restrict to) {
    size_t begin, end;
    find_interior(&begin, &end);
    for (size_t i = begin; i < end; ++i) {
        const double *const p = points + i * order;
        for (size_t j = RADIUS; j < order - RADIUS; ++j) {
            to[i * order + j] += near * (p[j + order] - p[j - order] + p[j + 1] - p[j - 1]) +
                                 far * (p[j + 2 * order] - p[j - 2 * order] + p[j + 2] - p[j - 2]);
        }
    }
}

static void step_stencil(void) {
    size_t const halo = RADIUS * order * sizeof(double);
    double *const inner = a + RADIUS * order;
    ++num_steps;
    if (me > 0) {
        ompx_put_signal(me - 1, inner + width * order, inner, halo, &signals[1], num_steps,
                        OMPX_SIGNAL_SET);
    }
    if (me + 1 < num_ranks) {
        ompx_put_signal(me + 1, a, a + width * order, halo, &signals[0], num_steps,
                        OMPX_SIGNAL_SET);
    }
    if (me > 0) {
        ompx_signal_wait(&signals[0], OMPX_CMP_GE, num_steps);
    }
    if (me + 1 < num_ranks) {
        ompx_signal_wait(&signals[1], OMPX_CMP_GE, num_steps);
    }
    add_star(a, result);
    ompx_barrier(); /* all ranks have read their halos */
    for (size_t i = 0; i < width * order; ++i) {
        inner[i] += 1;
    }
}

static int stencil_is_valid(int calls) {
    size_t begin, end;
    find_interior(&begin, &end);
    for (size_t i = begin; i < end; ++i) {
        for (size_t j = RADIUS; j < order - RADIUS; ++j) {
            double const error = result[i * order + j] - 2.0 * calls;
            if (error > 1e-5 * calls || error < -1e-5 * calls) {
                return 0;
            }
        }
    }
    return 1;
}

struct kernel {
    const char *name;
    void (*start)(void);
    void (*step)(void);
    int (*is_valid)(int calls);
};

static const struct kernel kernels[] = {
    {"nstream", start_nstream, step_nstream, nstream_is_valid},
    {"transpose", start_transpose, step_transpose, transpose_is_valid},
    {"stencil", start_stencil, step_stencil, stencil_is_valid},
};

int main(int argc, char **argv) {
    const struct kernel *chosen = NULL;
    for (size_t i = 0; argc == 4 && i < sizeof kernels / sizeof *kernels; ++i) {
        if (strcmp(argv[1], kernels[i].name) == 0) {
            chosen = &kernels[i];
        }
    }
    me = ompx_rank_num();
    num_ranks = ompx_num_ranks();
    int const iterations = argc == 4 ? atoi(argv[3]) : 0;
    order = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
    width = order / (size_t)num_ranks;
    if (chosen == NULL || iterations < 1 || width < 2 * RADIUS) {
        fprintf(stderr, "usage: kernels nstream|transpose|stencil SIZE ITERATIONS\n");
        return 1;
    }
    chosen->start();
    ompx_barrier();
    chosen->step();
    ompx_barrier();
    double const begin = omp_get_wtime();
    for (int i = 0; i < iterations; ++i) {
        chosen->step();
    }
    ompx_barrier();
    double seconds = (omp_get_wtime() - begin) / iterations;
    ompx_allreduce(&seconds, &seconds, 1, OMPX_DOUBLE, OMPX_MAX, ompx_group_world);
    int valid = chosen->is_valid(iterations + 1);
    ompx_allreduce(&valid, &valid, 1, OMPX_INT32, OMPX_MIN, ompx_group_world);
    if (me == 0) {
        printf("%s: %s, %.3f ms per iteration\n", chosen->name,
               valid ? "solution validates" : "the solution is wrong", seconds * 1e3);
    }
    return valid ? 0 : 1;
}
