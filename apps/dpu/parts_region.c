// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parts on the devices of ranks, one each, which exchange their halos by themselves: in a target
// region each device puts its edges into the memory of its neighbours' devices, with a signal, and
// waits for theirs. With remote devices the data goes from service to service, as the authors of
// ODOS (Usman et al. 2023) propose for DPUs.
#include "common/clock.h"
#include "dpu/device_ranges.h"
#include "dpu/parts.h"

#include <diomp.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { LOW, HIGH, SIDES };

// What the neighbours write, in symmetric memory of the device. A part puts the values of a step
// after it has received those of the step before, which its neighbour has put after it had read the
// step before that: two buffers per side suffice.
static struct {
    double *halos;     // [step % 2][side][count]
    uint64_t *arrived; // [side]: the last step whose values are there
    size_t count;      // of each buffer
    uint64_t step;     // of the last exchange
} links;

void parts_begin(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
}

void parts_end(void) { ompx_finalize(); }

int parts_host(void) { return ompx_rank_num() == 0; }

const char *parts_name(void) { return "ranks"; }

int parts_choose(const char *devices, char *message, size_t message_size) {
    if (devices != NULL) {
        snprintf(message, message_size, "--devices: each rank drives its own device");
        return 0;
    }
    if (omp_get_num_devices() == 0) {
        snprintf(message, message_size, "rank %d has no device", ompx_rank_num());
        return 0;
    }
    return ompx_num_ranks();
}

static void require(int is_good, const char *what) {
    if (!is_good) {
        fprintf(stderr, "dpu: %s: %s\n", what, ompx_last_error());
        ompx_abort(1);
    }
}

double *part_at(const part *own, double *data) {
    double *const copy = omp_get_mapped_ptr(data, own->device); // on the host it is `data` itself
    require(copy != NULL, "a device has no copy of a range that it works on");
    return copy;
}

static void *symmetric(size_t nbytes, int device) {
    void *const made = ompx_target_alloc(nbytes, device, ompx_symmetric_mem_alloc);
    require(made != NULL, "ompx_target_alloc");
    return made;
}

// Collective.
static void make_links(int device, size_t count) {
    if (links.halos != NULL) {
        ompx_target_free(links.halos, device);
    } else {
        links.arrived = symmetric(SIDES * sizeof *links.arrived, device);
        uint64_t *const arrived = links.arrived;
#pragma omp target is_device_ptr(arrived) device(device)
        arrived[LOW] = arrived[HIGH] = 0;
    }
    links.count = count;
    links.halos = symmetric(2 * SIDES * count * sizeof *links.halos, device);
    require(ompx_barrier() == 0, "ompx_barrier");
}

static void drop_links(int device) {
    if (links.halos != NULL) {
        ompx_target_free(links.halos, device);
        ompx_target_free(links.arrived, device);
        links.halos = NULL;
        links.step = 0;
    }
}

#pragma omp declare target
static inline void copy_values(double *restrict to, const double *restrict from, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        to[i] = from[i];
    }
}
#pragma omp end declare target

void part_exchange(part *own, double *low_halo, double *low, double *high, double *high_halo,
                   size_t count) {
    if (own->count == 1) {
        return;
    }
    if (count > links.count || links.halos == NULL) {
        make_links(own->device, count);
    }
    const double start = seconds_now();
    const uint64_t step = ++links.step;
    double *const halos = links.halos + step % 2 * SIDES * links.count;
    double *const from_low = halos;
    double *const from_high = halos + links.count;
    uint64_t *const arrived = links.arrived;
    double *const device_low = part_at(own, low);
    double *const device_high = part_at(own, high);
    double *const device_low_halo = part_at(own, low_halo);
    double *const device_high_halo = part_at(own, high_halo);
    const int below = own->index - 1;
    const int above = own->index + 1 < own->count ? own->index + 1 : -1;
    const size_t nbytes = count * sizeof(double);
    int status = 0;
#pragma omp target device(own->device) map(tofrom : status) is_device_ptr(                         \
        from_low, from_high, arrived, device_low, device_high, device_low_halo, device_high_halo)
    {
        if (below >= 0) { // this device's low edge is the upper halo of the one below
            status |= ompx_put_signal(below, from_high, device_low, nbytes, &arrived[HIGH], step,
                                      OMPX_SIGNAL_SET);
        }
        if (above >= 0) {
            status |= ompx_put_signal(above, from_low, device_high, nbytes, &arrived[LOW], step,
                                      OMPX_SIGNAL_SET);
        }
        if (below >= 0 && status == 0) {
            status |= ompx_signal_wait(&arrived[LOW], OMPX_CMP_GE, step);
            copy_values(device_low_halo, from_low, count);
        }
        if (above >= 0 && status == 0) {
            status |= ompx_signal_wait(&arrived[HIGH], OMPX_CMP_GE, step);
            copy_values(device_high_halo, from_high, count);
        }
    }
    require(status == 0, "an exchange between devices");
    own->transfer += seconds_now() - start;
}

// All ranks get the inputs of rank 0.
static void share_inputs(const problem *p) {
    for (int i = 0; i < MAX_ARRAYS; ++i) {
        if (p->count[i] > 0) {
            require(ompx_bcast_from(p->array[i], p->count[i] * sizeof(double), 0,
                                    ompx_group_world) == 0,
                    "ompx_bcast_from");
        }
    }
}

// Rank 0 gets the results of all parts.
static void collect_results(const dpu_kernel *kernel, const problem *p, int units) {
    for (int r = 1; r < ompx_num_ranks(); ++r) {
        const part theirs = part_make(units, r, ompx_num_ranks(), 0);
        array_range ranges[MAX_RANGES];
        const int count = kernel->ranges(p, &theirs, ranges);
        for (int i = 0; i < count; ++i) {
            if (ranges[i].back_count > 0) {
                require(ompx_bcast_from(ranges[i].back, ranges[i].back_count * sizeof(double), r,
                                        ompx_group_world) == 0,
                        "ompx_bcast_from");
            }
        }
    }
}

part_times parts_run(const dpu_kernel *kernel, const problem *p) {
    const int units = kernel->units(&p->o);
    const int ranks = ompx_num_ranks();
    part own = part_make(units, ompx_rank_num(), ranks, omp_get_default_device());
    share_inputs(p);
#pragma omp target device(own.device)
    {
    } // the device loads the program
    require(ompx_barrier() == 0, "ompx_barrier");
    const double start = seconds_now();
    array_range ranges[MAX_RANGES];
    const int count = kernel->ranges(p, &own, ranges);
    ranges_enter(&own, ranges, count);
    require(ompx_barrier() == 0, "ompx_barrier");
    const double before = own.transfer;
    const double begin = seconds_now();
    kernel->work(p, &own);
    const double work = seconds_now() - begin;
    const double kernels = work - (own.transfer - before);
    ranges_leave(&own, ranges, count);
    require(ompx_barrier() == 0, "ompx_barrier");
    drop_links(own.device);
    const double total = seconds_now() - start;
    double times[2] = {own.transfer, kernels};
    double sums[2] = {0, 0};
    require(ompx_allreduce(sums, times, 2, OMPX_DOUBLE, OMPX_SUM, ompx_group_world) == 0,
            "ompx_allreduce");
    collect_results(kernel, p, units);
    return (part_times){total, sums[0] / ranks, sums[1] / ranks, 0};
}
