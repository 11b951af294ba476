// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A step in a target region that sends its edges itself, on the device. The work of a step is a
// list of items, each done by one team; team t of T does the items t, t + T, ... in order:
//     edges     a tile of the HALO planes beside a neighbour; waits for that neighbour's planes
//     puts      a part of these planes into the neighbour's halo, with a signal; waits for the edge
//     interior  a tile of the other planes
//     record    the receivers' values of the step before
// An item waits for other teams only if it is a put, and then for earlier items: with any number of
// teams the earliest unfinished item can go on. A GPU may start teams in any order, but there are
// fewer puts than it has room for teams.
//
// No halo is overwritten while its owner J reads it: as in halo_signal.c, where the signal with
// step n follows the computation of the edge, which alone reads the halo on its side. Ranks with
// less than two edges' planes treat both sides as one: each tile waits for both neighbours, and
// each put for both edges.
#ifndef MINIMOD_STEPS_REGION_H
#define MINIMOD_STEPS_REGION_H

#include "diomp.h"
#include "minimod/column_tiles.h"

#include <omp.h>
#include <stdint.h>

enum { LEFT, RIGHT, INTERIOR, RANGES, SIDES = INTERIOR };
enum { MOST_PARTS = 4 }; // of an edge on a GPU, each put by a team

// In the symmetric memory of the device. Counts grow until the last step.
typedef struct region_signals {
    uint64_t arrived[SIDES][MOST_PARTS]; // the last step whose planes have come from a side
    uint64_t written[SIDES];             // tiles of that edge that this rank has finished
    uint64_t teams_arrived;              // at the barriers of the region's teams
    uint64_t failed_step;                // the first step with a call that has failed
} region_signals;

// What a region reads, in the device's memory; all pointers are the device's.
typedef struct region_plan {
    const model *m;
    float *fields[2];
    float *seismogram;
    const float *push;       // [step]
    const int *steps_before; // added to the steps of a region
    region_signals *signals;
    int *stop; // [team]
    int x_begin[RANGES], x_end[RANGES];
    int tiles[RANGES]; // of each range of planes
    int puts[SIDES];   // 0: no neighbour
    int is_joint;      // the edges overlap
    int first_put;     // number of the item
    int items;
    loop_form form;
    column_tiles columns;
} region_plan;

// The loops are inlined into the region; what communicates is not, so that it costs them no
// registers.
#define IN_REGION static inline __attribute__((always_inline))
#define CALLED_IN_REGION static __attribute__((noinline, unused))

/* comm:begin */
CALLED_IN_REGION void region_failed(const region_plan *p, int step) {
    const uint64_t failed = (uint64_t)step;
    ompx_atomic_min(p->m->part.rank, &p->signals->failed_step, &failed, OMPX_UINT64);
}

CALLED_IN_REGION void region_wait(const region_plan *p, int step, const uint64_t *count,
                                  uint64_t least) {
    if (ompx_signal_wait(count, OMPX_CMP_GE, least) != OMPX_SUCCESS) {
        region_failed(p, step);
    }
}

// Counts at this rank, after what the team has written.
CALLED_IN_REGION void region_count(const region_plan *p, int step, uint64_t *count) {
    if (ompx_put_signal(p->m->part.rank, NULL, NULL, 0, count, 1, OMPX_SIGNAL_ADD) !=
        OMPX_SUCCESS) {
        region_failed(p, step);
    }
}
/* comm:end */

// By all threads of a team, as the functions below.
IN_REGION void rows_tile(const region_plan *p, int step, int x_begin, int x_end) {
    const model *const m = p->m;
    const grid *const g = &m->part;
    float *const field = p->fields[step % 2];
    float *const now = p->fields[(step + 1) % 2];
    const int nz = divide_up(g->nz, LINE) * LINE;
    const int rows = p->form.tile_rows;
    const row_form form = p->form.rows.memory;
    const int points = block_points(g, form);
#pragma omp for collapse(3)
    for (int y = 0; y < g->ny; y += rows) {
        for (int x = x_begin; x < x_end; x += X_BLOCK) {
            for (int z = 0; z < nz; z += points) {
                step_block(g, &m->medium, field, now, x, smaller(x + X_BLOCK, x_end), y,
                           smaller(y + rows, g->ny), z, smaller(points, nz - z), form.fetch);
            }
        }
    }
    if (omp_get_thread_num() == 0 && m->source_x >= x_begin && m->source_x < x_end) {
        *model_source(m, field) += m->source_scale * p->push[step];
    }
}

IN_REGION void columns_tile(const region_plan *p, int step, int tile, int x_begin, int x_end) {
    const grid *const g = &p->m->part;
    float *const ahead = grid_plane(g, p->fields[step % 2], 0);
    const float *const here = grid_plane(g, p->fields[(step + 1) % 2], 0);
#if defined(ON_GPU)
    // One column for each thread (choose_form checks it): a loop would need registers.
    step_tile(&p->columns, ahead, here, p->push[step], tile, omp_get_thread_num(), x_begin, x_end);
#else
    for (int thread = omp_get_thread_num(); thread < TEAM_THREADS;
         thread += omp_get_num_threads()) {
        step_tile(&p->columns, ahead, here, p->push[step], tile, thread, x_begin, x_end);
    }
#endif
}

IN_REGION void compute_tile(const region_plan *p, int step, int range, int tile, int by_columns) {
    const int begin = p->x_begin[range];
    const int planes = p->x_end[range] - begin;
    const int tiles = p->tiles[range];
    if (by_columns) {
        columns_tile(p, step, tile, begin, begin + planes);
    } else {
        rows_tile(p, step, begin + planes * tile / tiles, begin + planes * (tile + 1) / tiles);
    }
}

