// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "matmul/matmul_product.h"

#include "common/blas.h"
#include "common/comm.h"
#include "matmul/matmul_kernel.h"

#include <stdio.h>

static blas *library;
static int on_gpu;
static char name[400];

int product_open(const char *choice, double *mapped, char *message, size_t message_size) {
    char reason[300];
    const void *const gpu = matmul_gpu_address(mapped);
    on_gpu = gpu != NULL;
    library = blas_open(choice, gpu, reason, sizeof reason);
    if (library != NULL) {
        snprintf(name, sizeof name, "%s", blas_name(library));
    } else {
        snprintf(name, sizeof name, "own kernel%s%s", reason[0] != '\0' ? ": " : "", reason);
    }
    if (library == NULL && blas_required(choice)) {
        snprintf(message, message_size, "--blas %s: %s", choice, reason);
        return 0;
    }
    return 1;
}

void product_close(void) {
    blas_close(library);
    library = NULL;
}

const char *product_name(void) { return name; }

int product_by_blas(void) { return library != NULL; }

static void add_by_blas(double *c, double *a, double *b, size_t rows, size_t n, size_t depth,
                        size_t a_stride, void (*poll)(void)) {
    const blas_product p = {.rows = rows,
                            .columns = n,
                            .depth = depth,
                            .a = {matmul_device_address(a), a_stride, 0},
                            .b = {matmul_device_address(b), n, 0},
                            .c = matmul_device_address(c),
                            .c_stride = n,
                            .accumulate = 1};
    int error = blas_doubles(library, &p);
    if (error == 0) {
        error = blas_wait(library, poll);
    }
    if (error != 0) {
        fprintf(stderr, "matmul: error %d in the product %zu x %zu x %zu by %s\n", error, rows, n,
                depth, name);
        comm_abort(1);
    }
}

void product_add(double *c, double *a, double *b, size_t rows, size_t n, size_t depth,
                 size_t a_stride, void (*poll)(void)) {
    // A product on the host's threads, or in a target region, returns when it is complete: a few
    // chunks of it, so that poll is called between them.
    const int whole = poll == NULL || (library != NULL && on_gpu);
    const size_t chunk = whole ? rows : rows / 4 > 64 ? rows / 4 : 64;
    for (size_t i = 0; i < rows; i += chunk) {
        const size_t some = rows - i < chunk ? rows - i : chunk;
        if (library != NULL) {
            add_by_blas(c + i * n, a + i * a_stride, b, some, n, depth, a_stride,
                        whole ? poll : NULL);
        } else {
            matmul_add(c + i * n, a + i * a_stride, b, some, n, depth, a_stride);
        }
        if (!whole) {
            poll();
        }
    }
}
