// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Steps in target regions that communicate themselves (steps_region.h): a region for each step, or
// one for all steps, whose teams then synchronise by a counter in the device's memory and must be
// resident together. The regions of PLAN_STEPS steps can be a plan (diomp/plan.h), which is
// launched as often as it fits into the run.
#include "minimod/steps_region.h"

#include "common/comm.h"
#include "common/device.h"
#include "minimod/compute.h"
#include "minimod/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static region_plan plan;         // the host's copy
static region_plan *device_plan; // the device's
static float *device_push;
static int teams;
static int is_one_region;
static int has_plan;
static int steps_before;      // region_plan's; mapped
static int has_team_per_item; // and each team all its threads

int steps_choose(const minimod_options *o, char *message, size_t size) {
    is_one_region = strcmp(o->region, "run") == 0;
    has_plan = strcmp(o->region, "plan") == 0;
    const int is_known = is_one_region || has_plan || strcmp(o->region, "auto") == 0 ||
                         strcmp(o->region, "step") == 0;
    if (!is_known) {
        snprintf(message, size, "--region %s: minimod-region has auto, step, plan and run",
                 o->region);
        return 0;
    }
    if (o->wavefront != 1) {
        snprintf(message, size, "--wavefront %d: minimod-region has no wavefront", o->wavefront);
        return 0;
    }
    return 1;
}

// With OMP_TARGET_OFFLOAD=DISABLED, regions run on the host.
static int used_device(void) {
    return ompx_num_rank_devices() == 0 ? omp_get_initial_device() : omp_get_default_device();
}

static void *device_alloc(size_t bytes) {
    void *const made = omp_target_alloc(bytes, used_device());
    if (made == NULL) {
        fprintf(stderr, "minimod: no memory on the device\n");
        comm_abort(1);
    }
    return made;
}

static void *to_device(const void *host, size_t bytes) {
    void *const made = device_alloc(bytes);
    omp_target_memcpy(made, host, bytes, 0, 0, used_device(), omp_get_initial_device());
    return made;
}

static float *push_on_device(const model *m, int steps) {
    float *const push = calloc((size_t)steps + 1, sizeof *push);
    if (push == NULL) {
        comm_abort(1);
    }
    for (int step = 1; step <= steps; ++step) {
        push[step] = model_push(m, step);
    }
    float *const made = to_device(push, ((size_t)steps + 1) * sizeof *push);
    free(push);
    return made;
}

/* comm:begin */
static region_signals *make_signals(void) {
    const int device = used_device();
    region_signals *const made =
        device == omp_get_initial_device()
            ? omp_alloc(sizeof *made, ompx_symmetric_mem_alloc)
            : ompx_target_alloc(sizeof *made, device, ompx_symmetric_mem_alloc);
    if (made == NULL) {
        comm_abort(1);
    }
    const region_signals none = {.failed_step = UINT64_MAX};
    omp_target_memcpy(made, &none, sizeof none, 0, 0, device, omp_get_initial_device());
    return made;
}

static void free_signals(region_signals *made) {
    const int device = used_device();
    if (device == omp_get_initial_device()) {
        omp_free(made, ompx_symmetric_mem_alloc);
    } else {
        ompx_target_free(made, device);
    }
}
/* comm:end */

static void divide_planes(const grid *g) {
    const int to[SIDES] = {g->rank > 0, g->rank + 1 < g->ranks};
    const int most = g->local_nx;
    plan.is_joint = to[LEFT] && to[RIGHT] && most < 2 * HALO;
    plan.x_end[LEFT] = to[LEFT] ? HALO : 0;
    plan.x_begin[RIGHT] = to[RIGHT] ? most - HALO : most;
    if (plan.is_joint) {
        plan.x_begin[RIGHT] = HALO;
    }
    plan.x_end[RIGHT] = most;
    plan.x_begin[INTERIOR] = plan.x_end[LEFT];
    plan.x_end[INTERIOR] = plan.x_begin[RIGHT];
    const int parts = device_is_gpu() ? MOST_PARTS : 1;
    plan.puts[LEFT] = to[LEFT] ? parts : 0;
    plan.puts[RIGHT] = to[RIGHT] ? parts : 0;
}

static void choose_columns(const model *m) {
    const grid *const g = &m->part;
    const int lanes = compute_form.lanes;
    const int rows = TEAM_THREADS / lanes;
    plan.columns = (column_tiles){.lanes = lanes,
                                  .rows = rows,
                                  .wide = divide_up(divide_up(g->nz, WIDE), lanes),
                                  .high = divide_up(g->ny, rows),
                                  .march = compute_form.march,
                                  .ny = g->ny,
                                  .nz = g->nz,
                                  .row = (int)g->pitch,
                                  .plane = (int)g->plane,
                                  .source_scale = m->source_scale,
                                  .source_x = m->source_x,
                                  .source_y = (int)(m->source_at / g->pitch),
                                  .source_z = (int)(m->source_at % g->pitch),
                                  .factor = device_address(m->medium.factor),
                                  .damp_x = device_address(m->medium.damp_x),
                                  .damp_y = device_address(m->medium.damp_y),
                                  .damp_z = device_address(m->medium.damp_z)};
}

