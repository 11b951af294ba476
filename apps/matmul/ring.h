// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The ring shift of B's stripes, the only part of the matrix product that differs between DiOMP and
// MPI. Every rank holds two buffers, at the same offset in memory of comm_alloc: the stripe that it
// computes with, and a spare one that receives the next stripe.
#ifndef MATMUL_RING_H
#define MATMUL_RING_H

#include <stddef.h>

// Starts to send `stripe` (`bytes` of it) to rank - 1, into its `spare`, and to receive into our
// own `spare` from rank + 1. Until ring_finish, `stripe` may be read and `spare` must not be
// touched.
void ring_start(double *spare, double *stripe, size_t bytes, size_t capacity);
// To be called between start and finish, for libraries that transfer data only inside calls; NULL
// for those that need no calls.
extern void (*const ring_progress)(void);
// Blocks until `spare` holds the next stripe; then `stripe` may become the spare one.
void ring_finish(void);

#endif
