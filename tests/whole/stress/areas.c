/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * put, get, their _nb and _rect forms, on memory of every kind. Two transfers of a worker that
 * touch the same bytes have a fence between them, unless both read. */
#include "stress.h"

#include <stdlib.h>
#include <string.h>

enum { KINDS = 4, GUARD = 64, GUARD_BYTE = 0xa5, MAX_PENDING = 128, MAX_FLIGHTS = 16 };

/* Bytes of a target that an unfinished transfer touches. */
typedef struct range {
    int kind, target;
    size_t begin, end;
} range;

/* A transfer with an event; expected is NULL for puts. */
typedef struct flight {
    ompx_event_t event;
    unsigned char *buffer, *expected;
    size_t nbytes;
} flight;

typedef struct worker {
    unsigned char *model[KINDS]; /* [target][byte] of its area */
    unsigned char *scratch, *other;
    range pending[MAX_PENDING];
    int num_pending;
    flight flights[MAX_FLIGHTS];
} worker;

static unsigned char *own[KINDS];    /* symmetric, asymmetric, local, registered */
static unsigned char **there[KINDS]; /* how to name that of each rank */
static worker workers[MAX_THREADS];

static worker *self(void) { return &workers[omp_get_thread_num()]; }
static size_t num_areas(void) { return (size_t)job.ranks * (size_t)job.threads; }
static size_t total_bytes(void) { return num_areas() * (job.area_bytes + GUARD) + GUARD; }

static unsigned char *area(int kind, int target) {
    size_t const index = (size_t)job.me * (size_t)job.threads + (size_t)omp_get_thread_num();
    return there[kind][target] + index * (job.area_bytes + GUARD) + GUARD;
}
static unsigned char *model(int kind, int target) {
    return self()->model[kind] + (size_t)target * job.area_bytes;
}

void areas_begin(void) {
    own[0] = need(ompx_alloc(total_bytes(), 0, OMPX_MEM_SYMMETRIC));
    own[1] = need(ompx_alloc(total_bytes() + 4096 * (size_t)job.me, 0, OMPX_MEM_ASYMMETRIC));
    own[2] = need(ompx_alloc(total_bytes(), 0, OMPX_MEM_LOCAL));
    own[3] = need(malloc(total_bytes()));
    SUCCEEDS(ompx_register(own[3], total_bytes()));
    for (int kind = 0; kind < KINDS; ++kind) {
        memset(own[kind], 0, total_bytes());
        for (size_t i = 0; i <= num_areas(); ++i) {
            memset(own[kind] + i * (job.area_bytes + GUARD), GUARD_BYTE, GUARD);
        }
        there[kind] = need(malloc((size_t)job.ranks * sizeof(void *)));
        SUCCEEDS(ompx_allgather(there[kind], &own[kind], sizeof(void *), ompx_group_world));
        for (int rank = 0; kind < 2 && rank < job.ranks; ++rank) {
            there[kind][rank] = own[kind]; /* one's own address names that of the others */
        }
        for (int t = 0; t < job.threads; ++t) {
            workers[t].model[kind] = need(calloc((size_t)job.ranks, job.area_bytes));
        }
    }
    for (int t = 0; t < job.threads; ++t) {
        workers[t].scratch = need(malloc(job.area_bytes));
        workers[t].other = need(malloc(job.area_bytes));
    }
}

void areas_end(void) {
    SUCCEEDS(ompx_unregister(own[3]));
    SUCCEEDS(ompx_free(own[1]));
    SUCCEEDS(ompx_free(own[0]));
}

static void finish(flight *which) {
    REQUIRE(which->expected == NULL || memcmp(which->buffer, which->expected, which->nbytes) == 0,
            "ompx_get_nb of %zu bytes brought others", which->nbytes);
    free(which->buffer);
    free(which->expected);
    *which = (flight){0};
}

