// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parts on OpenMP's devices, driven by a host thread each. All directives are plain OpenMP. Kernels
// are parallel regions without teams: LLVM 19 aborts when a thread of a parallel region starts
// teams on a host device.
//
// A device maps a range of the host's array, and ranges of neighbours overlap by the halos. So a
// plane that one device computes and the next device only reads has one host address, which
// identifies both device copies.
#include "common/clock.h"
#include "common/devices.h"
#include "dpu/device_ranges.h"
#include "dpu/parts.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static device_range range;

void parts_begin(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
}

void parts_end(void) {}

int parts_host(void) { return 1; }

const char *parts_name(void) { return "devices"; }

int parts_choose(const char *devices, char *message, size_t message_size) {
    return devices_choose(devices, &range, message, message_size) ? range.count : 0;
}

static double *copy_on(int device, double *data) {
    double *const copy = omp_get_mapped_ptr(data, device); // on the host it is `data` itself
    if (copy == NULL) {
        fprintf(stderr, "dpu: device %d has no copy of a range that it works on\n", device);
        abort();
    }
    return copy;
}

double *part_at(const part *own, double *data) { return copy_on(own->device, data); }

static void copy_to(const part *own, int device, double *data, size_t count) {
    if (omp_target_memcpy(copy_on(device, data), copy_on(own->device, data), count * sizeof(double),
                          0, 0, device, own->device) != 0) {
        fprintf(stderr, "dpu: no copy from device %d to device %d\n", own->device, device);
        abort();
    }
}

void part_exchange(part *own, double *low_halo, double *low, double *high, double *high_halo,
                   size_t count) {
    (void)low_halo; // the neighbours fill them
    (void)high_halo;
    if (own->count == 1) {
        return;
    }
    const double start = seconds_now();
    if (own->index > 0) {
        copy_to(own, own->device - 1, low, count);
    }
    if (own->index + 1 < own->count) {
        copy_to(own, own->device + 1, high, count);
    }
    const double copied = seconds_now();
#pragma omp barrier
    own->transfer += copied - start;
    own->wait += seconds_now() - copied;
}

// Returns the seconds of the part's kernels, without transfers and waiting.
static double drive(const dpu_kernel *kernel, const problem *p, part *own) {
    array_range ranges[MAX_RANGES];
    const int count = kernel->ranges(p, own, ranges);
    ranges_enter(own, ranges, count);
    const double entered = seconds_now();
#pragma omp barrier
    own->wait += seconds_now() - entered;
    const double before = own->transfer + own->wait;
    const double start = seconds_now();
    kernel->work(p, own);
    const double work = seconds_now() - start;
    const double kernels = work - (own->transfer + own->wait - before);
    ranges_leave(own, ranges, count);
    return kernels;
}

part_times parts_run(const dpu_kernel *kernel, const problem *p) {
    const int units = kernel->units(&p->o);
    // Devices load the program when they are used for the first time.
    for (int d = range.first; d < range.first + range.count; ++d) {
#pragma omp target device(d)
        {
        }
    }
    double transfer = 0;
    double wait = 0;
    double kernels = 0;
    const double start = seconds_now();
#pragma omp parallel num_threads(range.count) reduction(+ : transfer, wait, kernels)
    {
        const int index = omp_get_thread_num();
        part own = part_make(units, index, range.count, range.first + index);
        kernels = drive(kernel, p, &own);
        transfer = own.transfer;
        wait = own.wait;
    }
    const double total = seconds_now() - start;
    const int n = range.count;
    return (part_times){total, transfer / n, kernels / n, wait / n};
}
