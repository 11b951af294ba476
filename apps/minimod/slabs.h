// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Minimod on all devices of one process: the grid is split along X into a slab per device, as it is
// for ranks. Fields exist on the devices only.
#ifndef MINIMOD_SLABS_H
#define MINIMOD_SLABS_H

#include "common/devices.h"
#include "minimod/minimod_model.h"

#include <omp.h>
#include <stddef.h>
#include <stdint.h>

// A device's data of its slab; all pointers are device pointers.
typedef struct slab_view {
    grid part;
    medium medium;
    float *field[2];
    int has_source;
    size_t source; // offset in a field
    float source_scale;
    int num_local_receivers;        // receivers in own planes
    const size_t *receiver_offsets; // their offsets in a field
    float *trace;                   // [step][heard]
} slab_view;

typedef struct slab {
    model model; // as that of a rank
    int device;
    slab_view view;         // the host's copy
    slab_view *device_view; // the device's
    int *receivers;         // numbers of the receivers in own planes
    omp_depend_t own[2];    // of each field: reads the own planes,
    omp_depend_t before[2]; // writes the halo before them,
    omp_depend_t after[2];  // writes the halo after them
} slab;

// Bytes of the transfers that the client requests.
typedef struct slab_traffic {
    size_t sent, received; // between it and devices
    size_t between;        // from device to device
} slab_traffic;

// Copies the complete models to the devices. If `rows_alike`, the medium varies along Z alone: then
// one row is sent, and the amount of data does not depend on the grid's planes. The slabs must not
// move in memory until slabs_leave.
void slabs_enter(slab *slabs, int count, int steps, int rows_alike, slab_traffic *bytes);
// Runs all steps. `progress` is called at intervals with the number of completed steps.
void slabs_run(slab *slabs, int count, int steps, void (*progress)(void *, int), void *context,
               slab_traffic *bytes);
// Returns the digest of the last field, as run_digest does, computed by the devices.
uint64_t slabs_digest(slab *slabs, int count, int steps, slab_traffic *bytes);
// Copies the own planes of the last field of all slabs, one after the other.
void slabs_fetch_field(const slab *slabs, int count, int steps, float *whole, slab_traffic *bytes);
// Copies the seismogram, [step][receiver].
void slabs_fetch_seismogram(const slab *slabs, int count, int steps, float *seismogram,
                            slab_traffic *bytes);
void slabs_leave(slab *slabs, int count);

#endif
