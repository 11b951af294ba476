// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Five kernels on all given devices, and the part of the time that transfers take. This main
// program is shared by OpenMP's devices and by MPI ranks that act as devices.
#include "common/options.h"
#include "dpu/parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUM_KERNELS = 5 };
static const dpu_kernel *const kernels[NUM_KERNELS] = {&dpu_heat, &dpu_ep, &dpu_lbm, &dpu_penta,
                                                       &dpu_mriq};

typedef struct dpu_choice {
    dpu_options o;
    int check;
    const char *devices;
} dpu_choice;

static void free_arrays(problem *p) {
    for (int i = 0; i < MAX_ARRAYS; ++i) {
        free(p->array[i]);
    }
}

// With MPI, a rank that acts as a device uses only its part of the arrays; the rest stays
// untouched.
static problem make_problem(const dpu_kernel *kernel, const dpu_options *o, int with_inputs) {
    problem p = {.o = *o};
    kernel->shape(&p);
    for (int i = 0; i < MAX_ARRAYS && p.count[i] > 0; ++i) {
        p.array[i] = calloc(p.count[i], sizeof(double));
        if (p.array[i] == NULL) {
            fprintf(stderr, "dpu: no memory for %zu doubles\n", p.count[i]);
            exit(1);
        }
    }
    if (with_inputs) {
        kernel->fill(&p);
    }
    return p;
}

// Returns the largest difference relative to the largest value of `host`; NaN if any value is NaN.
static double compare(const problem *ours, const problem *host) {
    const double *const a = ours->array[ours->result];
    const double *const b = host->array[host->result];
    double largest = 0;
    double value = 0;
    for (size_t i = 0; i < host->count[host->result]; ++i) {
        const double gap = fabs(a[i] - b[i]);
        largest = gap <= largest ? largest : gap; // keeps a NaN
        value = fmax(value, fabs(b[i]));
    }
    return value > 0 ? largest / value : NAN;
}

static int check(const dpu_kernel *kernel, const problem *ours, const problem *host) {
    char text[128];
    const double apart = compare(ours, host);
    const int equal = apart <= kernel->tolerance;
    const int plausible = kernel->plausible(host, text, sizeof text);
    printf("check       %s: %s ", equal && plausible ? "passed" : "FAILED", kernel->name);
    if (apart == 0) {
        printf("equals the host's result bit for bit");
    } else {
        printf("%s %.1e of the host's result", equal ? "is within" : "is NOT near enough, by",
               apart);
    }
    printf("; %s%s\n", plausible ? "" : "NOT PLAUSIBLE: ", text);
    return equal && plausible;
}

static void print_head(void) {
    printf("%-6s %8s  %-26s %9s %11s %10s %9s %8s %9s\n", "kernel", parts_name(), "problem",
           "total, s", "transfer, s", "kernels, s", "waiting,s", "comm., %", "host, s");
}

static void print_row(const dpu_kernel *kernel, const dpu_options *o, int parts,
                      const part_times *t, double host) {
    char text[64];
    kernel->describe(o, text, sizeof text);
    printf("%-6s %8d  %-26s %9.4f %11.4f %10.4f %9.4f %8.2f ", kernel->name, parts, text, t->total,
           t->transfer, t->kernel, t->wait, 100 * t->transfer / t->total);
    if (host > 0) {
        printf("%9.4f\n", host);
    } else {
        printf("%9s\n", "-");
    }
}

// Returns 1 if the host's check has passed.
static int run(const dpu_kernel *kernel, const dpu_choice *c, int parts) {
    problem ours = make_problem(kernel, &c->o, parts_host());
    const part_times times = parts_run(kernel, &ours);
    int right = 1;
    if (parts_host()) {
        problem host = {.array = {NULL}};
        double seconds = 0;
        if (c->check) {
            host = make_problem(kernel, &c->o, 1);
            seconds = parts_run_on_host(kernel, &host);
        }
        print_row(kernel, &c->o, parts, &times, seconds);
        right = !c->check || check(kernel, &ours, &host);
        fflush(stdout);
        free_arrays(&host);
    }
    free_arrays(&ours);
    return right;
}

