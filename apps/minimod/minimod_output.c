// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "minimod/minimod_run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static void write_seismogram(FILE *file, const minimod_options *o, const model *m,
                             const float *seismogram) {
    fprintf(file, "time_s");
    for (int r = 0; r < m->num_receivers; ++r) {
        const int *at = m->receivers + 3 * (size_t)r;
        fprintf(file, ",x%d_y%d_z%d", at[0], at[1], at[2]);
    }
    for (int step = 1; step <= o->steps; ++step) {
        fprintf(file, "\n%.9g", step * m->dt);
        for (int r = 0; r < m->num_receivers; ++r) {
            const size_t at = (size_t)(step - 1) * (size_t)m->num_receivers + (size_t)r;
            fprintf(file, ",%.9g", (double)seismogram[at]);
        }
    }
    fprintf(file, "\n");
}

static void write_json(FILE *file, const minimod_options *o, const model *m, int ranks,
                       const char *library) {
    fprintf(file, "{\n  \"library\": \"%s\",\n  \"ranks\": %d,\n", library, ranks);
    fprintf(file, "  \"grid\": [%d, %d, %d],\n  \"steps\": %d,\n", o->grid[0], o->grid[1],
            o->grid[2], o->steps);
    fprintf(file, "  \"dx\": %.9g,\n  \"dt\": %.9g,\n  \"frequency\": %.9g,\n", o->dx, m->dt,
            m->frequency);
    fprintf(file, "  \"source\": [%d, %d, %d],\n  \"sponge\": %d,\n  \"receivers\": [",
            o->source[0], o->source[1], o->source[2], o->sponge);
    for (int r = 0; r < m->num_receivers; ++r) {
        const int *at = m->receivers + 3 * (size_t)r;
        fprintf(file, "%s[%d, %d, %d]", r > 0 ? ", " : "", at[0], at[1], at[2]);
    }
    fprintf(file, "]\n}\n");
}

static FILE *open_in(const char *folder, const char *name, char *message, size_t message_size) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (file == NULL) {
        snprintf(message, message_size, "--out: cannot write %s: %s", path, strerror(errno));
    }
    return file;
}

// Closes the file, which detects a full disk at the latest.
static int close_written(FILE *file, const char *name, char *message, size_t message_size) {
    const int failed = ferror(file);
    if (fclose(file) != 0 || failed) {
        snprintf(message, message_size, "--out: cannot write %s: %s", name, strerror(errno));
        return -1;
    }
    return 0;
}

int run_write(const minimod_options *o, const model *m, int ranks, const char *library,
              const float *slice, const float *seismogram, char *message, size_t message_size) {
    if (mkdir(o->out, 0777) != 0 && errno != EEXIST) {
        snprintf(message, message_size, "--out %s: %s", o->out, strerror(errno));
        return -1;
    }
    const char *const names[3] = {"slice.raw", "seismogram.csv", "run.json"};
    for (int i = 0; i < 3; ++i) {
        FILE *file = open_in(o->out, names[i], message, message_size);
        if (file == NULL) {
            return -1;
        }
        if (i == 0) {
            fwrite(slice, sizeof(float), (size_t)o->grid[0] * (size_t)o->grid[2], file);
        } else if (i == 1) {
            write_seismogram(file, o, m, seismogram);
        } else {
            write_json(file, o, m, ranks, library);
        }
        if (close_written(file, names[i], message, message_size) != 0) {
            return -1;
        }
    }
    return 0;
}
