// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "minimod/minimod_model.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const double PI = 3.14159265358979323846;

static float *allocate(size_t count) {
    const size_t bytes = (count * sizeof(float) + 63) / 64 * 64;
    float *memory = aligned_alloc(64, bytes);
    if (memory == NULL) {
        fprintf(stderr, "minimod: no memory for %zu bytes\n", bytes);
        exit(1);
    }
    memset(memory, 0, bytes);
    return memory;
}

static int read_exactly(int file, void *into, size_t bytes, off_t from) {
    for (size_t done = 0; done < bytes;) {
        const ssize_t got = pread(file, (char *)into + done, bytes - done, from + (off_t)done);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return -1;
        }
        done += (size_t)got;
    }
    return 0;
}

static int read_velocity(model *m, const char *path, char *message, size_t message_size) {
    const grid *g = &m->part;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat about;
    if (file < 0 || fstat(file, &about) != 0) {
        snprintf(message, message_size, "--velocity %s: %s", path, strerror(errno));
        if (file >= 0) {
            close(file);
        }
        return -1;
    }
    const size_t row_bytes = (size_t)g->nz * sizeof(float);
    const size_t plane_bytes = (size_t)g->ny * row_bytes;
    const size_t wanted = (size_t)g->nx * plane_bytes;
    int status = 0;
    if ((size_t)about.st_size != wanted) {
        snprintf(message, message_size,
                 "--velocity %s has %lld bytes; a grid of %d x %d x %d float32 values has %zu",
                 path, (long long)about.st_size, g->nx, g->ny, g->nz, wanted);
        status = -1;
    }
    float *plane = allocate((size_t)g->ny * (size_t)g->nz);
    for (int x = 0; x < g->local_nx && status == 0; ++x) {
        const off_t from = (off_t)((size_t)(g->first_x + x) * plane_bytes);
        if (read_exactly(file, plane, plane_bytes, from) != 0) {
            snprintf(message, message_size, "--velocity %s: cannot read plane %d: %s", path,
                     g->first_x + x, strerror(errno));
            status = -1;
        }
        for (int y = 0; y < g->ny; ++y) {
            memcpy(m->velocity + (size_t)x * g->plane + (size_t)y * g->pitch,
                   plane + (size_t)y * (size_t)g->nz, row_bytes);
        }
    }
    free(plane);
    close(file);
    return status;
}

static float model_velocity(const minimod_options *o, int z) {
    if (strcmp(o->model, "constant") == 0) {
        return 2000.0f;
    }
    const int third = (o->grid[2] + 2) / 3;
    const int layer = z / third;
    return 1500.0f + 1000.0f * (float)layer;
}

// Computes the range of own velocities; returns -1 if one is invalid.
static int velocity_range(const model *m, double *slowest, double *fastest, char *message,
                          size_t message_size) {
    const grid *g = &m->part;
    *slowest = INFINITY;
    *fastest = 0;
    for (int x = 0; x < g->local_nx; ++x) {
        for (int y = 0; y < g->ny; ++y) {
            const float *row = m->velocity + (size_t)x * g->plane + (size_t)y * g->pitch;
            for (int z = 0; z < g->nz; ++z) {
                if (!(row[z] > 0.0f && row[z] < 1e6f)) {
                    snprintf(message, message_size, "velocity at (%d, %d, %d) is %g m/s",
                             g->first_x + x, y, z, (double)row[z]);
                    return -1;
                }
                *slowest = row[z] < *slowest ? row[z] : *slowest;
                *fastest = row[z] > *fastest ? row[z] : *fastest;
            }
        }
    }
    return 0;
}

// Cerjan's taper: both time levels are multiplied by exp(-(0.015 d)^2) in each step, d points deep
// in a layer of 20; other widths are scaled so that the damping at the face is equal.
static void fill_sponge(float *damp, int first, int count, int whole, int width) {
    for (int i = 0; i < count; ++i) {
        const int at = first + i;
        const int to_face = at < whole - 1 - at ? at : whole - 1 - at;
        const double depth = to_face < width ? 20.0 * (width - to_face) / width : 0.0;
        damp[i] = (float)exp(-(0.015 * depth) * (0.015 * depth));
    }
}

static int add_receiver(model *m, const int at[3]) {
    int *grown = realloc(m->receivers, (size_t)(m->num_receivers + 1) * 3 * sizeof(int));
    if (grown == NULL) {
        return -1;
    }
    m->receivers = grown;
    memcpy(grown + 3 * (size_t)m->num_receivers, at, 3 * sizeof(int));
    ++m->num_receivers;
    return 0;
}

static int read_receivers(model *m, const minimod_options *o, FILE *file, char *message,
                          size_t message_size) {
    char line[256];
    for (int number = 1; fgets(line, sizeof line, file) != NULL; ++number) {
        int at[3];
        char rest = 0;
        if (line[strspn(line, " \t\r\n")] == '\0' || line[0] == '#') {
            continue;
        }
        const int got = sscanf(line, "%d %d %d %c", &at[0], &at[1], &at[2], &rest);
        for (int d = 0; d < 3; ++d) {
            if (got != 3 || at[d] < 0 || at[d] >= o->grid[d]) {
                snprintf(message, message_size,
                         "--receivers %s, line %d: needs x y z within the grid of %d x %d x %d",
                         o->receivers, number, o->grid[0], o->grid[1], o->grid[2]);
                return -1;
            }
        }
        if (add_receiver(m, at) != 0) {
            snprintf(message, message_size, "--receivers %s: no memory", o->receivers);
            return -1;
        }
    }
    if (m->num_receivers == 0) {
        snprintf(message, message_size, "--receivers %s holds no receivers", o->receivers);
        return -1;
    }
    return 0;
}

