// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products by the machine's BLAS, or by own kernels if there is none; the rest in target regions.
// One form of each loop for processors and GPUs: chunks of rows, distributed over all threads of
// the device. On a processor (host devices) a chunk is the whole row, in vector instructions; on a
// GPU it is one number, and neighbouring threads have neighbouring numbers of a row.
#include "train/network.h"

#include "common/blas.h"
#include "common/comm.h"
#include "common/device.h"
#include "common/scatter.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static double loss;
static double hits;
static int chunk;
static blas *library;
static char product_name[400] = "own kernels";

static inline int smaller(int a, int b) { return a < b ? a : b; }

static void map_array(float **host, float **device, size_t count) {
    float *const array = comm_alloc(count * sizeof(float));
#pragma omp target enter data map(alloc : array[0 : count])
    *host = array;
    *device = device_address(array);
}

// Elements of a layer's output and of its slopes.
static size_t values_count(const network *n, int l) {
    return (size_t)n->capacity * (size_t)(n->widths[l + 1] + 1);
}

static size_t slopes_count(const network *n, int l) {
    return (size_t)n->capacity * (size_t)n->widths[l + 1];
}

static void unmap_array(float *array, size_t count) {
#pragma omp target exit data map(release : array[0 : count])
    comm_free(array);
}

void network_enter(network *n, int hidden, int classes, int capacity) {
    *n = (network){.widths = {FEATURES, hidden, hidden, classes}, .capacity = capacity};
    for (int l = 0; l < LAYERS; ++l) {
        n->at[l] = n->count;
        n->count += (size_t)(n->widths[l] + 1) * (size_t)n->widths[l + 1];
    }
    network_arrays *const host = &n->arrays;
    network_arrays *const device = &n->device;
    map_array(&host->weights, &device->weights, n->count);
    map_array(&host->gradient, &device->gradient, n->count);
    for (int l = 0; l < LAYERS; ++l) {
        map_array(&host->values[l], &device->values[l], values_count(n, l));
        map_array(&host->slopes[l], &device->slopes[l], slopes_count(n, l));
        float *const values = host->values[l];
        const size_t pitch = (size_t)n->widths[l + 1] + 1;
#pragma omp target teams distribute parallel for
        for (size_t i = 0; i < (size_t)capacity; ++i) {
            values[i * pitch + pitch - 1] = 1;
        }
    }
#pragma omp target enter data map(alloc : loss, hits)
    chunk = device_is_gpu() ? 1 : hidden + classes;
}

int network_use_blas(const network *n, const char *choice, char *message, size_t message_size) {
    char reason[300];
    library = blas_open(choice, device_is_gpu() ? n->device.weights : NULL, reason, sizeof reason);
    if (library != NULL) {
        snprintf(product_name, sizeof product_name, "%s", blas_name(library));
    } else {
        snprintf(product_name, sizeof product_name, "own kernels%s%s",
                 reason[0] != '\0' ? ": " : "", reason);
    }
    if (library == NULL && blas_required(choice)) {
        snprintf(message, message_size, "--blas %s: %s", choice, reason);
        return 0;
    }
    return 1;
}

const char *network_product_name(void) { return product_name; }

static void must_succeed(int error) {
    if (error != 0) {
        fprintf(stderr, "train: error %d in a product by %s\n", error, product_name);
        comm_abort(1);
    }
}

void network_leave(network *n) {
    blas_close(library);
    library = NULL;
#pragma omp target exit data map(release : loss, hits)
    for (int l = LAYERS - 1; l >= 0; --l) {
        unmap_array(n->arrays.slopes[l], slopes_count(n, l));
        unmap_array(n->arrays.values[l], values_count(n, l));
    }
    unmap_array(n->arrays.gradient, n->count);
    unmap_array(n->arrays.weights, n->count);
}

void network_begin(const network *n, uint64_t seed) {
    float *const weights = n->arrays.weights;
    for (int l = 0; l < LAYERS; ++l) {
        const size_t at = n->at[l];
        const size_t width = (size_t)n->widths[l + 1];
        const size_t inputs = (size_t)n->widths[l];
        // The spread preserves the size of values from layer to layer.
        const double spread = seed > 0 ? sqrt(6.0 / (double)inputs) : 0;
#pragma omp target teams distribute parallel for
        for (size_t i = 0; i < (inputs + 1) * width; ++i) {
            const double value = spread * scatter((seed << 48) - 1 - (at + i));
            weights[at + i] = i < inputs * width ? (float)value : 0;
        }
    }
}

