// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The kernel in target regions of the default device, where the arrays are mapped.
//
// One form of the loop for processors and GPUs: tiles of c, distributed over all threads of the
// device. A processor's tile (host devices) is WIDTH columns, so that b is packed once for all
// rows, and is computed by the code of the host's kernel. A GPU's is GPU_ROWS entries of one
// column, held in registers; neighbouring threads have neighbouring columns, so they read b and
// write c in whole lines.
#include "common/device.h"
#include "matmul/matmul_block.h"
#include "matmul/matmul_kernel.h"

enum { GPU_ROWS = 8 };

static int on_gpu;

void matmul_where(char *text, size_t text_size) { device_describe(text, text_size); }

void matmul_map(double *x, size_t count) {
    on_gpu = device_is_gpu();
#pragma omp target enter data map(alloc : x[0 : count])
}

void matmul_load(double *x, size_t count) {
#pragma omp target update to(x[0 : count])
}

void matmul_unload(double *x, size_t count) {
#pragma omp target update from(x[0 : count])
}

void matmul_unmap(double *x, size_t count) {
#pragma omp target exit data map(release : x[0 : count])
}

double *matmul_device_address(double *x) { return device_address(x); }

const void *matmul_gpu_address(double *x) { return on_gpu ? device_address(x) : NULL; }

static inline void tile_of_c(double *c, const double *a, const double *b, size_t rows, size_t n,
                             size_t width, size_t depth, size_t a_stride) {
#if defined(__NVPTX__) || defined(__AMDGCN__)
    (void)width; // 1
    double sum[GPU_ROWS] = {0};
    for (size_t k = 0; k < depth; ++k) {
        for (size_t i = 0; i < GPU_ROWS; ++i) {
            sum[i] += i < rows ? a[i * a_stride + k] * b[k * n] : 0;
        }
    }
    for (size_t i = 0; i < rows; ++i) {
        c[i * n] += sum[i];
    }
#else
    _Alignas(64) double panels[DEPTH * WIDTH];
    columns(c, a, b, rows, n, width, depth, a_stride, panels);
#endif
}

void matmul_add(double *c, const double *a, const double *b, size_t rows, size_t n, size_t depth,
                size_t a_stride) {
    const size_t tall = on_gpu ? GPU_ROWS : rows;
    const size_t wide = on_gpu ? 1 : WIDTH;
#pragma omp target teams distribute parallel for collapse(2)
    for (size_t i = 0; i < rows; i += tall) {
        for (size_t j = 0; j < n; j += wide) {
            tile_of_c(c + i * n + j, a + i * a_stride, b + j, smaller(tall, rows - i), n,
                      smaller(wide, n - j), depth, a_stride);
        }
    }
}
