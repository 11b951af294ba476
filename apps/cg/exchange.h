// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the ranks of the solver tell each other, the only part of it that differs between DiOMP and
// MPI. Both are collective and about device copies: vectors and sums are mapped on the
// default device of every rank, first of all and in the same order.
#ifndef CG_EXCHANGE_H
#define CG_EXCHANGE_H

#include "cg/slab.h"

// The planes next to the own ones hold the neighbours' values. Between two calls for a vector, its
// values must have been used by every rank before any rank can make the second call: a sum that
// depends on them does that.
void exchange_planes(const slab *s, double *vector);
// Adds up `*sum` over the ranks; the result is on every device, and returned to the host. The same
// bits everywhere: ranks decide by it whether to go on.
double exchange_sum(const slab *s, double *sum);

#endif
