// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the programs of the matrix product do alike with a rank's block of C at their end.
#ifndef MATMUL_CHECK_H
#define MATMUL_CHECK_H

#include <stddef.h>

typedef struct block {
    size_t n;               // rows and columns of the whole matrix
    size_t first_row, rows; // of the block
    size_t first_column, columns;
    const double *values; // [rows][columns]
} block;

// product_open on all ranks; returns 0 on all if one of them cannot, which says why, as `program`.
// Collective.
int check_open(const char *program, const char *blas, double *mapped);

// Compares with the definition: all entries for small sizes, otherwise entries spread over all
// rows. Rank 0 prints a checksum of the whole matrix, equal for every split, and the result.
// Returns whether all ranks' entries are right. Collective.
int check_blocks(const char *program, const block *own);

#endif
