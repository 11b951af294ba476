// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The halo exchange, the only part of Minimod that differs between DiOMP and MPI.
//
// In each step, in this order on every rank: compute the edges (the first and last HALO own planes)
// of `field`; halo_start; compute the rest; halo_finish. Before the first step, fields are zero on
// all ranks and comm_barrier was called. All calls come from the master thread.
#ifndef MINIMOD_HALO_H
#define MINIMOD_HALO_H

#include "minimod/grid.h"

void halo_init(const grid *g);
// Starts to send the edges of `field` to the neighbours' halos and to receive theirs. Until
// halo_finish, the edges may be read, and the halos of `field` are undefined.
void halo_start(const grid *g, float *field, int step);
// Number of planes between two calls of halo_progress from start to finish, for libraries that
// transfer data only inside calls. 0: never.
extern const int halo_progress_interval;
void halo_progress(void);
// Blocks until the halos of `field` hold the neighbours' edges.
void halo_finish(const grid *g, int step);
void halo_free(void);

#endif
