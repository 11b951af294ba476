// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A progress bar on standard output, redrawn at most ten times a second.
#ifndef APPS_COMMON_PROGRESS_H
#define APPS_COMMON_PROGRESS_H

typedef struct progress {
    const char *label;
    const char *rate_unit;
    double rate_per_item; // items per second times this is the rate shown
    int total;
    int enabled;
    double started;
    double drawn;
} progress;

// mode: 1 always, 0 never, -1 if standard output is a terminal.
void progress_start(progress *bar, const char *label, int total, int mode, double rate_per_item,
                    const char *rate_unit);
void progress_update(progress *bar, int done);
// Draws the full bar and ends the line.
void progress_finish(progress *bar);

#endif