// The last of the inputs is 1, for the biases.
static inline void forward_chunk(float *restrict out, const float *restrict in,
                                 const float *restrict w, int inputs, int width, int columns,
                                 int rectify) {
    for (int j = 0; j < columns; ++j) {
        out[j] = 0;
    }
    for (int i = 0; i <= inputs; ++i) {
        const float *const row = w + (ptrdiff_t)i * width;
        for (int j = 0; j < columns; ++j) {
            out[j] += in[i] * row[j];
        }
    }
    for (int j = 0; rectify && j < columns; ++j) {
        out[j] = out[j] > 0 ? out[j] : 0;
    }
}

static void forward_by_kernel(const network *n, int l, const float *in, int count) {
    const int inputs = n->widths[l];
    const int width = n->widths[l + 1];
    const int columns = chunk;
    const int rectify = l + 1 < LAYERS;
    const float *const w = n->arrays.weights + n->at[l];
    float *const out = n->arrays.values[l];
#pragma omp target teams distribute parallel for collapse(2)
    for (int i = 0; i < count; ++i) {
        for (int j = 0; j < width; j += columns) {
            forward_chunk(out + (ptrdiff_t)i * (width + 1) + j, in + (ptrdiff_t)i * (inputs + 1),
                          w + j, inputs, width, smaller(columns, width - j), rectify);
        }
    }
}

static void forward_by_library(const network *n, int l, const float *in, int count) {
    const size_t inputs = (size_t)n->widths[l] + 1;
    const size_t width = (size_t)n->widths[l + 1];
    const blas_product p = {.rows = (size_t)count,
                            .columns = width,
                            .depth = inputs,
                            .a = {in, inputs, 0},
                            .b = {n->device.weights + n->at[l], width, 0},
                            .c = n->device.values[l],
                            .c_stride = width + 1};
    must_succeed(blas_floats(library, &p));
    must_succeed(blas_wait(library, NULL));
    if (l + 1 == LAYERS) {
        return;
    }
    float *const out = n->arrays.values[l];
#pragma omp target teams distribute parallel for
    for (size_t i = 0; i < (size_t)count * (width + 1); ++i) {
        out[i] = out[i] > 0 ? out[i] : 0;
    }
}

// Computes the slopes of one sample's loss by the last layer's output; returns the loss.
static inline double softmax_loss(float *restrict slopes, const float *restrict out, int classes,
                                  int right, int *hit) {
    int best = 0;
    for (int j = 1; j < classes; ++j) {
        best = out[j] > out[best] ? j : best;
    }
    double sum = 0;
    for (int j = 0; j < classes; ++j) {
        sum += exp((double)(out[j] - out[best]));
    }
    for (int j = 0; j < classes; ++j) {
        const double share = exp((double)(out[j] - out[best])) / sum;
        slopes[j] = (float)(share - (j == right));
    }
    *hit = best == right;
    return log(sum) - (double)(out[right] - out[best]);
}

void network_forward(const network *n, const samples *s, int b) {
    const int count = s->width;
    const size_t first = (size_t)b * (size_t)count * (FEATURES + 1);
    for (int l = 0; l < LAYERS; ++l) {
        if (library != NULL) {
            forward_by_library(n, l, l > 0 ? n->device.values[l - 1] : s->device_features + first,
                               count);
        } else {
            forward_by_kernel(n, l, l > 0 ? n->arrays.values[l - 1] : s->features + first, count);
        }
    }
    const float *const out = n->arrays.values[LAYERS - 1];
    const int classes = n->widths[LAYERS];
    const int *const right = s->arms + (size_t)b * (size_t)count;
    float *const slopes = n->arrays.slopes[LAYERS - 1];
#pragma omp target teams distribute parallel for map(tofrom : loss, hits) reduction(+ : loss, hits)
    for (int i = 0; i < count; ++i) {
        int hit = 0;
        const ptrdiff_t row = (ptrdiff_t)i * classes;
        loss += softmax_loss(slopes + row, out + row + i, classes, right[i], &hit);
        hits += hit;
    }
}

// Computes a chunk of the gradient's row of input i.
static inline void gradient_chunk(float *restrict row, const float *restrict in,
                                  const float *restrict slopes, int count, int pitch, int width,
                                  int columns) {
    for (int j = 0; j < columns; ++j) {
        row[j] = 0;
    }
    for (int k = 0; k < count; ++k) {
        const float value = in[(ptrdiff_t)k * pitch];
        for (int j = 0; j < columns; ++j) {
            row[j] += value * slopes[(ptrdiff_t)k * width + j];
        }
    }
}

