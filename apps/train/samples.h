// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Points on the arms of a spiral, to be classified by arm: a task that a network without hidden
// layers fails. Sample number i is equal on all ranks and devices.
#ifndef TRAIN_SAMPLES_H
#define TRAIN_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

enum { FEATURES = 2 };

// Samples of one rank on its device: `blocks` of `width`; block b holds the numbers from
// first + b * stride on. Each sample's features end with a 1, the input of the biases.
typedef struct samples {
    float *features;        // [blocks * width][FEATURES + 1]
    float *device_features; // the address of their copy
    int *arms;              // [blocks * width]
    int blocks, width;
} samples;

samples samples_make(uint64_t seed, int arms, int blocks, int width, size_t first, size_t stride);
void samples_free(samples *s);

#endif
