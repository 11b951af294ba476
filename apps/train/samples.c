// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "train/samples.h"

#include "common/comm.h"
#include "common/device.h"
#include "common/scatter.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const double turns = 1.0;  // of an arm from the middle to its end
static const double noise = 0.06; // of the angle, in turns, to both sides

static void *allocate(size_t bytes) {
    void *memory = malloc(bytes > 0 ? bytes : 1);
    if (memory == NULL) {
        fprintf(stderr, "train: no memory for %zu bytes\n", bytes);
        comm_abort(1);
    }
    return memory;
}

samples samples_make(uint64_t seed, int arms, int blocks, int width, size_t first, size_t stride) {
    samples s = {.blocks = blocks, .width = width};
    const size_t count = (size_t)blocks * (size_t)width;
    float *const features = s.features = allocate(count * (FEATURES + 1) * sizeof(float));
    int *const labels = s.arms = allocate(count * sizeof(int));
    const double whole = 4 * acos(0);
    const double around = turns;
    const double wobble = noise;
#pragma omp target enter data map(alloc : features[0 : count * (FEATURES + 1)])
#pragma omp target enter data map(alloc : labels[0 : count])
#pragma omp target teams distribute parallel for collapse(2)
    for (int b = 0; b < blocks; ++b) {
        for (int i = 0; i < width; ++i) {
            const size_t at = (size_t)b * (size_t)width + (size_t)i;
            const uint64_t number = first + (uint64_t)b * stride + (uint64_t)i;
            const uint64_t dice = (seed << 48) + 2 * number;
            const int arm = (int)(number % (uint64_t)arms);
            const double radius = 0.55 + 0.45 * scatter(dice);
            const double angle = (double)arm / arms + around * radius + wobble * scatter(dice + 1);
            labels[at] = arm;
            float *const own = features + at * (FEATURES + 1);
            own[0] = (float)(radius * cos(whole * angle));
            own[1] = (float)(radius * sin(whole * angle));
            own[FEATURES] = 1;
        }
    }
    s.device_features = device_address(features);
    return s;
}

void samples_free(samples *s) {
    const size_t count = (size_t)s->blocks * (size_t)s->width;
    float *const features = s->features;
    int *const labels = s->arms;
#pragma omp target exit data map(release : labels[0 : count])
#pragma omp target exit data map(release : features[0 : count * (FEATURES + 1)])
    free(labels);
    free(features);
}