static void gradient_by_kernel(const network *n, int l, const float *in, int count) {
    const int pitch = n->widths[l] + 1;
    const int width = n->widths[l + 1];
    const int columns = chunk;
    const float *const slopes = n->arrays.slopes[l];
    float *const gradient = n->arrays.gradient + n->at[l];
#pragma omp target teams distribute parallel for collapse(2)
    for (int i = 0; i < pitch; ++i) {
        for (int j = 0; j < width; j += columns) {
            gradient_chunk(gradient + (ptrdiff_t)i * width + j, in + i, slopes + j, count, pitch,
                           width, smaller(columns, width - j));
        }
    }
}

// Not complete on return.
static void gradient_by_library(const network *n, int l, const float *in, int count) {
    const size_t inputs = (size_t)n->widths[l] + 1;
    const size_t width = (size_t)n->widths[l + 1];
    const blas_product p = {.rows = inputs,
                            .columns = width,
                            .depth = (size_t)count,
                            .a = {in, inputs, 1},
                            .b = {n->device.slopes[l], width, 0},
                            .c = n->device.gradient + n->at[l],
                            .c_stride = width};
    must_succeed(blas_floats(library, &p));
}

static inline float dot(const float *restrict a, const float *restrict b, int n) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < n; ++i) {
        sum += a[i] * b[i];
    }
    return sum;
}

// Computes the slopes of the previous layer from those of a layer.
static void back_by_kernel(const network *n, int l, int count) {
    const int inputs = n->widths[l];
    const int width = n->widths[l + 1];
    const float *const w = n->arrays.weights + n->at[l];
    const float *const slopes = n->arrays.slopes[l];
    const float *const values = n->arrays.values[l - 1];
    float *const before = n->arrays.slopes[l - 1];
#pragma omp target teams distribute parallel for collapse(2)
    for (int k = 0; k < count; ++k) {
        for (int i = 0; i < inputs; ++i) {
            const ptrdiff_t at = (ptrdiff_t)k * inputs + i;
            const float slope = dot(slopes + (ptrdiff_t)k * width, w + (ptrdiff_t)i * width, width);
            before[at] = values[at + k] > 0 ? slope : 0;
        }
    }
}

static void back_by_library(const network *n, int l, int count) {
    const size_t inputs = (size_t)n->widths[l];
    const size_t width = (size_t)n->widths[l + 1];
    const blas_product p = {.rows = (size_t)count,
                            .columns = inputs,
                            .depth = width,
                            .a = {n->device.slopes[l], width, 0},
                            .b = {n->device.weights + n->at[l], width, 1},
                            .c = n->device.slopes[l - 1],
                            .c_stride = inputs};
    must_succeed(blas_floats(library, &p));
    must_succeed(blas_wait(library, NULL));
    const float *const values = n->arrays.values[l - 1];
    float *const before = n->arrays.slopes[l - 1];
#pragma omp target teams distribute parallel for collapse(2)
    for (size_t k = 0; k < (size_t)count; ++k) {
        for (size_t i = 0; i < inputs; ++i) {
            if (values[k * (inputs + 1) + i] <= 0) {
                before[k * inputs + i] = 0;
            }
        }
    }
}

void network_backward(const network *n, const samples *s, int b) {
    const size_t first = (size_t)b * (size_t)s->width * (FEATURES + 1);
    for (int l = LAYERS - 1; l >= 0; --l) {
        if (library != NULL) {
            gradient_by_library(n, l, l > 0 ? n->device.values[l - 1] : s->device_features + first,
                                s->width);
        } else {
            gradient_by_kernel(n, l, l > 0 ? n->arrays.values[l - 1] : s->features + first,
                               s->width);
        }
        if (l > 0 && library != NULL) {
            back_by_library(n, l, s->width);
        } else if (l > 0) {
            back_by_kernel(n, l, s->width);
        }
    }
    if (library != NULL) {
        must_succeed(blas_wait(library, NULL));
    }
}

void network_step(const network *n, double rate) {
    const size_t count = n->count;
    const float part = (float)rate;
    float *const weights = n->arrays.weights;
    const float *const gradient = n->arrays.gradient;
#pragma omp target teams distribute parallel for
    for (size_t i = 0; i < count; ++i) {
        weights[i] -= part * gradient[i];
    }
}

void network_reset_score(void) {
#pragma omp target map(tofrom : loss, hits)
    loss = hits = 0;
}

network_score network_read_score(void) {
#pragma omp target update from(loss, hits)
    return (network_score){loss, hits};
}

double network_digest(const network *n) {
    float *const weights = n->arrays.weights;
    const size_t count = n->count;
#pragma omp target update from(weights[0 : count])
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < count; ++i) {
        uint32_t bits = 0;
        memcpy(&bits, &weights[i], sizeof bits);
        hash = (hash ^ bits) * 1099511628211u;
    }
    return (double)(uint32_t)(hash >> 32);
}
