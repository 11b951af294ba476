// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "matmul/matmul_check.h"

#include "common/comm.h"
#include "matmul/matmul_product.h"
#include "matmul/matmul_values.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

int check_open(const char *program, const char *blas, double *mapped) {
    const int opened = product_open(blas, mapped);
    if (!opened) {
        fprintf(stderr, "%s: rank %d: --blas %s: %s\n", program, comm_rank(), blas, product_name());
    }
    return comm_max(!opened) == 0;
}

static int is_right(const char *program, const block *own, size_t i, size_t j) {
    const size_t row = own->first_row + i;
    const size_t column = own->first_column + j;
    const double got = own->values[i * own->columns + j];
    const double right = c_value(own->n, row, column);
    if (got != right) {
        fprintf(stderr, "%s: rank %d: c[%zu][%zu] is %g, should be %g\n", program, comm_rank(), row,
                column, got, right);
    }
    return got == right;
}

static size_t count_wrong(const char *program, const block *own, size_t *checked) {
    const size_t stride = own->n <= 400 ? 1 : own->n / 8 + 1;
    size_t wrong = 0;
    *checked = 0;
    for (size_t i = 0; i < own->rows && wrong < 4; ++i) {
        for (size_t j = i % stride; j < own->columns && wrong < 4; j += stride) {
            wrong += !is_right(program, own, i, j);
            ++*checked;
        }
    }
    return wrong;
}

static uint64_t digest(const block *own) {
    uint64_t sum = 0;
    for (size_t i = 0; i < own->rows; ++i) {
        for (size_t j = 0; j < own->columns; ++j) {
            uint64_t bits = 0;
            memcpy(&bits, &own->values[i * own->columns + j], sizeof bits);
            const uint64_t at = (own->first_row + i) * own->n + own->first_column + j;
            sum += (bits ^ (at * 0x9e3779b97f4a7c15u)) * 1099511628211u;
        }
    }
    return sum;
}

int check_blocks(const char *program, const block *own) {
    size_t checked = 0;
    const size_t wrong = count_wrong(program, own, &checked);
    const uint64_t all_checked = comm_sum(checked);
    const uint64_t all_wrong = comm_sum(wrong);
    const uint64_t checksum = comm_sum(digest(own));
    if (comm_rank() == 0) {
        printf("checksum    %016llx\n", (unsigned long long)checksum);
        printf("check       %s: %llu of %llu entries compared are right\n",
               all_wrong == 0 ? "passed" : "FAILED", (unsigned long long)(all_checked - all_wrong),
               (unsigned long long)all_checked);
        fflush(stdout);
    }
    return all_wrong == 0;
}
