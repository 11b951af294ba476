// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Conjugate gradient for Poisson's equation, split along X. All ranks synchronise three times per
// iteration, for two sums and the exchange of planes, or twice with --single-reduction. This main
// program is shared by DiOMP and MPI.
#include "cg/cg_compute.h"
#include "cg/exchange.h"
#include "common/clock.h"
#include "common/comm.h"
#include "common/device.h"
#include "common/options.h"
#include "common/progress.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>

typedef struct cg_options {
    int size[3];
    int iterations;
    double tolerance;
    int single_reduction;
    int progress;
} cg_options;

// Norms are those of vectors over all ranks.
typedef struct cg_result {
    int iterations;
    double seconds, plane_seconds, sum_seconds;
    double right_hand_side;
    double recurred; // residual by the recurrence
    double residual; // b - A x, recomputed
    double error;    // x - known solution
    double solution;
} cg_result;

static double timed_sum(const slab *s, double *sum, cg_result *result) {
    const double start = seconds_now();
    const double total = exchange_sum(s, sum);
    result->sum_seconds += seconds_now() - start;
    return total;
}

static void timed_planes(const slab *s, double *vector, cg_result *result) {
    const double start = seconds_now();
    exchange_planes(s, vector);
    result->plane_seconds += seconds_now() - start;
}

static int goes_on(const cg_options *o, const cg_result *result) {
    return result->recurred > o->tolerance * result->right_hand_side &&
           result->iterations < o->iterations;
}

static void loop(const slab *s, const cg_vectors *v, const cg_options *o, cg_result *result,
                 progress *bar) {
    while (goes_on(o, result)) {
        cg_apply(s, v);
        timed_sum(s, &cg_curvature, result);
        cg_step(s, v);
        result->recurred = sqrt(timed_sum(s, &cg_residual, result));
        cg_next_direction(s, v);
        timed_planes(s, v->p, result);
        progress_update(bar, ++result->iterations);
    }
}

// Both sums over all ranks.
static void timed_pair(double sums[2], cg_result *result) {
    cg_read_sums(sums);
    const double start = seconds_now();
    exchange_pair(sums);
    result->sum_seconds += seconds_now() - start;
}

static void loop_single_reduction(const slab *s, const cg_vectors *v, const cg_options *o,
                                  cg_result *result, progress *bar) {
    double keep = 0;   // beta
    double length = 0; // alpha
    double last = 0;   // r . r before
    double sums[2];
    cg_advance(s, v, keep, length); // nothing but p = r and zero sums
    cg_apply_residual(s, v);
    timed_pair(sums, result);
    length = sums[0] / sums[1];
    while (goes_on(o, result)) {
        cg_advance(s, v, keep, length);
        timed_planes(s, v->r, result);
        cg_apply_residual(s, v);
        last = sums[0];
        timed_pair(sums, result);
        result->recurred = sqrt(sums[0]);
        keep = sums[0] / last;
        length = sums[0] / (sums[1] - keep * sums[0] / length);
        progress_update(bar, ++result->iterations);
    }
}

static void iterate(const slab *s, const cg_vectors *v, const cg_options *o, cg_result *result) {
    progress bar;
    progress_start(&bar, comm_name(), o->iterations, s->rank == 0 ? o->progress : 0, 1,
                   "iterations/s");
    cg_begin(s, v);
    result->right_hand_side = result->recurred = sqrt(exchange_sum(s, &cg_residual));
    exchange_planes(s, o->single_reduction ? v->r : v->p);
    comm_barrier();
    const double start = seconds_now();
    (o->single_reduction ? loop_single_reduction : loop)(s, v, o, result, &bar);
    result->seconds = seconds_now() - start;
    bar.total = result->iterations; // it may have ended early
    progress_finish(&bar);
}

// Recomputes the residual and the error from the solution.
static void measure(const slab *s, const cg_vectors *v, cg_result *result) {
    exchange_sum(s, &cg_curvature); // all have used the planes that are replaced next
    cg_take_solution(s, v);
    exchange_planes(s, v->p);
    cg_apply(s, v);
    cg_compare(s, v);
    result->residual = sqrt(exchange_sum(s, &cg_residual));
    result->error = sqrt(exchange_sum(s, &cg_curvature));
    cg_measure(s, v);
    result->solution = sqrt(exchange_sum(s, &cg_residual));
}

// The error is the inverse operator applied to the residual, so its norm is at most that of the
// residual over the smallest eigenvalue, after any number of iterations. An operator that differs
// from the one that made b, for instance by a plane not exchanged, violates this.
static double error_bound(const slab *s, double residual) {
    const double half_pi = acos(0);
    const int size[] = {s->nx, s->ny, s->nz};
    double smallest = 0;
    for (int d = 0; d < 3; ++d) {
        smallest += 4 * pow(sin(half_pi / (size[d] + 1)), 2);
    }
    return residual / smallest;
}

