// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The apps' use of a communication library besides their main exchange: start-up, memory,
// collecting results. Implemented by comm_diomp.c and comm_mpi.c; each app links one of them.
//
// All functions are collective and called by one thread, except comm_rank, comm_ranks, comm_abort.
#ifndef APPS_COMMON_COMM_H
#define APPS_COMMON_COMM_H

#include <stddef.h>
#include <stdint.h>

void comm_init(int *argc, char ***argv);
void comm_finalize(void);
int comm_rank(void);
int comm_ranks(void);
const char *comm_name(void); // "DiOMP" or "MPI"
_Noreturn void comm_abort(int code);

// Allocates memory that the exchange may use, of the same size on every rank. Ends the job on
// failure.
void *comm_alloc(size_t bytes);
void comm_free(void *memory);

void comm_barrier(void);
// Copies rank r's part to the bytes offsets[r] to offsets[r + 1] - 1 of `whole` on rank 0. The
// parts are at the start of `part` (memory of comm_alloc, the same allocation and offset on every
// rank).
void comm_gather(void *whole, void *part, const size_t *offsets);
double comm_max(double value);
uint64_t comm_sum(uint64_t value);
void comm_sum_to_root(float *values, size_t count);

#endif
