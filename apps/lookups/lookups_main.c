// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cross-section lookups on all devices of one process, in plain OpenMP. Every device has all
// tables; events are distributed, and only a checksum of their results returns.
#include "common/clock.h"
#include "common/devices.h"
#include "common/options.h"
#include "lookups/grid_kernel.h"
#include "lookups/poles_kernel.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct lookup_options {
    const char *devices;
    int lookups;    // in a step, of all devices
    int per_device; // in a step, of each; 0: `lookups`
    int steps;
    int nuclides, points, poles; // 0: default of the kind
    int check;
} lookup_options;

typedef struct lookup_result {
    double enter;    // seconds to bring the tables to the devices
    double *seconds; // of each step
    uint64_t checksum;
} lookup_result;

static uint64_t look_up(const tables *t, int is_poles, int device, uint64_t first, uint64_t end) {
    const tables sizes = *t;
    const double *const values = t->values;
    const int *const indices = t->indices;
    uint64_t sum = 0;
#pragma omp target parallel for schedule(static) reduction(+ : sum) device(device) map(to : sizes) \
    map(tofrom : sum) map(present, alloc : values[0 : t->num_values])                              \
    map(present, alloc : indices[0 : t->num_indices])
    for (uint64_t i = first; i < end; ++i) {
        sum += is_poles ? poles_lookup(&sizes, values, indices, i)
                        : grid_lookup(&sizes, values, indices, i);
    }
    return sum;
}

static uint64_t look_up_on_host(const tables *t, int is_poles, uint64_t events) {
    uint64_t sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (uint64_t i = 0; i < events; ++i) {
        sum += is_poles ? poles_lookup(t, t->values, t->indices, i)
                        : grid_lookup(t, t->values, t->indices, i);
    }
    return sum;
}

// Drives one device from one host thread; all threads synchronise after each step.
static uint64_t drive(const tables *t, const lookup_kind *kind, int device, int index, int count,
                      uint64_t events, int steps, lookup_result *result) {
    const double *const values = t->values;
    const int *const indices = t->indices;
    uint64_t sum = 0;
    double start = seconds_now();
#pragma omp target enter data device(device) map(to : values[0 : t -> num_values])                 \
    map(to : indices[0 : t->num_indices])
#pragma omp barrier
    if (index == 0) {
        result->enter = seconds_now() - start;
    }
    for (int step = 0; step < steps; ++step) {
        const uint64_t base = (uint64_t)step * events;
        const uint64_t first = base + events * (uint64_t)index / (uint64_t)count;
        const uint64_t end = base + events * ((uint64_t)index + 1) / (uint64_t)count;
        start = seconds_now();
        sum += look_up(t, kind->is_poles, device, first, end);
#pragma omp barrier
        if (index == 0) {
            result->seconds[step] = seconds_now() - start;
        }
    }
#pragma omp target exit data device(device) map(release : values[0 : t -> num_values])             \
    map(release : indices[0 : t->num_indices])
    return sum;
}

static void run_on_devices(const tables *t, const lookup_kind *kind, const device_range *range,
                           uint64_t events, int steps, lookup_result *result) {
    // Devices load the program when they are used for the first time.
    for (int d = range->first; d < range->first + range->count; ++d) {
#pragma omp target device(d)
        {
        }
    }
    uint64_t checksum = 0;
#pragma omp parallel num_threads(range->count) reduction(+ : checksum)
    {
        const int index = omp_get_thread_num();
        checksum +=
            drive(t, kind, range->first + index, index, range->count, events, steps, result);
    }
    result->checksum = checksum;
}

static int ascending(const void *a, const void *b) {
    const double left = *(const double *)a;
    const double right = *(const double *)b;
    return (left > right) - (left < right);
}

// Prints one line for scripts; the efficiency of D devices is the median of a run on one device
// over that of this run.
static void print_json(const lookup_kind *kind, const lookup_options *o, const device_range *range,
                       const double *sorted, uint64_t events, uint64_t checksum) {
    printf("{\"app\": \"lookups\", \"kind\": \"%s\", \"mode\": \"weak\", \"first_device\": %d, "
           "\"devices\": %d, \"per_device_lookups\": %d, \"steps\": %d, \"step_seconds\": "
           "{\"median\": %.9f, \"min\": %.9f, \"max\": %.9f}, \"lookups_per_second\": %.1f, "
           "\"checksum\": \"%016llx\"}\n",
           kind->name, range->first, range->count, o->per_device, o->steps, sorted[o->steps / 2],
           sorted[0], sorted[o->steps - 1], (double)events / sorted[o->steps / 2],
           (unsigned long long)checksum);
}