static int check(const slab *s, const cg_result *result) {
    // Rounding errors of numbers near 1, summed 7 at a time, once per iteration.
    const double rounding = 1e-14 * (1 + result->iterations) * result->right_hand_side;
    const double bound = error_bound(s, result->residual + rounding);
    const int right = fabs(result->residual - result->recurred) <= rounding;
    const int near = result->error <= bound;
    if (s->rank == 0) {
        printf("check       %s: residual %s the recurrence's, error %.3e %s the bound of %.3e\n",
               right && near ? "passed" : "FAILED", right ? "equals" : "DIFFERS FROM",
               result->error, near ? "within" : "ABOVE", bound);
    }
    return right && near;
}

static void report(const slab *s, const cg_options *o, const cg_result *result) {
    const double seconds = comm_max(result->seconds);
    const double planes = comm_max(result->plane_seconds);
    const double sums = comm_max(result->sum_seconds);
    const double both = comm_max(result->plane_seconds + result->sum_seconds);
    if (s->rank != 0) {
        return;
    }
    const int iterations = result->iterations;
    const double each = iterations > 0 ? 1e6 / iterations : 0;
    char where[64];
    device_describe(where, sizeof where);
    printf("grid        %d x %d x %d, tolerance %g\n", s->nx, s->ny, s->nz, o->tolerance);
    printf("ranks       %d (%s), %s\n", s->ranks, comm_name(), where);
    printf("method      conjugate gradient with %s per iteration\n",
           o->single_reduction ? "a single reduction" : "two reductions");
    printf("time        %.4f s, %.1f us per iteration\n", seconds, seconds * each);
    printf("speed       %.1f iterations/s\n", seconds > 0 ? iterations / seconds : 0);
    printf("exchange    %.1f %% of the time: per iteration %.1f us for planes, %.1f us for sums "
           "(largest of all ranks, waiting included)\n",
           seconds > 0 ? 100 * both / seconds : 0, planes * each, sums * each);
    printf("iterations  %d, %s\n", iterations,
           result->recurred <= o->tolerance * result->right_hand_side ? "converged"
                                                                      : "NOT converged");
    printf("residual    %.6e of the right-hand side's norm\n",
           result->residual / result->right_hand_side);
    printf("solution    %.15e, its norm\n", result->solution);
}

static int run(const cg_options *o) {
    const slab s = slab_split(o->size, comm_rank(), comm_ranks(), omp_get_default_device());
    cg_vectors v;
    cg_result result = {0};
    cg_enter(&s, &v, o->single_reduction);
    iterate(&s, &v, o, &result);
    measure(&s, &v, &result);
    report(&s, o, &result);
    const int passed = check(&s, &result);
    fflush(stdout);
    cg_leave(&s, &v);
    return passed ? 0 : 1;
}

static int check_options(const void *options, char *message, size_t message_size) {
    const cg_options *const o = options;
    for (int d = 0; d < 3; ++d) {
        if (o->size[d] < 1 || o->size[d] > 10000) {
            snprintf(message, message_size, "--size: %d must be between 1 and 10000", o->size[d]);
            return 0;
        }
    }
    if (o->size[0] < comm_ranks()) {
        snprintf(message, message_size,
                 "--size: nx = %d must be at least the number of ranks (%d), each needs a plane",
                 o->size[0], comm_ranks());
        return 0;
    }
    if (o->iterations < 1) {
        snprintf(message, message_size, "--iterations must be at least 1");
        return 0;
    }
    return 1;
}

int main(int argc, char **argv) {
    comm_init(&argc, &argv);
    cg_options o = {.size = {96, 96, 96}, .iterations = 1000, .tolerance = 1e-8, .progress = -1};
    const option_row rows[] = {
        {"--size", OPTION_INT, 3, 1, o.size, "NX NY NZ", "inner points (one number: a cube) [96]"},
        {"--iterations", OPTION_INT, 1, 0, &o.iterations, "N", "at most [1000]"},
        {"--tolerance", OPTION_REAL, 1, 0, &o.tolerance, "T",
         "of the residual, relative to the right-hand side [1e-8]"},
        {"--single-reduction", OPTION_FLAG, 1, 0, &o.single_reduction, "",
         "one sum over the ranks per iteration, not two"},
        {"--progress", OPTION_AUTO, 1, 0, &o.progress, "on|off|auto", "progress bar [auto]"},
    };
    enum { NUM_ROWS = sizeof rows / sizeof rows[0] };
    int status = 0;
    if (!options_handle(rows, NUM_ROWS, argc, argv, check_options, &o, "cg",
                        "Poisson's equation by conjugate gradient.", comm_rank(), &status)) {
        status = run(&o);
    }
    comm_finalize();
    return status;
}
