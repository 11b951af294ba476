// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Steps in target regions of the default device. Everything is mapped once, before the first step;
// within a step, no field data passes between host and device.
//
// Two forms of the loop, chosen by the kind of device, or by --kernel for measurements and tests.
// Rows, for processors (host devices): tiles of rows x planes x points that fit a processor's
// caches, the code of a tile as on the host, the points of a row the lanes of vector instructions.
// Columns, for GPUs: see minimod_column.h; the threads of a team are a tile along Z and Y, so that
// neighbouring threads read neighbouring addresses, and march along X.
#include "common/clock.h"
#include "common/device.h"
#include "minimod/column_tiles.h"
#include "minimod/compute.h"

#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const char *wanted_form = "auto";
loop_form compute_form;

void compute_where(char *text, size_t text_size) {
    char device[48];
    device_describe(device, sizeof device);
    snprintf(text, text_size, "%s, by %s", device, compute_form.by_columns ? "columns" : "rows");
}

int compute_choose(const char *form) {
    wanted_form = form;
    return strcmp(form, "auto") == 0 || strcmp(form, "rows") == 0 || strcmp(form, "columns") == 0;
}

static int aligned(const float *array) {
    const int device = omp_get_default_device();
    return (uintptr_t)omp_get_mapped_ptr(array, device) % sizeof(wide) == 0;
}

int compute_full_teams(int teams) {
    int complete = 0;
#pragma omp target teams num_teams(teams) thread_limit(TEAM_THREADS) map(tofrom : complete)
#pragma omp parallel
    if (omp_get_team_num() == 0 && omp_get_thread_num() == 0) {
        complete = omp_get_num_teams() == teams && omp_get_num_threads() == TEAM_THREADS;
    }
    return complete;
}

// Columns need arrays whose device copies are aligned to the size of vectors.
static void choose_form(const grid *g, const medium *m, float *a, float *b) {
    loop_form *const f = &compute_form;
    const int possible =
        aligned(a + g->lead) && aligned(b + g->lead) && aligned(m->factor) && aligned(m->damp_z);
    const int gpu = device_is_gpu();
    f->by_columns = possible && strcmp(wanted_form, "rows") != 0 &&
                    (gpu || strcmp(wanted_form, "columns") == 0);
    f->is_gpu = gpu;
    f->rows = (tuned_rows){rows_untried(), rows_untried()};
    f->tile_rows = gpu ? 1 : block_rows(g, omp_get_max_threads());
    // Tiles of one width, not wider than a warp, so that few threads lie outside of the grid.
    const int packs = divide_up(g->nz, WIDE);
    f->lanes = divide_up(packs, divide_up(packs, 32));
    f->march = 50;
    const int teams = divide_up(packs, f->lanes) * divide_up(g->ny, TEAM_THREADS / f->lanes) *
                      divide_up(g->local_nx, f->march);
    f->by_columns = f->by_columns && (!gpu || compute_full_teams(teams));
}

static void advance_rows(const model *m, float *field, float *now, int x_begin, int x_end,
                         row_form form) {
    const int ny = m->part.ny;
    const int nz = divide_up(m->part.nz, LINE) * LINE;
    const int rows = compute_form.tile_rows;
    const int points = compute_form.is_gpu ? 1 : block_points(&m->part, form);
    const int fetch = form.fetch;
#pragma omp target teams distribute parallel for collapse(3)
    for (int y = 0; y < ny; y += rows) {
        for (int x = x_begin; x < x_end; x += X_BLOCK) {
            for (int z = 0; z < nz; z += points) {
                const unsigned saved = flush_denormals();
                step_block(&m->part, &m->medium, field, now, x, smaller(x + X_BLOCK, x_end), y,
                           smaller(y + rows, ny), z, smaller(points, nz - z), fetch);
                restore_denormals(saved);
            }
        }
    }
}

static void try_rows(const model *m, float *fields[2], row_form form, int x_begin, int x_end) {
    advance_rows(m, fields[0], fields[1], x_begin, x_end, form);
}

void compute_enter(const model *m, float *fields[2], float *seismogram, int steps) {
    const grid *g = &m->part;
    const medium *c = &m->medium;
    const size_t count = g->count;
    float *const a = fields[0];
    float *const b = fields[1];
    // The fields first: they have one size on all ranks, so their device copies have the same
    // offset on every rank's device, and a rank's own pointer addresses the neighbour's copy too.
#pragma omp target enter data map(alloc : a[0 : count])
#pragma omp target enter data map(alloc : b[0 : count])
#pragma omp target enter data map(to : m[0 : 1])
    // A member's array is attached to the device's copy of the member.
#pragma omp target enter data map(to : c->factor[0 : (size_t)g->local_nx * g->plane])
#pragma omp target enter data map(to : c->damp_x[0 : g->local_nx], c->damp_y[0 : g->ny])
#pragma omp target enter data map(to : c->damp_z[0 : divide_up(g->nz, LINE) * LINE])
#pragma omp target enter data map(to : m->receivers[0 : 3 * (size_t)m->num_receivers])
#pragma omp target enter data map(to : seismogram[0 : (size_t)steps * (size_t)m->num_receivers])
    choose_form(g, c, a, b);
#pragma omp target teams distribute parallel for
    for (size_t i = 0; i < count; ++i) {
        a[i] = 0;
        b[i] = 0;
    }
    if (!compute_form.by_columns && !compute_form.is_gpu) {
        compute_form.rows = tune_rows(m, fields, try_rows);
    }
    compute_form.has_receivers = 0;
    for (int r = 0; r < m->num_receivers; ++r) {
        compute_form.has_receivers |= model_receiver(m, a, r, 0, m->part.local_nx) != NULL;
    }
}

