// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The kernel on the host's threads, in host memory.
#include "matmul/matmul_kernel.h"

#include "matmul/matmul_block.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

void matmul_where(char *text, size_t text_size) {
    snprintf(text, text_size, "%d threads each", omp_get_max_threads());
}

void matmul_map(double *x, size_t count) {
    (void)x;
    (void)count;
}

void matmul_load(double *x, size_t count) {
    (void)x;
    (void)count;
}

void matmul_unload(double *x, size_t count) {
    (void)x;
    (void)count;
}

void matmul_unmap(double *x, size_t count) {
    (void)x;
    (void)count;
}

double *matmul_device_address(double *x) { return x; }

const void *matmul_gpu_address(double *x) {
    (void)x;
    return NULL;
}

void matmul_add(double *c, const double *a, const double *b, size_t rows, size_t n, size_t depth,
                size_t a_stride) {
#pragma omp parallel
    {
        double *panels = aligned_alloc(64, sizeof(double) * DEPTH * WIDTH);
        if (panels == NULL) {
            fprintf(stderr, "matmul: no memory\n");
            abort();
        }
#pragma omp for schedule(dynamic)
        for (size_t j = 0; j < n; j += WIDTH) {
            columns(c + j, a, b + j, rows, n, smaller(WIDTH, n - j), depth, a_stride, panels);
        }
        free(panels);
    }
}
