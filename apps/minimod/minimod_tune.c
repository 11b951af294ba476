// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "minimod/minimod_tune.h"

#include "common/clock.h"
#include "minimod/minimod_tile.h"

#include <math.h>

enum { FORMS = 4 };

// The first is rows_untried().
static const row_form all_forms[FORMS] = {{.whole = 1, .fetch = 1},
                                          {.whole = 1, .fetch = 0},
                                          {.whole = 0, .fetch = 1},
                                          {.whole = 0, .fetch = 0}};

// Another form than the first must be faster by more than what measurements vary.
static row_form fastest(const double seconds[FORMS]) {
    int best = 0;
    for (int i = 1; i < FORMS; ++i) {
        best = seconds[i] < (best == 0 ? 0.95 : 1) * seconds[best] ? i : best;
    }
    return all_forms[best];
}

static double time_of(rows_trial *trial, const model *m, float *fields[2], int form, int x_begin,
                      int x_end) {
    const double start = seconds_now();
    trial(m, fields, all_forms[form], x_begin, x_end);
    return seconds_now() - start;
}

tuned_rows tune_rows(const model *m, float *fields[2], rows_trial *trial) {
    tuned_rows tuned = {rows_untried(), rows_untried()};
    const int part = m->part.local_nx / FORMS / X_BLOCK * X_BLOCK;
    if (part == 0) {
        return tuned;
    }
    // In a round, each form computes a part that no other has touched in this round: what a cache
    // keeps from one round to the next, it keeps from step to step as well. The slowest round of
    // each does not count: something else may have run.
    double memory[FORMS] = {0};
    double slowest[FORMS] = {0};
    for (int round = 0; round < FORMS; ++round) {
        for (int i = 0; i < FORMS; ++i) {
            const int x = (round + i) % FORMS * part;
            const double seconds = time_of(trial, m, fields, i, x, x + part);
            memory[i] += seconds;
            slowest[i] = fmax(slowest[i], seconds);
        }
    }
    for (int i = 0; i < FORMS; ++i) {
        memory[i] -= slowest[i];
    }
    double cache[FORMS] = {INFINITY, INFINITY, INFINITY, INFINITY};
    for (int round = 0; round < 4; ++round) {
        for (int i = 0; i < FORMS; ++i) {
            cache[i] = fmin(cache[i], time_of(trial, m, fields, i, 0, X_BLOCK));
        }
    }
    tuned.memory = fastest(memory);
    tuned.cache = fastest(cache);
    return tuned;
}