static int place_line(model *m, const minimod_options *o, long count, char *message,
                      size_t message_size) {
    if (count < 1 || count > o->grid[0]) {
        snprintf(message, message_size, "--receivers %ld must be between 1 and nx = %d", count,
                 o->grid[0]);
        return -1;
    }
    for (long r = 0; r < count; ++r) {
        const int x = (int)((2 * r + 1) * o->grid[0] / (2 * count));
        const int at[3] = {x, o->source[1], o->source[2]};
        if (add_receiver(m, at) != 0) {
            snprintf(message, message_size, "--receivers %ld: no memory", count);
            return -1;
        }
    }
    return 0;
}

static int place_receivers(model *m, const minimod_options *o, char *message, size_t message_size) {
    if (o->receivers == NULL) {
        return place_line(m, o, o->grid[0] < 32 ? o->grid[0] : 32, message, message_size);
    }
    char *end = NULL;
    const long count = strtol(o->receivers, &end, 10);
    if (*end == '\0' && end != o->receivers) {
        return place_line(m, o, count, message, message_size);
    }
    FILE *file = fopen(o->receivers, "r");
    if (file == NULL) {
        snprintf(message, message_size, "--receivers %s: %s", o->receivers, strerror(errno));
        return -1;
    }
    const int status = read_receivers(m, o, file, message, message_size);
    fclose(file);
    return status;
}

int model_load(model *m, const minimod_options *o, int rank, int ranks, double *slowest,
               double *fastest, char *message, size_t message_size) {
    *m = (model){.part = grid_split(o->grid[0], o->grid[1], o->grid[2], rank, ranks)};
    const grid *g = &m->part;
    m->velocity = allocate((size_t)g->local_nx * g->plane);
    if (o->velocity != NULL) {
        if (read_velocity(m, o->velocity, message, message_size) != 0) {
            return -1;
        }
    } else {
        for (int x = 0; x < g->local_nx; ++x) {
            for (int y = 0; y < g->ny; ++y) {
                float *row = m->velocity + (size_t)x * g->plane + (size_t)y * g->pitch;
                for (int z = 0; z < g->nz; ++z) {
                    row[z] = model_velocity(o, z);
                }
            }
        }
    }
    m->source_x = o->source[0] - g->first_x;
    m->source_at = (size_t)o->source[1] * g->pitch + (size_t)o->source[2];
    if (velocity_range(m, slowest, fastest, message, message_size) != 0) {
        return -1;
    }
    return place_receivers(m, o, message, message_size);
}

int model_complete(model *m, const minimod_options *o, double slowest, double fastest,
                   char *message, size_t message_size) {
    const grid *g = &m->part;
    const double limit = MINIMOD_STABILITY_LIMIT * o->dx / fastest;
    if (o->dt >= limit) {
        snprintf(message, message_size,
                 "--dt %g is unstable: with --dx %g and %g m/s it must be below %g s", o->dt, o->dx,
                 fastest, limit);
        return -1;
    }
    m->dt = o->dt > 0 ? o->dt : 0.9 * limit;
    // A Ricker wavelet holds little above 2.5 times its peak frequency.
    m->frequency = o->frequency > 0 ? o->frequency : slowest / (2.5 * 4 * o->dx);
    m->medium.damp_x = allocate((size_t)g->local_nx);
    m->medium.damp_y = allocate((size_t)g->ny);
    m->medium.damp_z = allocate(((size_t)g->nz + LINE - 1) / LINE * LINE);
    fill_sponge(m->medium.damp_x, g->first_x, g->local_nx, g->nx, o->sponge);
    fill_sponge(m->medium.damp_y, 0, g->ny, g->ny, o->sponge);
    fill_sponge(m->medium.damp_z, 0, g->nz, g->nz, o->sponge);
    // The velocities become the coefficients in place; rows' ends stay zero.
    const float scale = (float)(m->dt / o->dx);
    m->medium.factor = m->velocity;
    m->velocity = NULL;
    const size_t count = (size_t)g->local_nx * g->plane;
    for (size_t i = 0; i < count; ++i) {
        const float courant = m->medium.factor[i] * scale;
        m->medium.factor[i] = courant * courant;
    }
    if (m->source_x >= 0 && m->source_x < g->local_nx) {
        const float factor = m->medium.factor[(size_t)m->source_x * g->plane + m->source_at];
        m->source_scale = factor / (float)o->dx; // v^2 dt^2 / dx^3: a point source of unit strength
    }
    return 0;
}

void model_free(model *m) {
    free(m->velocity);
    free(m->medium.factor);
    free(m->medium.damp_x);
    free(m->medium.damp_y);
    free(m->medium.damp_z);
    free(m->receivers);
    *m = (model){.velocity = NULL};
}

static double ricker(double frequency, double time) {
    const double a = PI * frequency * (time - 1.2 / frequency);
    return (1 - 2 * a * a) * exp(-a * a);
}

float model_push(const model *m, int step) {
    return (float)ricker(m->frequency, (step - 1) * m->dt);
}

void model_advance(const model *m, float *field, float *now, int step, int x_begin, int x_end,
                   row_form form) {
    minimod_step(&m->part, &m->medium, field, now, x_begin, x_end, form);
    if (m->source_x >= x_begin && m->source_x < x_end) {
        const float push = model_push(m, step);
        *model_source(m, field) += m->source_scale * push;
    }
}

void model_record(const model *m, float *field, float *trace, int x_begin, int x_end) {
    for (int r = 0; r < m->num_receivers; ++r) {
        const float *point = model_receiver(m, field, r, x_begin, x_end);
        if (point != NULL) {
            trace[r] = *point;
        }
    }
}
