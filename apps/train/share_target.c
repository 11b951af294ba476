// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Weights and gradients with DiOMP: collectives on the device copies.
#include "diomp.h"
#include "train/share.h"

void share_weights(float *weights, size_t count, int device) {
    /* comm:begin */
    ompx_target_bcast(weights, device, count * sizeof(float), 0, ompx_group_world);
    /* comm:end */
}

void share_gradient(float *gradient, size_t count, int device) {
    /* comm:begin */
    ompx_target_allreduce(gradient, gradient, device, count, OMPX_FLOAT, OMPX_SUM,
                          ompx_group_world);
    /* comm:end */
}
