// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the kernels have in common: a problem is a few arrays of doubles and a number of units (grid
// planes, batches) that is distributed, in order, over the parts. The functions of a kernel know
// nothing of other devices but parts_exchange.
#ifndef DPU_KERNEL_H
#define DPU_KERNEL_H

#include <stddef.h>

typedef struct dpu_options {
    int grid, steps, fields, exponent, samples;
} dpu_options;

enum { MAX_ARRAYS = 3, MAX_PIECES = 3 };

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

// What a device needs of an array, and what it gives back.
typedef struct piece {
    double *data;
    size_t count;
    int send; // its values go to the device, else only memory is needed there
    double *back;
    size_t back_count; // 0: nothing
} piece;

typedef struct dpu_kernel {
    const char *name;
    const char *what;
    int (*units)(const dpu_options *o);
    void (*describe)(const dpu_options *o, char *text, size_t text_size);
    void (*shape)(problem *p); // sets count[] and result
    void (*fill)(problem *p);  // inputs; all arrays are zero before
    int (*pieces)(const problem *p, const part *own, piece into[MAX_PIECES]);
    void (*work)(const problem *p, part *own);
    // What must hold of the host's own result, however it was computed; 0 if it does not.
    int (*plausible)(const problem *p, char *text, size_t text_size);
    double tolerance; // relative to the largest value; 0: devices give the same bits as the host
} dpu_kernel;

extern const dpu_kernel dpu_heat, dpu_ep, dpu_lbm, dpu_penta, dpu_mriq;

#endif