/* comm:begin */
CALLED_IN_REGION void wait_for_halo(const region_plan *p, int step, int side) {
    for (int from = LEFT; omp_get_thread_num() == 0 && from < SIDES; ++from) {
        for (int part = 0; (from == side || p->is_joint) && part < p->puts[from]; ++part) {
            region_wait(p, step, &p->signals->arrived[from][part], (uint64_t)step - 1);
        }
    }
#pragma omp barrier
}

CALLED_IN_REGION void edge_is_written(const region_plan *p, int step, int side) {
#pragma omp barrier
    if (omp_get_thread_num() == 0) {
        region_count(p, step, &p->signals->written[side]);
    }
}

CALLED_IN_REGION void put_edge(const region_plan *p, int step, int side, int part) {
    const grid *const g = &p->m->part;
    for (int edge = LEFT; omp_get_thread_num() == 0 && edge < SIDES; ++edge) {
        if (edge == side || p->is_joint) {
            region_wait(p, step, &p->signals->written[edge],
                        (uint64_t)step * (uint64_t)p->tiles[edge]);
        }
    }
    float *const field = p->fields[step % 2];
    const size_t lines = HALO * g->plane / LINE;
    const size_t begin = lines * (size_t)part / (size_t)p->puts[side] * LINE;
    const size_t end = lines * (size_t)(part + 1) / (size_t)p->puts[side] * LINE;
    const int to = side == LEFT ? g->rank - 1 : g->rank + 1;
    float *const halo = grid_plane(g, field, side == LEFT ? g->left_nx : -HALO) + begin;
    const float *const edge = grid_plane(g, field, side == LEFT ? 0 : g->local_nx - HALO) + begin;
    const int status =
        ompx_team_put_signal(to, halo, edge, (end - begin) * sizeof(float),
                             &p->signals->arrived[1 - side][part], (uint64_t)step, OMPX_SIGNAL_SET);
    if (status != OMPX_SUCCESS && omp_get_thread_num() == 0) {
        region_failed(p, step);
    }
}

// Ends when all teams of the region have done their items; they must be resident together.
CALLED_IN_REGION void barrier_of_teams(const region_plan *p, int step) {
#pragma omp barrier
    if (omp_get_thread_num() == 0) {
        region_count(p, step, &p->signals->teams_arrived);
        region_wait(p, step, &p->signals->teams_arrived,
                    (uint64_t)step * (uint64_t)omp_get_num_teams());
    }
#pragma omp barrier
}
/* comm:end */

CALLED_IN_REGION void record_before(const region_plan *p, int step) {
    const model *const m = p->m;
    for (int r = omp_get_thread_num(); step > 1 && r < m->num_receivers;
         r += omp_get_num_threads()) {
        const float *const point =
            model_receiver(m, p->fields[(step + 1) % 2], r, 0, m->part.local_nx);
        if (point != NULL) {
            p->seismogram[(size_t)(step - 2) * (size_t)m->num_receivers + (size_t)r] = *point;
        }
    }
}

IN_REGION void do_item(const region_plan *p, int step, int item, int by_columns) {
    const int edges = p->tiles[LEFT] + p->tiles[RIGHT];
    const int puts = p->puts[LEFT] + p->puts[RIGHT];
    const int put = item - p->first_put;
    if (put >= 0 && put < puts) {
        const int side = put < p->puts[LEFT] ? LEFT : RIGHT;
        put_edge(p, step, side, side == LEFT ? put : put - p->puts[LEFT]);
        return;
    }
    int tile = put < 0 ? item : item - puts; // of all ranges
    if (tile == edges + p->tiles[INTERIOR]) {
        record_before(p, step);
        return;
    }
    int range = LEFT;
    while (tile >= p->tiles[range]) {
        tile -= p->tiles[range++];
    }
    if (range != INTERIOR) {
        wait_for_halo(p, step, range);
    }
    compute_tile(p, step, range, tile, by_columns);
    if (range != INTERIOR) {
        edge_is_written(p, step, range);
    }
}

// Whether the team does the step: if a call fails, all teams end after that step. The first thread
// decides for all, so that none waits for another in vain.
CALLED_IN_REGION int does_step(const region_plan *p, int step) {
    int *const stop = &p->stop[omp_get_team_num()];
    if (omp_get_thread_num() == 0) {
        *stop = ompx_signal_test(&p->signals->failed_step, OMPX_CMP_LT, (uint64_t)step) != 0;
    }
#pragma omp barrier
    return !*stop;
}

// One step by as many teams as it has items: without loops, which would need registers.
IN_REGION void region_step(const region_plan *p, int step, int by_columns) {
    const unsigned saved = flush_denormals();
    if (does_step(p, step)) {
        do_item(p, step, omp_get_team_num(), by_columns);
    }
    restore_denormals(saved);
}

// The steps first to end - 1, or a single one, by any number of teams.
IN_REGION void region_steps(const region_plan *p, int first, int end, int by_columns) {
    const unsigned saved = flush_denormals();
    for (int step = first; step < end && does_step(p, step); ++step) {
        for (int item = omp_get_team_num(); item < p->items; item += omp_get_num_teams()) {
            do_item(p, step, item, by_columns);
        }
        if (end - first > 1) {
            barrier_of_teams(p, step);
        }
    }
    restore_denormals(saved);
}

#endif
