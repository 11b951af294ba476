// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Random updates of a table that all ranks share, as in HPCC's RandomAccess: each is an atomic
// exclusive or with a random word, at the place that the word names. Driven by the host's threads,
// on a table in host memory, and from inside a target region, on a table in device memory.
// Checked by a second pass over the same words, which restores the table.
#include "common/clock.h"
#include "common/device.h"
#include "common/need.h"
#include "common/options.h"
#include "gups/stream.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct gups_options {
    int log2;
    int per_word;
    const char *by;
} gups_options;

// Of one rank: `streams` streams of `length` updates, in the memory of the device that updates.
typedef struct work {
    table t;
    uint64_t *words; // [stream]: the word before its first one
    int streams;
    uint64_t length;
} work;

static void fill(const work *w, int by_region) {
    const uint64_t first = (uint64_t)ompx_rank_num() << w->t.log2;
    const uint64_t words = (uint64_t)1 << w->t.log2;
    const uint64_t offset = (uint64_t)ompx_rank_num() * (uint64_t)w->streams * w->length;
    const uint64_t length = w->length;
    uint64_t *const own = w->t.own;
    uint64_t *const begins = w->words;
    const int streams = w->streams;
#pragma omp target teams distribute parallel for is_device_ptr(own) if (by_region)
    for (uint64_t i = 0; i < words; ++i) {
        own[i] = first + i;
    }
#pragma omp target teams distribute parallel for is_device_ptr(begins) if (by_region)
    for (int s = 0; s < streams; ++s) {
        begins[s] = stream_word(offset + (uint64_t)s * length);
    }
    ompx_barrier();
}

static double update(const work *w, int by_region) {
    const table t = w->t;
    uint64_t *const own = t.own;
    const int ranks = t.ranks;
    const int log2 = t.log2;
    const int streams = w->streams;
    const uint64_t length = w->length;
    const uint64_t *const begins = w->words;
    int failed = 0;
    ompx_barrier();
    const double start = seconds_now();
    if (by_region) {
#pragma omp target teams distribute parallel for is_device_ptr(own, begins) reduction(| : failed)  \
    map(tofrom : failed)
        for (int s = 0; s < streams; ++s) {
            const table there = {own, ranks, log2};
            failed |= stream_update(there, begins[s], length) != OMPX_SUCCESS;
        }
    } else {
#pragma omp parallel for schedule(static) reduction(| : failed)
        for (int s = 0; s < streams; ++s) {
            failed |= stream_update(t, begins[s], length) != OMPX_SUCCESS;
        }
    }
    need(!failed, "gups", "an update has failed");
    ompx_barrier(); // all updates are complete
    return seconds_now() - start;
}

static uint64_t wrong_words(const work *w, int by_region) {
    const uint64_t first = (uint64_t)ompx_rank_num() << w->t.log2;
    const uint64_t words = (uint64_t)1 << w->t.log2;
    const uint64_t *const own = w->t.own;
    uint64_t wrong = 0;
#pragma omp target teams distribute parallel for is_device_ptr(own) reduction(+ : wrong)           \
    map(tofrom : wrong) if (by_region)
    for (uint64_t i = 0; i < words; ++i) {
        wrong += own[i] != first + i;
    }
    ompx_allreduce(&wrong, &wrong, 1, OMPX_UINT64, OMPX_SUM, ompx_group_world);
    return wrong;
}

// The updates must change the table, and the second pass must restore it. HPCC tolerates errors in
// 1 % of the words, since its updates need not be atomic; these are.
static int run(const gups_options *o, int by_region) {
    const int device = omp_get_default_device();
    const uint64_t updates = (uint64_t)o->per_word << o->log2;
    work w = {.t = {NULL, ompx_num_ranks(), o->log2}, .streams = device_is_gpu() ? 1 << 17 : 64};
    while ((uint64_t)w.streams * 64 > updates && w.streams > 1) {
        w.streams /= 2;
    }
    w.length = updates / (uint64_t)w.streams;
    const size_t bytes = sizeof(uint64_t) << o->log2;
    w.t.own = by_region ? ompx_target_alloc(bytes, device, ompx_symmetric_mem_alloc)
                        : omp_alloc(bytes, ompx_symmetric_mem_alloc);
    const size_t begins = (size_t)w.streams * sizeof(uint64_t);
    w.words = by_region ? omp_target_alloc(begins, device) : malloc(begins);
    need(w.t.own != NULL && w.words != NULL, "gups", "no memory for the table");
    fill(&w, by_region);
    double seconds = update(&w, by_region);
    const uint64_t changed = wrong_words(&w, by_region);
    update(&w, by_region);
    const uint64_t wrong = wrong_words(&w, by_region);
    ompx_allreduce(&seconds, &seconds, 1, OMPX_DOUBLE, OMPX_MAX, ompx_group_world);
    const int passed = wrong == 0 && changed > 0;
    if (ompx_rank_num() == 0) {
        const double done = (double)((uint64_t)w.streams * w.length) * ompx_num_ranks();
        printf("updates     %s, %d streams a rank: %.3f s, %.6f GUP/s\n",
               by_region ? "in a target region, of device memory" : "by the host, of its memory",
               w.streams, seconds, done / seconds * 1e-9);
        printf("check       %s: %llu of %llu words differ after a second pass\n",
               passed ? "passed" : "failed", (unsigned long long)wrong,
               (unsigned long long)ompx_num_ranks() << o->log2);
        fflush(stdout);
    }
    if (by_region) {
        omp_target_free(w.words, device);
        ompx_target_free(w.t.own, device);
    } else {
        free(w.words);
        omp_free(w.t.own, ompx_symmetric_mem_alloc);
    }
    return passed;
}

static int check_options(const void *options, char *message, size_t message_size) {
    const gups_options *const o = options;
    if (o->log2 < 6 || o->log2 > 32 || o->per_word < 1) {
        snprintf(message, message_size, "--log2 must be 6 to 32, --per-word at least 1");
        return 0;
    }
    if (strcmp(o->by, "both") != 0 && strcmp(o->by, "host") != 0 && strcmp(o->by, "region") != 0) {
        snprintf(message, message_size, "--by needs both, host or region, not '%s'", o->by);
        return 0;
    }
    return 1;
}

int main(int argc, char **argv) {
    gups_options o = {.log2 = 20, .per_word = 4, .by = "both"};
    const option_row rows[] = {
        {"--log2", OPTION_INT, 1, 0, &o.log2, "N", "2^N words of 8 bytes per rank [20]"},
        {"--per-word", OPTION_INT, 1, 0, &o.per_word, "N", "updates per word of the table [4]"},
        {"--by", OPTION_TEXT, 1, 0, &o.by, "both|host|region", "what makes the updates [both]"},
    };
    int status = 0;
    if (options_handle(rows, sizeof rows / sizeof rows[0], argc, argv, check_options, &o, "gups",
                       "Random atomic updates of a table that all ranks share.", ompx_rank_num(),
                       &status)) {
        return status;
    }
    int passed = 1;
    if (strcmp(o.by, "region") != 0) {
        passed = run(&o, 0) && passed;
    }
    if (strcmp(o.by, "host") != 0) {
        passed = run(&o, 1) && passed;
    }
    return passed ? 0 : 1;
}