static void copy_field(const model *m, float *fields[2]) {
    const size_t count = m->part.count / WIDE;
    wide *const to = (wide *)fields[0];
    const wide *const from = (const wide *)fields[1];
#pragma omp target teams distribute parallel for thread_limit(512)
    for (size_t at = 0; at < count; ++at) {
        to[at] = from[at];
    }
}

static void triad(const model *m, float *fields[2], float scale) {
    const size_t count = (size_t)m->part.local_nx * m->part.plane;
    float *const a = grid_plane(&m->part, fields[0], 0);
    const float *const b = grid_plane(&m->part, fields[1], 0);
    const float *const c = m->medium.factor;
#pragma omp target teams distribute parallel for
    for (size_t at = 0; at < count; ++at) {
        a[at] = b[at] + scale * c[at];
    }
}

double compute_bandwidth(const model *m, float *fields[2], const char **measured) {
    const int gpu = compute_form.is_gpu;
    double best = INFINITY;
    for (int i = 0; i < 4; ++i) {
        const double start = seconds_now();
        if (gpu) {
            copy_field(m, fields);
        } else {
            triad(m, fields, 0);
        }
        best = fmin(best, seconds_now() - start);
    }
    *measured = gpu ? "copy" : "triad";
    const grid *g = &m->part;
    return gpu ? 2 * sizeof(float) * (double)g->count / best
               : 3 * sizeof(float) * (double)((size_t)g->local_nx * g->plane) / best;
}

static void advance_columns(const model *m, float *field, float *now, int step, int x_begin,
                            int x_end) {
    const grid *g = &m->part;
    const int ny = g->ny;
    const int nz = g->nz;
    const int row = (int)g->pitch;
    const int plane = (int)g->plane;
    const int lanes = compute_form.lanes;
    const int wide_tiles = divide_up(divide_up(nz, WIDE), lanes);
    const int rows = TEAM_THREADS / lanes;
    const int high_tiles = divide_up(ny, rows);
    const int march = compute_form.march;
    const int teams = wide_tiles * high_tiles * divide_up(x_end - x_begin, march);
    float *const ahead = grid_plane(g, field, 0);
    const float *const here = grid_plane(g, now, 0);
    const float *const factor = m->medium.factor;
    const float *const damp_x = m->medium.damp_x;
    const float *const damp_y = m->medium.damp_y;
    const float *const damp_z = m->medium.damp_z;
    const int source_x = m->source_x;
    const int source_y = (int)(m->source_at / g->pitch);
    const int source_z = (int)(m->source_at % g->pitch);
    const float source_scale = m->source_scale;
    const float push = model_push(m, step);
#pragma omp target teams num_teams(teams) thread_limit(TEAM_THREADS)
#pragma omp parallel
    {
        const column_tiles tiles = {lanes,    rows,   wide_tiles, high_tiles,   march,    ny,
                                    nz,       row,    plane,      source_scale, source_x, source_y,
                                    source_z, factor, damp_x,     damp_y,       damp_z};
        const unsigned saved = flush_denormals();
        FOR_EACH_OF(tile, omp_get_team_num(), omp_get_num_teams(), teams) {
            FOR_EACH_OF(thread, omp_get_thread_num(), omp_get_num_threads(), TEAM_THREADS) {
                step_tile(&tiles, ahead, here, push, tile, thread, x_begin, x_end);
            }
        }
        restore_denormals(saved);
    }
}

void compute_advance(const model *m, float *field, float *now, int step, int x_begin, int x_end,
                     int is_cached) {
    if (x_end <= x_begin) {
        return;
    }
    if (compute_form.by_columns) {
        advance_columns(m, field, now, step, x_begin, x_end);
        return;
    }
    advance_rows(m, field, now, x_begin, x_end,
                 is_cached ? compute_form.rows.cache : compute_form.rows.memory);
    if (m->source_x >= x_begin && m->source_x < x_end) {
        const float push = model_push(m, step);
#pragma omp target
        *model_source(m, field) += m->source_scale * push;
    }
}

void compute_record(const model *m, float *field, float *seismogram, int step, int x_begin,
                    int x_end) {
    const int receivers = m->num_receivers;
    if (!compute_form.has_receivers) {
        return;
    }
#pragma omp target teams distribute parallel for
    for (int r = 0; r < receivers; ++r) {
        const float *point = model_receiver(m, field, r, x_begin, x_end);
        if (point != NULL) {
            seismogram[(size_t)(step - 1) * (size_t)receivers + (size_t)r] = *point;
        }
    }
}

void compute_leave(const model *m, float *fields[2], float *seismogram, int steps) {
    const grid *g = &m->part;
    const medium *c = &m->medium;
    const size_t count = g->count;
    float *const last = fields[steps % 2];
    float *const other = fields[(steps + 1) % 2];
#pragma omp target exit data map(from : seismogram[0 : (size_t)steps * (size_t)m->num_receivers])
#pragma omp target exit data map(release : m->receivers[0 : 3 * (size_t)m->num_receivers])
#pragma omp target exit data map(release : c->damp_z[0 : divide_up(g->nz, LINE) * LINE])
#pragma omp target exit data map(release : c->damp_x[0 : g->local_nx], c->damp_y[0 : g->ny])
#pragma omp target exit data map(release : c->factor[0 : (size_t)g->local_nx * g->plane])
#pragma omp target exit data map(release : m[0 : 1])
#pragma omp target exit data map(from : last[0 : count]) map(release : other[0 : count])
}
