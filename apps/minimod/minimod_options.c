// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "minimod/minimod_options.h"

#include "common/options.h"
#include "minimod/grid.h"

#include <stdio.h>
#include <string.h>

enum { ROWS = 18 };

static void fill_rows(option_row rows[ROWS], minimod_options *o) {
    const option_row table[ROWS] = {
        {"--grid", OPTION_INT, 3, 1, o->grid, "NX NY NZ", "points (one number: a cube) [200]"},
        {"--steps", OPTION_INT, 1, 0, &o->steps, "N", "time steps [400]"},
        {"--dx", OPTION_REAL, 1, 0, &o->dx, "METRES", "grid spacing [10]"},
        {"--dt", OPTION_REAL, 1, 0, &o->dt, "SECONDS", "time step [0.9 of the stability limit]"},
        {"--source", OPTION_INT, 3, 0, o->source, "X Y Z", "grid indices [middle, near the top]"},
        {"--freq", OPTION_REAL, 1, 0, &o->frequency, "HZ",
         "of the Ricker wavelet [10 points per shortest wavelength]"},
        {"--receivers", OPTION_TEXT, 1, 0, &o->receivers, "N|FILE",
         "N on a line along X, or a file with x y z per line [32, or nx]"},
        {"--velocity", OPTION_TEXT, 1, 0, &o->velocity, "FILE",
         "raw float32 m/s, [nx][ny][nz]; replaces --model"},
        {"--model", OPTION_TEXT, 1, 0, &o->model, "layers|constant",
         "1500, 2500, 3500 m/s by depth, or 2000 m/s [layers]"},
        {"--sponge", OPTION_INT, 1, 0, &o->sponge, "N", "absorbing points at each face [20]"},
        {"--overlap", OPTION_SWITCH, 1, 0, &o->overlap, "on|off",
         "exchange halos while the interior is computed [on]"},
        {"--wavefront", OPTION_INT, 1, 0, &o->wavefront, "N",
         "steps that a sweep along X computes together, while planes are in the caches [1]"},
        {"--kernel", OPTION_TEXT, 1, 0, &o->kernel, "auto|rows|columns",
         "form of the loop in target regions: for processors or GPUs [auto]"},
        {"--region", OPTION_TEXT, 1, 0, &o->region, "step|run|plan",
         "minimod-region: a target region for each step, one for all, or a plan of 16 [step]"},
        {"--teams", OPTION_INT, 1, 0, &o->teams, "N",
         "minimod-region: teams of a region [1, or as a GPU has multiprocessors]"},
        {"--check", OPTION_FLAG, 0, 0, &o->check, "", "compare with a one-rank computation"},
        {"--out", OPTION_TEXT, 1, 0, &o->out, "DIR", "write wavefield slice and seismogram"},
        {"--progress", OPTION_AUTO, 1, 0, &o->progress, "on|off|auto",
         "progress bar [auto: on a terminal]"},
    };
    memcpy(rows, table, sizeof table);
}

static int fits(const char *option, const int at[3], const int grid[3], char *message,
                size_t message_size) {
    for (int d = 0; d < 3; ++d) {
        if (at[d] >= grid[d]) {
            snprintf(message, message_size, "%s: %c = %d is outside the grid of %d x %d x %d",
                     option, 'x' + d, at[d], grid[0], grid[1], grid[2]);
            return 0;
        }
    }
    return 1;
}

static int check_options(minimod_options *o, int ranks, char *message, size_t message_size) {
    for (int d = 0; d < 3; ++d) {
        if (o->grid[d] < 2 * HALO || o->grid[d] > 100000) {
            snprintf(message, message_size, "--grid: n%c = %d must be between %d and 100000",
                     'x' + d, o->grid[d], 2 * HALO);
            return 0;
        }
    }
    if (o->grid[0] / ranks < HALO) {
        snprintf(
            message, message_size,
            "%d ranks are too many for nx = %d: each needs at least %d planes, so use at most %d "
            "ranks or --grid with a larger nx",
            ranks, o->grid[0], HALO, o->grid[0] / HALO);
        return 0;
    }
    if (o->steps < 1) {
        snprintf(message, message_size, "--steps must be at least 1");
        return 0;
    }
    if (o->wavefront < 1) {
        snprintf(message, message_size, "--wavefront must be at least 1");
        return 0;
    }
    if (strcmp(o->model, "layers") != 0 && strcmp(o->model, "constant") != 0) {
        snprintf(message, message_size, "--model needs layers or constant, not '%s'", o->model);
        return 0;
    }
    return 1;
}

static void fill_defaults(minimod_options *o) {
    int smallest = o->grid[0];
    for (int d = 1; d < 3; ++d) {
        smallest = o->grid[d] < smallest ? o->grid[d] : smallest;
    }
    if (o->sponge < 0) {
        o->sponge = smallest / 5 < 20 ? smallest / 5 : 20;
    }
    if (o->source[0] < 0) {
        o->source[0] = o->grid[0] / 2;
        o->source[1] = o->grid[1] / 2;
        o->source[2] = o->sponge + 2 < o->grid[2] / 2 ? o->sponge + 2 : o->grid[2] / 2;
    }
}

minimod_verdict minimod_read_options(minimod_options *options, int ranks, int argc, char **argv,
                                     char *message, size_t message_size) {
    *options = (minimod_options){.grid = {200, 200, 200},
                                 .steps = 400,
                                 .dx = 10,
                                 .source = {-1, -1, -1},
                                 .model = "layers",
                                 .kernel = "auto",
                                 .wavefront = 1,
                                 .region = "auto",
                                 .sponge = -1,
                                 .overlap = 1,
                                 .progress = -1};
    option_row rows[ROWS];
    fill_rows(rows, options);
    switch (options_parse(rows, ROWS, argc, argv, message, message_size)) {
    case OPTIONS_HELP:
        return MINIMOD_HELP;
    case OPTIONS_ERROR:
        return MINIMOD_BAD;
    case OPTIONS_RUN:
        break;
    }
    if (!check_options(options, ranks, message, message_size)) {
        return MINIMOD_BAD;
    }
    fill_defaults(options);
    if (options->sponge * 2 > options->grid[0] || options->sponge * 2 > options->grid[1] ||
        options->sponge * 2 > options->grid[2]) {
        snprintf(message, message_size, "--sponge %d is more than half of the grid",
                 options->sponge);
        return MINIMOD_BAD;
    }
    return fits("--source", options->source, options->grid, message, message_size) ? MINIMOD_RUN
                                                                                   : MINIMOD_BAD;
}

void minimod_print_help(void) {
    minimod_options unused = {0};
    option_row rows[ROWS];
    fill_rows(rows, &unused);
    options_print_help(rows, ROWS,
                       "Minimod: acoustic waves, 8th order in space, 2nd in time, split along X.\n"
                       "Usage: minimod [options], under diomp-run (minimod-mpi: under mpirun)\n");
}
