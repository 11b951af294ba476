// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The ring shift of B's stripes, the only part of the matrix product that differs between DiOMP and
// MPI. Every rank holds two buffers, at the same place in memory of comm_alloc: the stripe that it
// computes with, and a spare one that receives the next.
#ifndef MATMUL_RING_H
#define MATMUL_RING_H

#include <stddef.h>

// Starts to send `stripe` (`bytes` of it) to rank - 1, into its `spare`, and to receive into our
// own `spare` from rank + 1. Until ring_finish, `stripe` may be read and `spare` must not be
// touched.
void ring_start(double *spare, double *stripe, size_t bytes, size_t capacity);
// Called now and then between start and finish, for libraries that move data only inside calls.
void ring_progress(void);
// `spare` holds the next stripe, and `stripe` may become the spare one.
void ring_finish(void);

#endif
