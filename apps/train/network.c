// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One form of each loop for processors and GPUs: chunks of rows, distributed over all threads of
// the device. On a processor (host devices) a chunk is the whole row, in vector instructions; on a
// GPU it is one number, and neighbouring threads have neighbouring numbers of a row.
#include "train/network.h"

#include "common/comm.h"
#include "common/device.h"
#include "common/scatter.h"

#include <math.h>
#include <string.h>

static double loss;
static double hits;
static int chunk;

static inline int smaller(int a, int b) { return a < b ? a : b; }

static float *map_array(size_t count) {
    float *const array = comm_alloc(count * sizeof(float));
#pragma omp target enter data map(alloc : array[0 : count])
    return array;
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
    n->weights = map_array(n->count);
    n->gradient = map_array(n->count);
    for (int l = 0; l < LAYERS; ++l) {
        n->values[l] = map_array((size_t)capacity * (size_t)n->widths[l + 1]);
        n->slopes[l] = map_array((size_t)capacity * (size_t)n->widths[l + 1]);
    }
#pragma omp target enter data map(alloc : loss, hits)
    chunk = device_is_gpu() ? 1 : hidden + classes;
}

void network_leave(network *n) {
#pragma omp target exit data map(release : loss, hits)
    for (int l = LAYERS - 1; l >= 0; --l) {
        unmap_array(n->slopes[l], (size_t)n->capacity * (size_t)n->widths[l + 1]);
        unmap_array(n->values[l], (size_t)n->capacity * (size_t)n->widths[l + 1]);
    }
    unmap_array(n->gradient, n->count);
    unmap_array(n->weights, n->count);
}

void network_begin(const network *n, uint64_t seed) {
    float *const weights = n->weights;
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

static inline void forward_chunk(float *restrict out, const float *restrict in,
                                 const float *restrict w, int inputs, int width, int columns,
                                 int rectify) {
    const float *const bias = w + (ptrdiff_t)inputs * width;
    for (int j = 0; j < columns; ++j) {
        out[j] = bias[j];
    }
    for (int i = 0; i < inputs; ++i) {
        const float *const row = w + (ptrdiff_t)i * width;
        for (int j = 0; j < columns; ++j) {
            out[j] += in[i] * row[j];
        }
    }
    for (int j = 0; rectify && j < columns; ++j) {
        out[j] = out[j] > 0 ? out[j] : 0;
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
    const float *in = s->features + (size_t)b * (size_t)count * FEATURES;
    for (int l = 0; l < LAYERS; ++l) {
        const int inputs = n->widths[l];
        const int width = n->widths[l + 1];
        const int columns = chunk;
        const int rectify = l + 1 < LAYERS;
        const float *const w = n->weights + n->at[l];
        float *const out = n->values[l];
#pragma omp target teams distribute parallel for collapse(2)
        for (int i = 0; i < count; ++i) {
            for (int j = 0; j < width; j += columns) {
                forward_chunk(out + (ptrdiff_t)i * width + j, in + (ptrdiff_t)i * inputs, w + j,
                              inputs, width, smaller(columns, width - j), rectify);
            }
        }
        in = out;
    }
    const int classes = n->widths[LAYERS];
    const int *const right = s->arms + (size_t)b * (size_t)count;
    float *const slopes = n->slopes[LAYERS - 1];
#pragma omp target teams distribute parallel for map(tofrom : loss, hits) reduction(+ : loss, hits)
    for (int i = 0; i < count; ++i) {
        int hit = 0;
        const ptrdiff_t row = (ptrdiff_t)i * classes;
        loss += softmax_loss(slopes + row, in + row, classes, right[i], &hit);
        hits += hit;
    }
}

// Computes a chunk of the gradient's row of input i; the bias belongs to an input that is always 1.
static inline void gradient_chunk(float *restrict row, const float *restrict in,
                                  const float *restrict slopes, int count, int inputs, int width,
                                  int columns, int i) {
    for (int j = 0; j < columns; ++j) {
        row[j] = 0;
    }
    for (int k = 0; k < count; ++k) {
        const float value = i < inputs ? in[(ptrdiff_t)k * inputs + i] : 1;
        for (int j = 0; j < columns; ++j) {
            row[j] += value * slopes[(ptrdiff_t)k * width + j];
        }
    }
}

static void layer_gradient(const network *n, int l, const float *in, int count) {
    const int inputs = n->widths[l];
    const int width = n->widths[l + 1];
    const int columns = chunk;
    const float *const slopes = n->slopes[l];
    float *const gradient = n->gradient + n->at[l];
#pragma omp target teams distribute parallel for collapse(2)
    for (int i = 0; i <= inputs; ++i) {
        for (int j = 0; j < width; j += columns) {
            gradient_chunk(gradient + (ptrdiff_t)i * width + j, in, slopes + j, count, inputs,
                           width, smaller(columns, width - j), i);
        }
    }
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
static void layer_back(const network *n, int l, int count) {
    const int inputs = n->widths[l];
    const int width = n->widths[l + 1];
    const float *const w = n->weights + n->at[l];
    const float *const slopes = n->slopes[l];
    const float *const values = n->values[l - 1];
    float *const before = n->slopes[l - 1];
#pragma omp target teams distribute parallel for collapse(2)
    for (int k = 0; k < count; ++k) {
        for (int i = 0; i < inputs; ++i) {
            const ptrdiff_t at = (ptrdiff_t)k * inputs + i;
            const float slope = dot(slopes + (ptrdiff_t)k * width, w + (ptrdiff_t)i * width, width);
            before[at] = values[at] > 0 ? slope : 0;
        }
    }
}

void network_backward(const network *n, const samples *s, int b) {
    for (int l = LAYERS - 1; l > 0; --l) {
        layer_gradient(n, l, n->values[l - 1], s->width);
        layer_back(n, l, s->width);
    }
    layer_gradient(n, 0, s->features + (size_t)b * (size_t)s->width * FEATURES, s->width);
}

void network_step(const network *n, double rate) {
    const size_t count = n->count;
    const float part = (float)rate;
    float *const weights = n->weights;
    const float *const gradient = n->gradient;
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
    float *const weights = n->weights;
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
