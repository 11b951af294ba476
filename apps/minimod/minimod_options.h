// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Options of a run of Minimod.
#ifndef MINIMOD_OPTIONS_H
#define MINIMOD_OPTIONS_H

#include <stddef.h>

typedef enum minimod_verdict { MINIMOD_RUN, MINIMOD_HELP, MINIMOD_BAD } minimod_verdict;

typedef struct minimod_options {
    int grid[3]; // points along x, y, z
    int steps;
    double dx;             // m
    double dt;             // s; 0: from the stability limit
    int source[3];         // grid indices; -1: the middle of x and y, near the top
    double frequency;      // Hz, of the Ricker wavelet; 0: ten points per wavelength
    const char *receivers; // a number (a line along X), a file of "x y z" lines, or NULL: up to 32
    const char *velocity;  // file of float32 [nx][ny][nz], m/s; NULL: `model`
    const char *model;     // "layers" or "constant"
    const char *kernel;    // "auto", "rows" or "columns"
    const char *region;    // "auto", "step", "run" or "plan"
    int wavefront;         // steps that a sweep along X computes together
    int teams;             // of a region; 0: as the device needs
    int sponge;            // width in points; -1: 20, less on small grids
    int overlap;
    int check;
    const char *out;
    int progress; // 1, 0, or -1: if standard output is a terminal
} minimod_options;

// Fills `options` from argv and checks what can be checked without the model. On MINIMOD_BAD,
// `message` names the option, its value and what is allowed.
minimod_verdict minimod_read_options(minimod_options *options, int ranks, int argc, char **argv,
                                     char *message, size_t message_size);
void minimod_print_help(void);

#endif
