// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dpu/device_ranges.h"

#include "common/clock.h"
#include "dpu/parts.h"

#include <omp.h>

void ranges_enter(part *own, const array_range *ranges, int count) {
    const double start = seconds_now();
    const int device = own->device;
    for (int i = 0; i < count; ++i) {
        double *const data = ranges[i].data;
        const size_t n = ranges[i].count;
        if (ranges[i].send) {
#pragma omp target enter data map(to : data[0 : n]) device(device)
        } else {
#pragma omp target enter data map(alloc : data[0 : n]) device(device)
        }
    }
    own->transfer += seconds_now() - start;
}

void ranges_leave(part *own, const array_range *ranges, int count) {
    const double start = seconds_now();
    const int device = own->device;
    for (int i = 0; i < count; ++i) {
        double *const data = ranges[i].data;
        double *const back = ranges[i].back;
        const size_t n = ranges[i].count;
        const size_t back_count = ranges[i].back_count;
        if (back_count > 0) {
#pragma omp target update from(back[0 : back_count]) device(device)
        }
#pragma omp target exit data map(release : data[0 : n]) device(device)
    }
    own->transfer += seconds_now() - start;
}

double parts_run_on_host(const dpu_kernel *kernel, const problem *p) {
    part all = part_make(kernel->units(&p->o), 0, 1, omp_get_initial_device());
    const double start = seconds_now();
    kernel->work(p, &all);
    return seconds_now() - start;
}
