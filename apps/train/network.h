// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A network of dense layers in target regions of OpenMP's default device: rectified linear units in
// the hidden layers, softmax and cross entropy at the end.
//
// Everything lives on the device from network_enter to network_leave. Weights are one array, and
// gradients another of the same order, so that each is communicated in one call.
#ifndef TRAIN_NETWORK_H
#define TRAIN_NETWORK_H

#include "train/samples.h"

enum { LAYERS = 3 };

typedef struct network_arrays {
    float *weights;        // [count]
    float *gradient;       // [count], sums over the samples
    float *values[LAYERS]; // [capacity][width + 1], a layer's output and a 1, the input of the
                           // next layer's biases
    float *slopes[LAYERS]; // [capacity][width], derivative of the loss by the output
} network_arrays;

typedef struct network {
    int widths[LAYERS + 1]; // of the input, then of each layer
    size_t at[LAYERS];      // offset of a layer's weights: [width before + 1][width]; the
                            // last row is added to every sample (the bias)
    size_t count;           // all weights
    int capacity;           // maximum number of samples at once
    network_arrays arrays;  // the host's addresses, for target regions and transfers
    network_arrays device;  // the addresses of their copies, for a library
} network;

// Sums over the samples since network_forget_score.
typedef struct network_score {
    double loss; // cross entropy
    double hits; // correctly classified samples
} network_score;

void network_enter(network *n, int hidden, int classes, int capacity);
void network_leave(network *n);
// Selects the BLAS by --blas (common/blas.h). Returns 0, with a message, if the user named a
// library that cannot be used.
int network_use_blas(const network *n, const char *choice, char *message, size_t message_size);
// For the report: the library, or "own kernels" and why there is no library.
const char *network_product_name(void);

// Sets random weights (seed > 0), or zeros.
void network_begin(const network *n, uint64_t seed);
// Computes block b of s through all layers, and adds it to the score.
void network_forward(const network *n, const samples *s, int b);
// Computes the gradient of the samples' summed loss, after network_forward.
void network_backward(const network *n, const samples *s, int b);
// weights -= rate * gradient
void network_step(const network *n, double rate);

void network_reset_score(void);
network_score network_read_score(void);
// Returns a digest of the weights' bits, below 2^32.
double network_digest(const network *n);

#endif
