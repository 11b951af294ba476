// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "common/progress.h"

#include "common/clock.h"

#include <stdio.h>
#include <unistd.h>

static void draw(progress *bar, int done, double now) {
    enum { WIDTH = 40 };
    char cells[WIDTH + 1];
    const int filled = bar->total > 0 ? (int)((long)done * WIDTH / bar->total) : WIDTH;
    for (int i = 0; i < WIDTH; ++i) {
        cells[i] = i < filled ? '#' : '.';
    }
    cells[WIDTH] = '\0';
    const double elapsed = now - bar->started;
    const double rate = elapsed > 0 ? done / elapsed * bar->rate_per_item : 0;
    printf("\r%-9s [%s] %3d%%  %d/%d  %.2f %s ", bar->label, cells,
           bar->total > 0 ? (int)((long)done * 100 / bar->total) : 100, done, bar->total, rate,
           bar->rate_unit);
    fflush(stdout);
    bar->drawn = now;
}

void progress_start(progress *bar, const char *label, int total, int mode, double rate_per_item,
                    const char *rate_unit) {
    const int enabled = mode < 0 ? isatty(STDOUT_FILENO) : mode;
    *bar = (progress){label, rate_unit, rate_per_item, total, enabled, seconds_now(), 0};
}

void progress_update(progress *bar, int done) {
    if (bar->enabled) {
        const double now = seconds_now();
        if (now - bar->drawn >= 0.1) {
            draw(bar, done, now);
        }
    }
}

void progress_finish(progress *bar) {
    if (bar->enabled) {
        draw(bar, bar->total, seconds_now());
        printf("\n");
        fflush(stdout);
    }
}
