// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Minimod where one process drives all devices, in plain OpenMP.
#include "common/clock.h"
#include "common/progress.h"
#include "minimod/minimod_run.h"
#include "minimod/slabs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void fail(int status, const char *message) {
    fprintf(stderr, "minimod: %s\n", message);
    exit(status);
}

static void *allocate(size_t bytes) {
    void *const memory = calloc(bytes, 1);
    if (memory == NULL) {
        fail(1, "no memory on the host");
    }
    return memory;
}

// Removes --devices from the arguments and returns its value; the other options are those of all
// variants of Minimod.
static const char *take_devices(int *argc, char **argv) {
    for (int i = 1; i + 1 < *argc; ++i) {
        if (strcmp(argv[i], "--devices") == 0) {
            const char *text = argv[i + 1];
            memmove(&argv[i], &argv[i + 2], (size_t)(*argc - i - 1) * sizeof *argv);
            *argc -= 2;
            return text;
        }
    }
    return NULL;
}

static void load(slab *slabs, const device_range *range, const minimod_options *o, double *slowest,
                 double *fastest) {
    char message[512];
    for (int d = 0; d < range->count; ++d) {
        double min_velocity = 0;
        double max_velocity = 0;
        slabs[d].device = range->first + d;
        if (model_load(&slabs[d].model, o, d, range->count, &min_velocity, &max_velocity, message,
                       sizeof message) != 0) {
            fail(2, message);
        }
        *slowest = fmin(*slowest, min_velocity);
        *fastest = fmax(*fastest, max_velocity);
    }
    for (int d = 0; d < range->count; ++d) {
        if (model_complete(&slabs[d].model, o, *slowest, *fastest, message, sizeof message) != 0) {
            fail(2, message);
        }
    }
}

static void draw(void *bar, int steps) { progress_update(bar, steps); }

static double run_steps_timed(slab *slabs, int count, const minimod_options *o,
                              slab_traffic *bytes) {
    progress bar;
    progress_start(&bar, "OpenMP", o->steps, o->progress,
                   1e-9 * o->grid[0] * o->grid[1] * o->grid[2], "Gpoints/s");
    const double start = seconds_now();
    slabs_run(slabs, count, o->steps, draw, &bar, bytes);
    const double seconds = seconds_now() - start;
    progress_finish(&bar);
    return seconds;
}

static void report(const slab *slabs, const device_range *range, const minimod_options *o,
                   double seconds, uint64_t digest) {
    const model *m = &slabs[0].model;
    const grid *g = &m->part;
    const double points = (double)g->nx * g->ny * g->nz * o->steps;
    printf("grid        %d x %d x %d, dx %g m, %d steps of %.4g s, Ricker %.3g Hz\n", g->nx, g->ny,
           g->nz, o->dx, o->steps, m->dt, m->frequency);
    printf("devices     %d to %d (OpenMP), driven by one process\n", range->first,
           range->first + range->count - 1);
    printf("time        %.3f s, %.1f us per step\n", seconds, seconds * 1e6 / o->steps);
    printf("speed       %.3f Gpoints/s\n", points / seconds * 1e-9);
    printf("checksum    %016llx\n", (unsigned long long)digest);
}

// Returns the slice through the source, for run_write.
static float *cut_slice(const grid *g, const minimod_options *o, const float *whole) {
    const size_t nz = (size_t)g->nz;
    float *const slice = allocate((size_t)g->nx * nz * sizeof(float));
    for (size_t x = 0; x < (size_t)g->nx; ++x) {
        memcpy(slice + x * nz, whole + x * g->plane + (size_t)o->source[1] * g->pitch,
               nz * sizeof(float));
    }
    return slice;
}

static int finish(slab *slabs, int count, const minimod_options *o, double slowest, double fastest,
                  slab_traffic *bytes) {
    const model *m = &slabs[0].model;
    const grid *g = &m->part;
    float *const seismogram = allocate((size_t)o->steps * (size_t)m->num_receivers * sizeof(float));
    slabs_fetch_seismogram(slabs, count, o->steps, seismogram, bytes);
    int status = 0;
    if (o->out != NULL || o->check) {
        float *const whole = allocate((size_t)g->nx * g->plane * sizeof(float));
        slabs_fetch_field(slabs, count, o->steps, whole, bytes);
        if (o->out != NULL) {
            char message[512];
            float *const slice = cut_slice(g, o, whole);
            if (run_write(o, m, count, "OpenMP", slice, seismogram, message, sizeof message) != 0) {
                fail(1, message);
            }
            free(slice);
        }
        status = o->check && !run_check(o, slowest, fastest, whole, seismogram);
        free(whole);
    }
    free(seismogram);
    return status;
}

static int run(const device_range *range, const minimod_options *o) {
    const int count = range->count;
    slab *const slabs = allocate((size_t)count * sizeof *slabs);
    double slowest = INFINITY;
    double fastest = 0;
    load(slabs, range, o, &slowest, &fastest);
    slab_traffic before = {0};
    slab_traffic during = {0};
    slab_traffic after_run = {0};
    slabs_enter(slabs, count, o->steps, o->velocity == NULL, &before);
    const double seconds = run_steps_timed(slabs, count, o, &during);
    report(slabs, range, o, seconds, slabs_digest(slabs, count, o->steps, &after_run));
    const int status = finish(slabs, count, o, slowest, fastest, &after_run);
    printf(
        "client      %zu bytes to devices before the first step, %zu from devices after the last\n",
        before.sent, after_run.received);
    printf("step        %zu bytes through the client, %zu from device to device\n",
           (during.sent + during.received) / (size_t)o->steps, during.between / (size_t)o->steps);
    slabs_leave(slabs, count);
    for (int d = 0; d < count; ++d) {
        model_free(&slabs[d].model);
    }
    free(slabs);
    return status;
}

int main(int argc, char **argv) {
    char message[512];
    device_range range;
    minimod_options o;
    if (!devices_choose(take_devices(&argc, argv), &range, message, sizeof message)) {
        fail(2, message);
    }
    switch (minimod_read_options(&o, range.count, argc, argv, message, sizeof message)) {
    case MINIMOD_RUN:
        return run(&range, &o);
    case MINIMOD_HELP:
        minimod_print_help();
        printf("  %-26s %s\n", "--devices FIRST:COUNT", "minimod-devices: which to use [all]");
        return 0;
    default:
        fail(2, message);
    }
}
