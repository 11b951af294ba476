// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Communication of the solver, its only part that differs between DiOMP and MPI. The functions are
// collective; the first two work on device copies: vectors and sums are mapped on the default
// device of every rank, before other data and in the same order.
#ifndef CG_EXCHANGE_H
#define CG_EXCHANGE_H

#include "cg/slab.h"

// Fills the planes next to the own ones with the neighbours' values. All ranks must have used a
// vector's values before any rank calls this for the vector again; a sum that depends on the values
// ensures that.
void exchange_planes(const slab *s, double *vector);
// Adds up `*sum` over the ranks; the result is on every device, and is returned to the host. All
// ranks get the same bits: they decide by it whether to continue.
double exchange_sum(const slab *s, double *sum);
// Replaces two numbers in the host's memory by their sums over the ranks; the same bits on all.
void exchange_pair(double sums[2]);

#endif
