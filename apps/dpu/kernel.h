// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The interface of the kernels: a problem is a few arrays of doubles and a number of units (grid
// planes, batches) that are distributed, in order, over the parts. A kernel communicates with other
// devices only by part_exchange.
#ifndef DPU_KERNEL_H
#define DPU_KERNEL_H

#include <stddef.h>

typedef struct dpu_options {
    int grid, steps, fields, exponent, samples;
} dpu_options;

enum { MAX_ARRAYS = 3, MAX_RANGES = 3 };

typedef struct problem {
    dpu_options o;
    double *array[MAX_ARRAYS]; // whole, on the host
    size_t count[MAX_ARRAYS];  // their lengths; 0: there is none
    int result;                // the array that holds the result
} problem;

// One device's part of a problem.
typedef struct part {
    int index, count;      // which of how many
    int device;            // OpenMP's number
    int first, end;        // units
    double transfer, wait; // seconds in transfers, and waiting for other parts
} part;

// A range of an array that a device needs, and the range that it returns.
typedef struct array_range {
    double *data;
    size_t count;
    int send; // copy the values to the device; otherwise only allocate memory there
    double *back;
    size_t back_count; // 0: nothing
} array_range;

typedef struct dpu_kernel {
    const char *name;
    const char *what;
    int (*units)(const dpu_options *o);
    void (*describe)(const dpu_options *o, char *text, size_t text_size);
    void (*shape)(problem *p); // sets count[] and result
    void (*fill)(problem *p);  // inputs; all arrays are zero before
    int (*ranges)(const problem *p, const part *own, array_range into[MAX_RANGES]);
    void (*work)(const problem *p, part *own);
    // Checks properties that any correct result of the host has; returns 0 if they do not hold.
    int (*plausible)(const problem *p, char *text, size_t text_size);
    double tolerance; // relative to the largest value; 0: devices give the same bits as the host
} dpu_kernel;

extern const dpu_kernel dpu_heat, dpu_ep, dpu_lbm, dpu_penta, dpu_mriq;

#endif