void areas_settle(void) {
    worker *me = self();
    for (int i = 0; i < MAX_FLIGHTS; ++i) {
        if (me->flights[i].buffer != NULL) {
            SUCCEEDS(ompx_event_wait(&me->flights[i].event));
            finish(&me->flights[i]);
        }
    }
    SUCCEEDS(ompx_fence());
    me->num_pending = 0;
}

/* Before a transfer that touches the range: what touches it too is over. */
static void touch(range wanted, int stays_pending) {
    worker *me = self();
    int busy = me->num_pending == MAX_PENDING;
    for (int i = 0; i < me->num_pending && !busy; ++i) {
        range const each = me->pending[i];
        busy = each.kind == wanted.kind && each.target == wanted.target &&
               each.begin < wanted.end && wanted.begin < each.end;
    }
    if (busy) {
        areas_settle();
    }
    if (stays_pending) {
        me->pending[me->num_pending++] = wanted;
    }
}

static void put(random_source *from, range at) {
    worker *me = self();
    size_t const nbytes = at.end - at.begin;
    touch(at, 1);
    fill(me->scratch, nbytes, draw(from));
    memcpy(model(at.kind, at.target) + at.begin, me->scratch, nbytes);
    SUCCEEDS(ompx_put(at.target, area(at.kind, at.target) + at.begin, me->scratch, nbytes));
    memset(me->scratch, 0xee, nbytes < 64 ? nbytes : 64); /* it may be reused */
}

static void get(range at) {
    worker *me = self();
    size_t const nbytes = at.end - at.begin;
    touch(at, 0);
    SUCCEEDS(ompx_get(me->scratch, at.target, area(at.kind, at.target) + at.begin, nbytes));
    REQUIRE(memcmp(me->scratch, model(at.kind, at.target) + at.begin, nbytes) == 0,
            "ompx_get of %zu bytes at %zu of kind %d from rank %d brought others", nbytes, at.begin,
            at.kind, at.target);
}

static void start(random_source *from, range at, int gets) {
    flight *which = &self()->flights[draw_below(from, MAX_FLIGHTS)];
    if (which->buffer != NULL) {
        int done = 0;
        SUCCEEDS(ompx_event_test(&which->event, &done));
        if (!done) {
            return;
        }
        finish(which);
    }
    touch(at, 1);
    unsigned char *known = model(at.kind, at.target) + at.begin;
    unsigned char *remote = area(at.kind, at.target) + at.begin;
    which->nbytes = at.end - at.begin;
    which->buffer = need(malloc(which->nbytes));
    if (gets) {
        which->expected = need(malloc(which->nbytes));
        memcpy(which->expected, known, which->nbytes);
        SUCCEEDS(ompx_get_nb(which->buffer, at.target, remote, which->nbytes, &which->event));
    } else {
        fill(which->buffer, which->nbytes, draw(from));
        memcpy(known, which->buffer, which->nbytes);
        SUCCEEDS(ompx_put_nb(at.target, remote, which->buffer, which->nbytes, &which->event));
    }
}

/* ---- Boxes of up to three dimensions; absent ones have extent 1 */

typedef struct box {
    size_t element, volume[3], remote_offset[3], local_offset[3], remote[3], local[3];
} box;

static size_t array_bytes(const box *b, const size_t dimensions[3]) {
    return b->element * dimensions[0] * dimensions[1] * dimensions[2];
}

static box draw_box(random_source *from) {
    static const size_t elements[] = {1, 2, 3, 4, 8, 16, 24};
    static const size_t largest[] = {200, 24, 8};
    int const dims = 1 + (int)draw_below(from, 3);
    box b = {.element = elements[draw_below(from, 7)]};
    for (int i = 0; i < 3; ++i) {
        size_t const extent = i < dims ? 1 + draw_below(from, largest[dims - 1]) : 1;
        b.remote[i] = extent;
        b.volume[i] = 1 + draw_below(from, extent);
        b.remote_offset[i] = draw_below(from, extent - b.volume[i] + 1);
        b.local[i] = b.volume[i] + draw_below(from, 4);
        b.local_offset[i] = draw_below(from, b.local[i] - b.volume[i] + 1);
    }
    return b;
}

