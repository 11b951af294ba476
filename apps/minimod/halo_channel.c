// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Halo exchange with DiOMP by channels. No proof is needed that a halo may be overwritten: a
// neighbour's edge waits in a buffer of the channel until it is copied into the halo, and a
// neighbour that is two steps ahead waits for a buffer.
#include "common/comm.h"
#include "diomp.h"
#include "minimod/halo.h"

#include <string.h>

/* comm:begin */
enum { LEFT, RIGHT, SIDES }; // also the tags: the direction in which an edge goes
static ompx_channel_t to[SIDES], from[SIDES];
/* comm:end */
static float *exchanged; // the field whose edges are under way

static size_t edge_bytes(const grid *g) { return HALO * g->plane * sizeof(float); }

void halo_init(const grid *g) {
    /* comm:begin */
    for (int side = LEFT; side < SIDES; ++side) {
        const int rank = g->rank + (side == LEFT ? -1 : 1);
        if (rank >= 0 && rank < g->ranks) {
            ompx_channel_create(rank, side, OMPX_CHANNEL_SENDER, edge_bytes(g), 2, &to[side]);
            ompx_channel_create(rank, 1 - side, OMPX_CHANNEL_RECEIVER, edge_bytes(g), 2,
                                &from[side]);
        }
    }
    /* comm:end */
}

void halo_start(const grid *g, float *field, int step) {
    (void)step;
    exchanged = field;
    /* comm:begin */
    if (to[LEFT] != OMPX_CHANNEL_NONE) {
        ompx_channel_send(to[LEFT], grid_plane(g, field, 0));
    }
    if (to[RIGHT] != OMPX_CHANNEL_NONE) {
        ompx_channel_send(to[RIGHT], grid_plane(g, field, g->local_nx - HALO));
    }
    /* comm:end */
}

const int halo_progress_interval = 0;
void halo_progress(void) {}

/* comm:begin */
static void fill_halo(ompx_channel_t channel, float *halo, size_t nbytes) {
    if (channel != OMPX_CHANNEL_NONE) {
        memcpy(halo, ompx_channel_receive(channel), nbytes);
        ompx_channel_release(channel);
    }
}
/* comm:end */

void halo_finish(const grid *g, int step) {
    (void)step;
    /* comm:begin */
    fill_halo(from[LEFT], grid_plane(g, exchanged, -HALO), edge_bytes(g));
    fill_halo(from[RIGHT], grid_plane(g, exchanged, g->local_nx), edge_bytes(g));
    /* comm:end */
}

void halo_free(void) {
    for (int side = LEFT; side < SIDES; ++side) {
        ompx_channel_free(&to[side]);
        ompx_channel_free(&from[side]);
    }
}
