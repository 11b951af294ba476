// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The steps are a graph of tasks: each computes one slab in one step, or copies an edge into a
// neighbour's halo, from device to device. A device waits only for its neighbours, and only the
// tasks pass through the client.
#include "minimod/slabs.h"

#include "minimod/slab_kernel.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Number of steps that are submitted at a time.
enum { STEPS_AHEAD = 16 };

static _Noreturn void fail(const char *what, const slab *s) {
    fprintf(stderr, "minimod: device %d: %s\n", s->device, what);
    exit(1);
}

static void *device_memory(const slab *s, size_t bytes) {
    // Without receivers the size is 0, which must not fail.
    void *const memory = omp_target_alloc(bytes > 0 ? bytes : 1, s->device);
    if (memory == NULL) {
        fail("no memory for its slab", s);
    }
    return memory;
}

static void send(const slab *s, void *to, const void *from, size_t size, slab_traffic *bytes) {
    if (size > 0 &&
        omp_target_memcpy(to, from, size, 0, 0, s->device, omp_get_initial_device()) != 0) {
        fail("cannot be written", s);
    }
    bytes->sent += size;
}

static void receive(const slab *s, void *to, const void *from, size_t size, slab_traffic *bytes) {
    if (size > 0 &&
        omp_target_memcpy(to, from, size, 0, 0, omp_get_initial_device(), s->device) != 0) {
        fail("cannot be read", s);
    }
    bytes->received += size;
}

static float *copy_to_device(const slab *s, const float *from, size_t count, slab_traffic *bytes) {
    float *const memory = device_memory(s, count * sizeof(float));
    send(s, memory, from, count * sizeof(float), bytes);
    return memory;
}

// Converts source and receivers into offsets in the slab's fields.
static void place_source_and_receivers(slab *s, int steps, slab_traffic *bytes) {
    const model *m = &s->model;
    const grid *g = &m->part;
    slab_view *v = &s->view;
    float *const base = v->field[0]; // only differences to it are used
    v->has_source = m->source_x >= 0 && m->source_x < g->local_nx;
    v->source = v->has_source ? (size_t)(model_source(m, base) - base) : 0;
    v->source_scale = m->source_scale;
    const size_t max_receivers = (size_t)m->num_receivers;
    size_t *const receiver_offsets = malloc(max_receivers * sizeof *receiver_offsets);
    s->receivers = malloc(max_receivers * sizeof *s->receivers);
    if (receiver_offsets == NULL || s->receivers == NULL) {
        fail("no memory for the receivers", s);
    }
    for (int r = 0; r < m->num_receivers; ++r) {
        const float *point = model_receiver(m, base, r, 0, m->part.local_nx);
        if (point != NULL) {
            receiver_offsets[v->num_local_receivers] = (size_t)(point - base);
            s->receivers[v->num_local_receivers++] = r;
        }
    }
    const size_t num_local_receivers = (size_t)v->num_local_receivers;
    size_t *const device_view = device_memory(s, num_local_receivers * sizeof *receiver_offsets);
    send(s, device_view, receiver_offsets, num_local_receivers * sizeof *receiver_offsets, bytes);
    free(receiver_offsets);
    v->receiver_offsets = device_view;
    v->trace = device_memory(s, (size_t)steps * num_local_receivers * sizeof(float));
}

static void enter(slab *s, int steps, int rows_alike, slab_traffic *bytes) {
    const grid *g = &s->model.part;
    const medium *c = &s->model.medium;
    slab_view *v = &s->view;
    *v = (slab_view){.part = *g};
    const size_t row_bytes = g->pitch * sizeof(float);
    const size_t factor_bytes = (size_t)g->local_nx * g->plane * sizeof(float);
    for (int i = 0; i < 2; ++i) {
        v->field[i] = device_memory(s, g->count * sizeof(float));
    }
    v->medium.damp_x = copy_to_device(s, c->damp_x, (size_t)g->local_nx, bytes);
    v->medium.damp_y = copy_to_device(s, c->damp_y, (size_t)g->ny, bytes);
    v->medium.damp_z = copy_to_device(s, c->damp_z, (size_t)divide_up(g->nz, LINE) * LINE, bytes);
    v->medium.factor = device_memory(s, factor_bytes);
    float *const row = device_memory(s, row_bytes);
    if (rows_alike) {
        send(s, row, c->factor, row_bytes, bytes);
    } else {
        send(s, v->medium.factor, c->factor, factor_bytes, bytes);
    }
    place_source_and_receivers(s, steps, bytes);
    s->device_view = device_memory(s, sizeof *v);
    send(s, s->device_view, v, sizeof *v, bytes);
    const slab_view *const device_view = s->device_view;
#pragma omp target device(s->device) is_device_ptr(device_view, row)
    slab_clear(device_view, row, rows_alike);
    omp_target_free(row, s->device);
}

void slabs_enter(slab *slabs, int count, int steps, int rows_alike, slab_traffic *bytes) {
    for (int d = 0; d < count; ++d) {
        slab *const s = &slabs[d];
        enter(s, steps, rows_alike, bytes);
        // These addresses are the dependences of tasks; their content does not matter.
        for (int i = 0; i < 2; ++i) {
            char *const own = (char *)&s->own[i];
            char *const before = (char *)&s->before[i];
            char *const after = (char *)&s->after[i];
#pragma omp depobj(s->own[i]) depend(in : own[0])
#pragma omp depobj(s->before[i]) depend(out : before[0])
#pragma omp depobj(s->after[i]) depend(out : after[0])
        }
    }
}

