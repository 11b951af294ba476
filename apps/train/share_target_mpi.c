// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Weights and gradients with MPI. Its buffers are the host's copies: that works with every MPI
// library, with or without support for devices.
#include "train/share.h"

#include <mpi.h>

void share_weights(float *weights, size_t count, int device) {
    /* comm:begin */
#pragma omp target update from(weights[0 : count]) device(device)
    MPI_Bcast(weights, (int)count, MPI_FLOAT, 0, MPI_COMM_WORLD);
#pragma omp target update to(weights[0 : count]) device(device)
    /* comm:end */
}

void share_gradient(float *gradient, size_t count, int device) {
    /* comm:begin */
#pragma omp target update from(gradient[0 : count]) device(device)
    MPI_Allreduce(MPI_IN_PLACE, gradient, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
#pragma omp target update to(gradient[0 : count]) device(device)
    /* comm:end */
}
