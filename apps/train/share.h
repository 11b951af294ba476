// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Communication of the training, its only part that differs between DiOMP and MPI. Both functions
// are collective and work on device copies: the arrays are mapped on `device`.
#ifndef TRAIN_SHARE_H
#define TRAIN_SHARE_H

#include <stddef.h>

// Broadcasts the weights of rank 0.
void share_weights(float *weights, size_t count, int device);
// Replaces the gradient by the sum over all ranks.
void share_gradient(float *gradient, size_t count, int device);

#endif