static void report(const tables *t, const lookup_kind *kind, const lookup_options *o,
                   const device_range *range, uint64_t events, lookup_result *result) {
    const double bytes = (double)(t->num_values * sizeof(double) + t->num_indices * sizeof(int));
    printf("lookups     %s: %s; %d nuclides, %.1f MB on each device\n", kind->name, kind->what,
           t->nuclides, bytes * 1e-6);
    printf("devices     %d to %d (OpenMP), driven by one process; tables there in %.4f s\n",
           range->first, range->first + range->count - 1, result->enter);
    for (int step = 0; o->per_device > 0 && step < o->steps; ++step) {
        printf("step        %d: %.6f s\n", step + 1, result->seconds[step]);
    }
    qsort(result->seconds, (size_t)o->steps, sizeof *result->seconds, ascending);
    const double median = result->seconds[o->steps / 2];
    printf("time        %.6f s per step of %llu lookups, median of %d\n", median,
           (unsigned long long)events, o->steps);
    printf("speed       %.1f lookups/s\n", (double)events / median);
    printf("checksum    %016llx\n", (unsigned long long)result->checksum);
}

static int check(const tables *t, const lookup_kind *kind, uint64_t events, uint64_t checksum) {
    char text[128];
    const int plausible = kind->plausible(t, text, sizeof text);
    const int equal = look_up_on_host(t, kind->is_poles, events) == checksum;
    printf("check       %s: checksum %s the host's; %s\n", equal && plausible ? "passed" : "FAILED",
           equal ? "equals" : "DIFFERS FROM", text);
    return equal && plausible;
}

static int run(const lookup_kind *kind, const lookup_options *o, const device_range *range) {
    tables t;
    const int points = o->points > 0 ? o->points : kind->is_poles ? 100 : 1000;
    lookup_result result = {.seconds = calloc((size_t)o->steps, sizeof(double))};
    if (result.seconds == NULL || kind->make(&t, o->nuclides, points, o->poles) != 0) {
        fprintf(stderr, "lookups: no memory for the tables\n");
        return 1;
    }
    const uint64_t events =
        o->per_device > 0 ? (uint64_t)o->per_device * (uint64_t)range->count : (uint64_t)o->lookups;
    run_on_devices(&t, kind, range, events, o->steps, &result);
    report(&t, kind, o, range, events, &result);
    const int right = !o->check || check(&t, kind, events * (uint64_t)o->steps, result.checksum);
    if (o->per_device > 0) {
        print_json(kind, o, range, result.seconds, events, result.checksum);
    }
    free(t.values);
    free(t.indices);
    free(result.seconds);
    return right ? 0 : 1;
}

static int check_options(const void *options, char *message, size_t message_size) {
    const lookup_options *const o = options;
    if (o->lookups < 1 || o->steps < 1) {
        snprintf(message, message_size, "--lookups and --steps must be at least 1");
        return 0;
    }
    if (o->nuclides < 1 || o->nuclides > 1000 || o->points == 1 || o->points > 20000) {
        snprintf(message, message_size,
                 "--nuclides %d, --points %d: needs 1 to 1000 nuclides and 2 to 20000 points",
                 o->nuclides, o->points);
        return 0;
    }
    if (o->poles < 1 || o->poles > 40) {
        snprintf(message, message_size, "--poles %d must be between 1 and 40", o->poles);
        return 0;
    }
    return 1;
}

int main(int argc, char **argv) {
    lookup_options o = {.lookups = 1000000, .steps = 3, .nuclides = 60, .poles = 4, .check = 1};
    const option_row rows[] = {
        {"--devices", OPTION_TEXT, 1, 0, &o.devices, "FIRST:COUNT", "which to use [all]"},
        {"--lookups", OPTION_INT, 1, 0, &o.lookups, "N", "per step, of all devices [1000000]"},
        {"--per-device-lookups", OPTION_INT, 1, 0, &o.per_device, "N",
         "per step, of each: weak scaling, with a line of JSON"},
        {"--steps", OPTION_INT, 1, 0, &o.steps, "N", "measured one by one [3]"},
        {"--nuclides", OPTION_INT, 1, 0, &o.nuclides, "N", "of all materials [60]"},
        {"--points", OPTION_INT, 1, 0, &o.points, "N",
         "of a nuclide: grid points [1000] or windows [100]"},
        {"--poles", OPTION_INT, 1, 0, &o.poles, "N", "poles: in a window [4]"},
        {"--check", OPTION_SWITCH, 1, 0, &o.check, "on|off", "compare with the host [on]"},
    };
    // The kind comes before the options.
    const int named = argc > 1 && argv[1][0] != '-';
    int status = 0;
    if (options_handle(rows, sizeof rows / sizeof rows[0], argc - named, argv + named,
                       check_options, &o, "lookups grid|poles", "Cross-section lookups on devices.",
                       0, &status)) {
        return status;
    }
    const lookup_kind *const kinds[] = {&lookup_grid, &lookup_poles};
    for (int k = 0; named && k < 2; ++k) {
        if (strcmp(argv[1], kinds[k]->name) == 0) {
            char message[256];
            device_range range;
            if (devices_choose(o.devices, &range, message, sizeof message)) {
                return run(kinds[k], &o, &range);
            }
            fprintf(stderr, "lookups: %s\n", message);
            return 2;
        }
    }
    fprintf(stderr, "lookups: needs grid or poles\n");
    return 2;
}