static size_t place(const size_t dimensions[3], const size_t offset[3], size_t x, size_t y,
                    size_t z) {
    return ((offset[0] + x) * dimensions[1] + offset[1] + y) * dimensions[2] + offset[2] + z;
}

/* What the transfer is to do, element by element. */
static void copy_box(const box *b, unsigned char *remote, unsigned char *local, int gets) {
    for (size_t x = 0; x < b->volume[0]; ++x) {
        for (size_t y = 0; y < b->volume[1]; ++y) {
            for (size_t z = 0; z < b->volume[2]; ++z) {
                unsigned char *const r =
                    remote + place(b->remote, b->remote_offset, x, y, z) * b->element;
                unsigned char *const l =
                    local + place(b->local, b->local_offset, x, y, z) * b->element;
                memcpy(gets ? l : r, gets ? r : l, b->element);
            }
        }
    }
}

static void move_box(random_source *from, int kind, int target, int gets) {
    worker *me = self();
    box const b = draw_box(from);
    size_t const remote_bytes = array_bytes(&b, b.remote);
    size_t const local_bytes = array_bytes(&b, b.local);
    if (remote_bytes > job.area_bytes || local_bytes > job.area_bytes) {
        return;
    }
    size_t const begin = draw_below(from, job.area_bytes - remote_bytes + 1);
    touch((range){kind, target, begin, begin + remote_bytes}, !gets);
    unsigned char *known = model(kind, target) + begin;
    unsigned char *remote = area(kind, target) + begin;
    fill(me->scratch, local_bytes, draw(from));
    memcpy(me->other, me->scratch, local_bytes);
    copy_box(&b, known, me->other, gets);
    if (gets) {
        SUCCEEDS(ompx_get_rect(me->scratch, target, remote, b.element, 3, b.volume, b.local_offset,
                               b.remote_offset, b.local, b.remote));
    } else {
        SUCCEEDS(ompx_put_rect(target, remote, me->scratch, b.element, 3, b.volume, b.remote_offset,
                               b.local_offset, b.remote, b.local));
    }
    REQUIRE(memcmp(me->scratch, me->other, local_bytes) == 0, "the local array of %s differs",
            gets ? "ompx_get_rect" : "ompx_put_rect");
}

void areas_work(random_source *from, int operations) {
    for (int i = 0; i < operations; ++i) {
        int const kind = (int)draw_below(from, KINDS);
        int const target = (int)draw_below(from, (size_t)job.ranks);
        size_t const nbytes = draw_size(from, job.area_bytes);
        size_t const begin = draw_below(from, job.area_bytes - nbytes + 1);
        range const at = {kind, target, begin, begin + nbytes};
        size_t const what = draw_below(from, 100);
        if (what < 30) {
            put(from, at);
        } else if (what < 50) {
            get(at);
        } else if (what < 80) {
            start(from, at, what < 62);
        } else if (what < 97) {
            move_box(from, kind, target, what < 88);
        } else {
            areas_settle();
        }
    }
}

void areas_check_all(void) {
    for (int kind = 0; kind < KINDS; ++kind) {
        for (int target = 0; target < job.ranks; ++target) {
            get((range){kind, target, 0, job.area_bytes});
        }
    }
}

void areas_check_guards(void) {
    for (int kind = 0; kind < KINDS; ++kind) {
        for (size_t i = 0; i <= num_areas(); ++i) {
            for (size_t k = 0; k < GUARD; ++k) {
                REQUIRE(own[kind][i * (job.area_bytes + GUARD) + k] == GUARD_BYTE,
                        "a byte beside area %zu of kind %d was overwritten", i, kind);
            }
        }
    }
}