static int check_options(const void *options, char *message, size_t message_size) {
    const dpu_options *const o = &((const dpu_choice *)options)->o;
    if (o->grid < 4 || o->grid > 512) {
        snprintf(message, message_size, "--grid %d must be between 4 and 512", o->grid);
        return 0;
    }
    if (o->steps < 1 || o->fields < 1 || o->samples < 1) {
        snprintf(message, message_size, "--steps, --fields and --samples must be at least 1");
        return 0;
    }
    if (o->exponent < 16 || o->exponent > 36) {
        snprintf(message, message_size, "--pairs %d must be between 16 and 36", o->exponent);
        return 0;
    }
    return 1;
}

static int has_enough_units(const dpu_kernel *kernel, const dpu_choice *c, int parts) {
    const int units = kernel->units(&c->o);
    if (units < parts && parts_host()) {
        fprintf(stderr, "dpu: %s: %d %s are too many, this size has %d parts\n", kernel->name,
                parts, parts_name(), units);
    }
    return units >= parts;
}

static int run_chosen(const char *name, const dpu_choice *c, int parts) {
    int found = 0;
    int right = 1;
    for (int k = 0; k < NUM_KERNELS; ++k) {
        if (strcmp(name, "all") == 0 || strcmp(name, kernels[k]->name) == 0) {
            if (!has_enough_units(kernels[k], c, parts)) {
                return 2;
            }
            if (parts_host() && !found++) {
                print_head();
            }
            right &= run(kernels[k], c, parts);
        }
    }
    return right ? 0 : 1;
}

static int is_known_kernel(const char *name) {
    int found = strcmp(name, "all") == 0;
    for (int k = 0; k < NUM_KERNELS; ++k) {
        found |= strcmp(name, kernels[k]->name) == 0;
    }
    return found;
}

static int start(int argc, char **argv) {
    dpu_choice c = {.o = {.grid = 96, .steps = 20, .fields = 8, .exponent = 24, .samples = 256},
                    .check = 1};
    const option_row rows[] = {
        {"--devices", OPTION_TEXT, 1, 0, &c.devices, "FIRST:COUNT", "which to use [all]"},
        {"--grid", OPTION_INT, 1, 0, &c.o.grid, "N", "points or voxels of an edge; not ep [96]"},
        {"--steps", OPTION_INT, 1, 0, &c.o.steps, "N", "of heat, lbm and penta [20]"},
        {"--fields", OPTION_INT, 1, 0, &c.o.fields, "N", "of penta [8]"},
        {"--pairs", OPTION_INT, 1, 0, &c.o.exponent, "M", "ep: 2^M pairs [24]"},
        {"--samples", OPTION_INT, 1, 0, &c.o.samples, "N", "of k space, mriq [256]"},
        {"--check", OPTION_SWITCH, 1, 0, &c.check, "on|off", "compare with the host's result [on]"},
    };
    // The kernel's name comes before the options.
    const int named = argc > 1 && argv[1][0] != '-';
    int status = 0;
    if (options_handle(rows, sizeof rows / sizeof rows[0], argc - named, argv + named,
                       check_options, &c, "dpu heat|ep|lbm|penta|mriq|all",
                       "Kernels on devices, and the share of the transfers in their time.",
                       parts_host() ? 0 : 1, &status)) {
        return status;
    }
    char message[256] = "needs a kernel: heat, ep, lbm, penta, mriq or all";
    const int parts =
        named && is_known_kernel(argv[1]) ? parts_choose(c.devices, message, sizeof message) : 0;
    if (parts == 0) {
        if (parts_host()) {
            fprintf(stderr, "dpu: %s\n", message);
        }
        return 2;
    }
    return run_chosen(argv[1], &c, parts);
}

int main(int argc, char **argv) {
    parts_begin(&argc, &argv);
    const int status = start(argc, argv);
    parts_end();
    return status;
}
