// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The steps of conjugate gradient, with two sums per iteration or with one, in target regions of
// OpenMP's default device, for
//     6 u - (sum of the six neighbours) = b    with u = 0 at the boundary,
// Poisson's equation on a grid of spacing 1. b is made from a known solution.
//
// Vectors and the sums below live on the device from cg_enter to cg_leave; the host's vectors are
// never filled. Every step adds only this rank's part to a sum.
#ifndef CG_COMPUTE_H
#define CG_COMPUTE_H

#include "cg/slab.h"

typedef struct cg_vectors {
    double *p; // direction: the one that is exchanged
    double *r; // residual
    double *q; // the operator applied to p
    double *x; // solution
    double *s; // with a single reduction: the operator applied to the direction; otherwise NULL
} cg_vectors;

extern double cg_curvature; // p . q
extern double cg_residual;  // r . r

void cg_enter(const slab *s, cg_vectors *v, int single_reduction);
void cg_leave(const slab *s, cg_vectors *v);

// x = 0, r = p = b; cg_residual is that of b.
void cg_begin(const slab *s, const cg_vectors *v);
// q = A p and cg_curvature. Needs p with the neighbours' planes; resets cg_residual.
void cg_apply(const slab *s, const cg_vectors *v);
// x and r one step along p, and the new cg_residual.
void cg_step(const slab *s, const cg_vectors *v);
// The next direction p.
void cg_next_direction(const slab *s, const cg_vectors *v);

// With a single reduction (Chronopoulos and Gear, "s-step iterative methods for symmetric linear
// systems", 1989, with s = 1): there r is exchanged, not p, and q is the operator applied to r. So
// both sums belong to the same vector, and p . A p follows from them.
//
// p = r + keep p, s = q + keep s, x += length p, r -= length s; resets both sums.
void cg_advance(const slab *s, const cg_vectors *v, double keep, double length);
// q = A r; adds r . r to cg_residual and r . q to cg_curvature. Needs r with the neighbours'
// planes.
void cg_apply_residual(const slab *s, const cg_vectors *v);
// Reads both sums: {r . r, r . q} of this rank.
void cg_read_sums(double sums[2]);

// For the check: p = x; then, with q = A p from cg_apply, the squares of the true residual's norm
// (cg_residual) and of the error's (cg_curvature); then those of x (cg_residual).
void cg_take_solution(const slab *s, const cg_vectors *v);
void cg_compare(const slab *s, const cg_vectors *v);
void cg_measure(const slab *s, const cg_vectors *v);

#endif
