// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the ranks of a training tell each other, the only part of it that differs between DiOMP and
// MPI. Both are collective and about device copies: the arrays are mapped on `device`.
#ifndef TRAIN_SHARE_H
#define TRAIN_SHARE_H

#include <stddef.h>

// Every rank gets rank 0's.
void share_weights(float *weights, size_t count, int device);
// Every rank gets the sum of all ranks' gradients.
void share_gradient(float *gradient, size_t count, int device);

#endif
