// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Minimod: a proxy for seismic modelling. This main program is shared by DiOMP and MPI.
#include "common/comm.h"
#include "minimod/compute.h"
#include "minimod/minimod_model.h"
#include "minimod/minimod_options.h"
#include "minimod/minimod_run.h"
#include "minimod/steps.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Returns 1 on all ranks if any rank has failed, so that all exit together; the lowest failed rank
// prints its message. Collective.
static int any_failed(int failed, const char *message) {
    const int rank = comm_rank();
    const int reporting_rank = (int)-comm_max(failed ? -rank : -1e9);
    if (failed && rank == reporting_rank) {
        fprintf(stderr, "minimod: %s\n", message);
    }
    return reporting_rank < 1000000000;
}

// Returns the offsets of the ranks' parts in a gathered array of planes of `width` floats.
static size_t *plane_offsets(const grid *g, size_t width) {
    size_t *offsets = malloc(((size_t)g->ranks + 1) * sizeof *offsets);
    if (offsets == NULL) {
        comm_abort(1);
    }
    offsets[0] = 0;
    for (int r = 0; r < g->ranks; ++r) {
        const size_t planes = (size_t)grid_planes(g->nx, r, g->ranks);
        offsets[r + 1] = offsets[r] + planes * width * sizeof(float);
    }
    return offsets;
}

// Gathers the planes of all ranks on rank 0; returns NULL on the others. The caller frees the
// result.
static float *gather_planes(const grid *g, float *part, size_t width) {
    size_t *offsets = plane_offsets(g, width);
    float *whole = NULL;
    if (g->rank == 0) {
        whole = malloc(offsets[g->ranks]);
        if (whole == NULL) {
            fprintf(stderr, "minimod: no memory to gather the wavefield on rank 0\n");
            comm_abort(1);
        }
    }
    comm_gather(whole, part, offsets);
    free(offsets);
    return whole;
}

static float *gather_slice(const model *m, const minimod_options *o, float *field) {
    const grid *g = &m->part;
    const size_t nz = (size_t)g->nz;
    float *part = comm_alloc((size_t)g->max_nx * nz * sizeof(float));
    for (int x = 0; x < g->local_nx; ++x) {
        memcpy(part + (size_t)x * nz, grid_plane(g, field, x) + (size_t)o->source[1] * g->pitch,
               nz * sizeof(float));
    }
    float *slice = gather_planes(g, part, nz);
    comm_barrier(); // rank 0 has read every part
    comm_free(part);
    return slice;
}

static void report(const model *m, const minimod_options *o, const run_result *result,
                   uint64_t digest) {
    const grid *g = &m->part;
    const double seconds = comm_max(result->seconds);
    const double put = comm_max(result->put_seconds);
    const double wait = comm_max(result->wait_seconds);
    const double bandwidth = (double)comm_sum((uint64_t)result->bandwidth);
    if (g->rank != 0) {
        return;
    }
    const double points = (double)g->nx * g->ny * g->nz * o->steps;
    const double per_step = 1e6 / o->steps;
    printf("grid        %d x %d x %d, dx %g m, %d steps of %.4g s, Ricker %.3g Hz\n", g->nx, g->ny,
           g->nz, o->dx, o->steps, m->dt, m->frequency);
    char where[96];
    compute_where(where, sizeof where);
    printf("ranks       %d (%s), %s, overlap %s\n", g->ranks, comm_name(), where,
           o->overlap ? "on" : "off");
    printf("time        %.3f s, %.1f us per step\n", seconds, seconds * per_step);
    if (put < 0) {
        printf("exchange    in the target regions\n");
    } else {
        printf("exchange    %.1f us per step to send, %.1f us to wait (largest of all ranks)\n",
               put * per_step, wait * per_step);
    }
    printf("speed       %.3f Gpoints/s\n", points / seconds * 1e-9);
    // At least: two fields and the factor read, one field written.
    const double moved = 4 * sizeof(float) * points / seconds;
    printf("memory      %.1f GB/s by least traffic (16 bytes a point), %.2f of a %s there, %.1f "
           "GB/s\n",
           moved * 1e-9, moved / bandwidth, result->bandwidth_of, bandwidth * 1e-9);
    printf("checksum    %016llx\n", (unsigned long long)digest);
    fflush(stdout);
}

static int finish(const model *m, const minimod_options *o, run_result *result, double slowest,
                  double fastest) {
    char message[512] = "";
    int failed = 0;
    report(m, o, result, comm_sum(run_digest(m, result->field)));
    if (o->out != NULL) {
        float *slice = gather_slice(m, o, result->field);
        if (m->part.rank == 0) {
            failed = run_write(o, m, m->part.ranks, comm_name(), slice, result->seismogram, message,
                               sizeof message) != 0;
        }
        free(slice);
        if (any_failed(failed, message)) {
            return 1;
        }
    }
    if (o->check) {
        float *own = grid_plane(&m->part, result->field, 0);
        float *whole = gather_planes(&m->part, own, m->part.plane);
        if (m->part.rank == 0) {
            failed = !run_check(o, slowest, fastest, whole, result->seismogram);
            fflush(stdout);
        }
        free(whole);
        return any_failed(failed, "the check failed");
    }
    return 0;
}

static int run(const minimod_options *o) {
    char message[512] = "";
    model m;
    double slowest = INFINITY;
    double fastest = 0;
    if (!compute_choose(o->kernel)) {
        snprintf(message, sizeof message, "--kernel %s: this program has %s", o->kernel,
                 "auto and rows; with target regions also columns");
        any_failed(1, message);
        return 2;
    }
    if (!steps_choose(o, message, sizeof message)) {
        any_failed(1, message);
        return 2;
    }
    int failed = model_load(&m, o, comm_rank(), comm_ranks(), &slowest, &fastest, message,
                            sizeof message) != 0;
    if (any_failed(failed, message)) {
        return 2;
    }
    slowest = -comm_max(-slowest);
    fastest = comm_max(fastest);
    failed = model_complete(&m, o, slowest, fastest, message, sizeof message) != 0;
    if (any_failed(failed, message)) {
        return 2;
    }
    float *fields[2];
    for (int i = 0; i < 2; ++i) {
        fields[i] = comm_alloc(m.part.count * sizeof(float));
    }
    run_result result;
    run_steps(&m, o, fields, &result);
    const int status = finish(&m, o, &result, slowest, fastest);
    free(result.seismogram);
    for (int i = 0; i < 2; ++i) {
        comm_free(fields[i]);
    }
    model_free(&m);
    return status;
}

int main(int argc, char **argv) {
    comm_init(&argc, &argv);
    minimod_options options;
    char message[512];
    int status = 0;
    switch (minimod_read_options(&options, comm_ranks(), argc, argv, message, sizeof message)) {
    case MINIMOD_RUN:
        status = run(&options);
        break;
    case MINIMOD_HELP:
        if (comm_rank() == 0) {
            minimod_print_help();
        }
        break;
    case MINIMOD_BAD:
        any_failed(1, message);
        status = 2;
        break;
    }
    comm_finalize();
    return status;
}
