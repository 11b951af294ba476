// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Training of a small network, data-parallel: every rank has all weights and a part of every batch;
// the gradients are added up before each step. So the weights develop as on one rank, except for
// rounding. This main program is shared by DiOMP and MPI.
#include "common/clock.h"
#include "common/comm.h"
#include "common/device.h"
#include "common/options.h"
#include "common/progress.h"
#include "train/network.h"
#include "train/share.h"

#include <omp.h>
#include <stdio.h>

typedef struct train_options {
    int samples, batch, arms, hidden, epochs, seed, progress;
    double rate, accuracy;
    const char *blas;
} train_options;

typedef struct train_result {
    double seconds, share_seconds;
    double loss;     // mean over the last epoch, known to rank 0
    double accuracy; // per cent of the test samples, known to rank 0
    int same;        // weights have the same bits on all ranks
} train_result;

static int share_first(int count, int rank, int ranks) {
    return (int)((long long)count * rank / ranks);
}

// Makes this rank's part of each of `batches` batches that begin with sample `first`.
static samples own_samples(const train_options *o, int batches, int first) {
    const int begin = share_first(o->batch, comm_rank(), comm_ranks());
    const int end = share_first(o->batch, comm_rank() + 1, comm_ranks());
    return samples_make((uint64_t)o->seed, o->arms, batches, end - begin,
                        (size_t)first + (size_t)begin, (size_t)o->batch);
}

// Returns the means over all ranks' samples, on rank 0.
static network_score mean_score(int samples) {
    const network_score own = network_read_score();
    float sums[2] = {(float)own.loss, (float)own.hits};
    comm_sum_to_root(sums, 2);
    return (network_score){(double)sums[0] / samples, (double)sums[1] / samples};
}

static void train(const network *n, const samples *s, const train_options *o,
                  train_result *result) {
    const int device = omp_get_default_device();
    progress bar;
    progress_start(&bar, comm_name(), o->epochs, comm_rank() == 0 ? o->progress : 0,
                   (double)s->blocks * o->batch, "samples/s");
    network_begin(n, comm_rank() == 0 ? (uint64_t)o->seed : 0);
    share_weights(n->arrays.weights, n->count, device);
    comm_barrier();
    const double start = seconds_now();
    for (int epoch = 1; epoch <= o->epochs; ++epoch) {
        network_reset_score();
        for (int b = 0; b < s->blocks; ++b) {
            network_forward(n, s, b);
            network_backward(n, s, b);
            const double computed = seconds_now();
            share_gradient(n->arrays.gradient, n->count, device);
            result->share_seconds += seconds_now() - computed;
            network_step(n, o->rate / o->batch);
        }
        progress_update(&bar, epoch);
    }
    result->seconds = seconds_now() - start;
    progress_finish(&bar);
    result->loss = mean_score(s->blocks * o->batch).loss;
}

static void test(const network *n, const samples *s, const train_options *o, train_result *result) {
    network_reset_score();
    for (int b = 0; b < s->blocks; ++b) {
        network_forward(n, s, b);
    }
    result->accuracy = 100 * mean_score(s->blocks * o->batch).hits;
    const double digest = network_digest(n);
    const double largest = comm_max(digest);
    const double smallest = -comm_max(-digest);
    result->same = largest == smallest;
}

static int report(const network *n, const train_options *o, int batches, int tests,
                  const train_result *result) {
    const double seconds = comm_max(result->seconds);
    const double share = comm_max(result->share_seconds);
    // Only rank 0 has the accuracy; all ranks must return its result.
    const int good = comm_max(comm_rank() == 0 && result->accuracy >= o->accuracy) > 0;
    if (comm_rank() == 0) {
        const double steps = (double)o->epochs * batches;
        char where[64];
        device_describe(where, sizeof where);
        printf("network     %d-%d-%d-%d, %zu weights\n", n->widths[0], n->widths[1], n->widths[2],
               n->widths[3], n->count);
        printf("samples     %d in batches of %d, %d epochs, rate %g\n", batches * o->batch,
               o->batch, o->epochs, o->rate);
        printf("ranks       %d (%s), %s\n", comm_ranks(), comm_name(), where);
        printf("product     %s\n", network_product_name());
        printf("time        %.4f s, %.1f us per step\n", seconds, 1e6 * seconds / steps);
        printf("speed       %.1f samples/s\n", steps * o->batch / seconds);
        printf("exchange    %.1f %% of the time: %.1f us per step (largest of all ranks, waiting "
               "included)\n",
               100 * share / seconds, 1e6 * share / steps);
        printf("loss        %.6e, mean of the last epoch\n", result->loss);
        printf("accuracy    %.2f %% of %d test samples\n", result->accuracy, tests * o->batch);
        printf("check       %s: accuracy %s %g %%, weights %s on all ranks\n",
               good && result->same ? "passed" : "FAILED", good ? "at least" : "BELOW", o->accuracy,
               result->same ? "equal" : "NOT EQUAL");
        fflush(stdout);
    }
    return good && result->same;
}