// Tiles of columns are as large as a team; of rows, each team has one of the interior.
static void divide_tiles(int wanted_teams) {
    const column_tiles *const c = &plan.columns;
    for (int range = 0; range < RANGES; ++range) {
        const int planes = plan.x_end[range] - plan.x_begin[range];
        if (compute_form.by_columns) {
            plan.tiles[range] = c->wide * c->high * divide_up(planes, c->march);
        } else {
            plan.tiles[range] = range == INTERIOR ? smaller(planes, wanted_teams) : planes > 0;
        }
    }
}

static int choose_teams(int wanted) {
    if (wanted > 0) {
        return wanted;
    }
    if (!device_is_gpu()) {
        return 1;
    }
    return is_one_region ? device_multiprocessors() : plan.items;
}

void steps_init(const model *m, const minimod_options *o, float *fields[2], float *seismogram) {
    memset(&plan, 0, sizeof plan);
#pragma omp target enter data map(to : steps_before)
    plan.steps_before = device_address(&steps_before);
    plan.signals = make_signals();
    device_push = push_on_device(m, o->steps);
    plan.m = device_address((void *)m);
    plan.fields[0] = device_address(fields[0]);
    plan.fields[1] = device_address(fields[1]);
    plan.seismogram = device_address(seismogram);
    plan.push = device_push;
    plan.form = compute_form;
    divide_planes(&m->part);
    choose_columns(m);
    divide_tiles(o->teams > 0 ? o->teams : 1);
    const int edges = plan.tiles[LEFT] + plan.tiles[RIGHT];
    plan.first_put = o->overlap ? edges : edges + plan.tiles[INTERIOR] + 1;
    plan.items = edges + plan.puts[LEFT] + plan.puts[RIGHT] + plan.tiles[INTERIOR] + 1;
    teams = smaller(choose_teams(o->teams), plan.items);
    has_team_per_item = device_is_gpu() && compute_form.by_columns && !is_one_region &&
                        teams == plan.items && compute_full_teams(teams);
    plan.stop = device_alloc((size_t)teams * sizeof *plan.stop);
    device_plan = to_device(&plan, sizeof plan);
}

// The steps steps_before + first to steps_before + end - 1.
static void run_region(int first, int end) {
    const region_plan *const p = device_plan;
    const int count = teams;
    if (!compute_form.by_columns) {
#pragma omp target teams num_teams(count) is_device_ptr(p)
#pragma omp parallel
        region_steps(p, *p->steps_before + first, *p->steps_before + end, 0);
    } else if (has_team_per_item) {
#pragma omp target teams num_teams(count) thread_limit(TEAM_THREADS) is_device_ptr(p)
#pragma omp parallel
        region_step(p, *p->steps_before + first, 1);
    } else {
#pragma omp target teams num_teams(count) thread_limit(TEAM_THREADS) is_device_ptr(p)
#pragma omp parallel
        region_steps(p, *p->steps_before + first, *p->steps_before + end, 1);
    }
}

static void check_regions(void) {
    const region_signals *const signals = plan.signals;
    uint64_t failed = 0;
#pragma omp target is_device_ptr(signals) map(from : failed)
    failed = signals->failed_step;
    if (failed != UINT64_MAX) {
        fprintf(stderr, "minimod: a call in the region of step %llu has failed\n",
                (unsigned long long)failed);
        comm_abort(1);
    }
}

static void require(int status, const char *what) {
    if (status != OMPX_SUCCESS) {
        fprintf(stderr, "minimod: %s: %s\n", what, ompx_last_error());
        comm_abort(1);
    }
}

static void count_from(int step) {
    steps_before = step;
#pragma omp target update to(steps_before)
}

// As many steps as plans have; the first ones while the plan is recorded. Returns their number.
static int run_plans(const minimod_options *o, progress *bar) {
    enum { PLAN_STEPS = 16 };
    const int count = smaller(PLAN_STEPS, o->steps);
    ompx_plan_t steps = OMPX_PLAN_NONE;
    require(ompx_plan_begin(used_device()), "ompx_plan_begin");
    count_from(0); // each launch reads what steps_before has become
    for (int step = 1; step <= count; ++step) {
        run_region(step, step + 1);
    }
    require(ompx_plan_end(&steps), "ompx_plan_end");
    int done = count;
    for (; done + count <= o->steps; done += count) {
        progress_update(bar, done);
        steps_before = done;
        require(ompx_plan_launch(steps), "ompx_plan_launch");
    }
    require(ompx_plan_free(&steps), "ompx_plan_free");
    count_from(0);
    return done;
}

void steps_run(const model *m, const minimod_options *o, float *fields[2], run_result *result,
               progress *bar) {
    const int stride = is_one_region ? o->steps : 1;
    const int done = has_plan && used_device() != omp_get_initial_device() ? run_plans(o, bar) : 0;
    for (int step = done + 1; step <= o->steps; step += stride) {
        run_region(step, step + stride);
        progress_update(bar, step);
    }
    compute_record(m, fields[o->steps % 2], result->seismogram, o->steps, 0, m->part.local_nx);
    check_regions();
    result->put_seconds = result->wait_seconds = -1;
}

void steps_free(void) {
    const int device = used_device();
#pragma omp target exit data map(release : steps_before)
    omp_target_free(device_plan, device);
    omp_target_free(plan.stop, device);
    omp_target_free(device_push, device);
    free_signals(plan.signals);
}