// Copies an edge of `from` into a halo of its neighbour: HALO planes from local x `at` on to those
// from `to_at` on.
static void copy_edge(slab *from, int at, slab *to, int to_at, int field, omp_depend_t halo,
                      slab_traffic *bytes) {
    float *const edge = grid_plane(&from->view.part, from->view.field[field], at);
    float *const into = grid_plane(&to->view.part, to->view.field[field], to_at);
    const size_t size = HALO * from->view.part.plane * sizeof(float);
    omp_depend_t needs[2] = {from->own[field], halo};
    if (omp_target_memcpy_async(into, edge, size, 0, 0, to->device, from->device, 2, needs) != 0) {
        fail("cannot copy its edge to a neighbour", from);
    }
    bytes->between += size;
}

static void submit_step(slab *slabs, int count, int step, slab_traffic *bytes) {
    const int field = step % 2;
    const int now = 1 - field;
    for (int d = 0; d < count; ++d) {
        slab *const s = &slabs[d];
        const slab_view *const device_view = s->device_view;
        const float push = model_push(&s->model, step);
        char *const own = (char *)&s->own[field];
        const char *const read[3] = {(char *)&s->own[now], (char *)&s->before[now],
                                     (char *)&s->after[now]};
#pragma omp target nowait device(s->device) is_device_ptr(device_view) firstprivate(step, push)    \
    depend(inout : own[0]) depend(in : read[0][0], read[1][0], read[2][0])
        slab_step(device_view, step, push);
    }
    for (int d = 0; d + 1 < count; ++d) {
        slab *const s = &slabs[d];
        slab *const next = &slabs[d + 1];
        const int planes = s->view.part.local_nx;
        copy_edge(s, planes - HALO, next, -HALO, field, next->before[field], bytes);
        copy_edge(next, 0, s, planes, field, s->after[field], bytes);
    }
}

void slabs_run(slab *slabs, int count, int steps, void (*progress)(void *, int), void *context,
               slab_traffic *bytes) {
    for (int step = 1; step <= steps; ++step) {
        submit_step(slabs, count, step, bytes);
        if (step % STEPS_AHEAD == 0 || step == steps) {
#pragma omp taskwait
            progress(context, step);
        }
    }
}

uint64_t slabs_digest(slab *slabs, int count, int steps, slab_traffic *bytes) {
    uint64_t sum = 0;
    for (int d = 0; d < count; ++d) {
        const slab_view *const device_view = slabs[d].device_view;
        const int last = steps % 2;
        uint64_t own = 0;
#pragma omp target device(slabs[d].device) is_device_ptr(device_view) map(from : own)
        own = slab_digest(device_view, device_view->field[last]);
        sum += own;
        bytes->received += sizeof own;
    }
    return sum;
}

void slabs_fetch_field(const slab *slabs, int count, int steps, float *whole, slab_traffic *bytes) {
    for (int d = 0; d < count; ++d) {
        const slab *const s = &slabs[d];
        const grid *g = &s->view.part;
        receive(s, whole + (size_t)g->first_x * g->plane,
                grid_plane(g, s->view.field[steps % 2], 0),
                (size_t)g->local_nx * g->plane * sizeof(float), bytes);
    }
}

void slabs_fetch_seismogram(const slab *slabs, int count, int steps, float *seismogram,
                            slab_traffic *bytes) {
    for (int d = 0; d < count; ++d) {
        const slab *const s = &slabs[d];
        const size_t num_local_receivers = (size_t)s->view.num_local_receivers;
        const size_t all = (size_t)s->model.num_receivers;
        const size_t size = (size_t)steps * num_local_receivers * sizeof(float);
        float *const trace = malloc(size > 0 ? size : 1);
        if (trace == NULL) {
            fail("no memory for its seismogram", s);
        }
        receive(s, trace, s->view.trace, size, bytes);
        for (size_t step = 0; step < (size_t)steps; ++step) {
            for (size_t r = 0; r < num_local_receivers; ++r) {
                seismogram[step * all + (size_t)s->receivers[r]] =
                    trace[step * num_local_receivers + r];
            }
        }
        free(trace);
    }
}

void slabs_leave(slab *slabs, int count) {
    for (int d = 0; d < count; ++d) {
        slab *const s = &slabs[d];
        const slab_view *v = &s->view;
        void *const memory[] = {
            v->field[0],      v->field[1],      v->medium.factor, v->medium.damp_x,
            v->medium.damp_y, v->medium.damp_z, v->trace,         (void *)v->receiver_offsets,
            s->device_view};
        for (size_t i = 0; i < sizeof memory / sizeof memory[0]; ++i) {
            omp_target_free(memory[i], s->device);
        }
        for (int i = 0; i < 2; ++i) {
#pragma omp depobj(s->own[i]) destroy
#pragma omp depobj(s->before[i]) destroy
#pragma omp depobj(s->after[i]) destroy
        }
        free(s->receivers);
    }
}