static int run(const train_options *o) {
    const int batches = o->samples / o->batch;
    const int tests = batches / 4 > 0 ? batches / 4 : 1;
    network n;
    train_result result = {0};
    network_enter(&n, o->hidden, o->arms, o->batch);
    char message[400];
    const int opened = network_use_blas(&n, o->blas, message, sizeof message);
    if (!opened) {
        fprintf(stderr, "train: rank %d: %s\n", comm_rank(), message);
    }
    if (comm_max(!opened) > 0) {
        network_leave(&n);
        return 2;
    }
    samples training_set = own_samples(o, batches, 0);
    samples test_set = own_samples(o, tests, batches * o->batch);
    train(&n, &training_set, o, &result);
    test(&n, &test_set, o, &result);
    const int passed = report(&n, o, batches, tests, &result);
    samples_free(&test_set);
    samples_free(&training_set);
    network_leave(&n);
    return passed ? 0 : 1;
}

static int check_options(const void *options, char *message, size_t message_size) {
    const train_options *const o = options;
    if (o->batch < comm_ranks() || o->batch > o->samples) {
        snprintf(message, message_size,
                 "--batch %d must be between the number of ranks (%d) and that of samples (%d)",
                 o->batch, comm_ranks(), o->samples);
        return 0;
    }
    if (o->samples > 100000000) {
        snprintf(message, message_size, "--samples %d must be at most 100000000", o->samples);
        return 0;
    }
    if (o->arms < 2 || o->hidden < 1 || o->arms > 1000 || o->hidden > 100000) {
        snprintf(message, message_size,
                 "--arms %d, --hidden %d: needs 2 to 1000 arms and 1 to 100000 hidden units",
                 o->arms, o->hidden);
        return 0;
    }
    if (o->epochs < 1 || o->seed < 1 || o->seed > 65535) {
        snprintf(message, message_size,
                 "--epochs %d, --seed %d: needs 1 epoch or more and a seed from 1 to 65535",
                 o->epochs, o->seed);
        return 0;
    }
    return 1;
}

int main(int argc, char **argv) {
    comm_init(&argc, &argv);
    train_options o = {.samples = 8192,
                       .batch = 256,
                       .arms = 3,
                       .hidden = 64,
                       .epochs = 60,
                       .seed = 1,
                       .progress = -1,
                       .rate = 0.3,
                       .accuracy = 90,
                       .blas = "auto"};
    const option_row rows[] = {
        {"--samples", OPTION_INT, 1, 0, &o.samples, "N", "to learn from [8192]"},
        {"--batch", OPTION_INT, 1, 0, &o.batch, "N", "samples per step, of all ranks [256]"},
        {"--arms", OPTION_INT, 1, 0, &o.arms, "N", "of the spiral: the classes [3]"},
        {"--hidden", OPTION_INT, 1, 0, &o.hidden, "N", "units in each of the 2 hidden layers [64]"},
        {"--epochs", OPTION_INT, 1, 0, &o.epochs, "N", "passes over the samples [60]"},
        {"--rate", OPTION_REAL, 1, 0, &o.rate, "R", "length of a step along the gradient [0.3]"},
        {"--seed", OPTION_INT, 1, 0, &o.seed, "N", "of samples and first weights [1]"},
        {"--accuracy", OPTION_REAL, 1, 0, &o.accuracy, "P",
         "per cent of unseen samples that must be right [90]"},
        {"--blas", OPTION_TEXT, 1, 0, &o.blas, "auto|off|FILE",
         "library of the products; off: own kernels [auto]"},
        {"--progress", OPTION_AUTO, 1, 0, &o.progress, "on|off|auto", "progress bar [auto]"},
    };
    enum { NUM_ROWS = sizeof rows / sizeof rows[0] };
    int status = 0;
    if (!options_handle(rows, NUM_ROWS, argc, argv, check_options, &o, "train",
                        "Training of a small network.", comm_rank(), &status)) {
        status = run(&o);
    }
    comm_finalize();
    return status;
}
