/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Collectives of one device per rank, which on a machine with one GPU is the same for all: filled
 * and checked by target regions. With a number of MiB as argument also the speed of two calls on
 * so much per rank, beside that of a copy on the device ("figure NAME BYTES VALUE UNIT"). */
#include "support/check.h"

#include <omp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 20011 };

static int me, ranks, device;
static ompx_group_t group;
static double *src, *dst; /* ranks * BLOCK each, on the device */

/* What a member brings: small whole numbers, so that sums are exact. */
#pragma omp begin declare target
static double brought(int member, long i) { return (member + 1) * 8 + (double)(i % 7); }
#pragma omp end declare target

static void fill(void) {
    long const count = (long)ranks * BLOCK;
    int const member = me;
    double *const s = src, *const d = dst;
#pragma omp target teams distribute parallel for device(device) is_device_ptr(s, d)
    for (long i = 0; i < count; ++i) {
        s[i] = brought(member, i);
        d[i] = -1;
    }
}

/* Elements of dst [0, count) that are not factor * brought(member of the block, first + i) + rest.
 */
static long wrong(long count, double factor, double rest, int first_member, long first) {
    long found = 0;
    int const step = first_member < 0 ? 1 : 0;
    int const from = first_member < 0 ? 0 : first_member;
    double *const d = dst;
#pragma omp target teams distribute parallel for device(device) is_device_ptr(d)                   \
    reduction(+ : found) map(tofrom : found)
    for (long i = 0; i < count; ++i) {
        int const member = from + step * (int)(i / BLOCK);
        long const at = step ? i % BLOCK : i;
        found += d[i] != factor * brought(member, first + at) + rest;
    }
    return found;
}

static void reductions(void) {
    double const sum_of_members = 8.0 * ranks * (ranks + 1) / 2;
    double const rest = sum_of_members - ranks * 8.0; /* brought(0, i) has 8 of it */
    int const root = ranks - 1;
    fill();
    CHECK(ompx_target_allreduce(dst, src, device, BLOCK, OMPX_DOUBLE, OMPX_SUM, group) == 0);
    CHECK(wrong(BLOCK, ranks, rest, 0, 0) == 0);
    fill();
    CHECK(ompx_target_allreduce(src, src, device, BLOCK, OMPX_DOUBLE, OMPX_SUM, group) == 0);
    CHECK(ompx_target_allreduce(dst, src, device, BLOCK, OMPX_DOUBLE, OMPX_AVG, group) == 0);
    CHECK(wrong(BLOCK, ranks, rest, 0, 0) == 0);
    fill();
    CHECK(ompx_target_reduce(dst, src, device, BLOCK, OMPX_DOUBLE, OMPX_MAX, root, group) == 0);
    CHECK(me != root || wrong(BLOCK, 1, 0, root, 0) == 0);
    fill();
    CHECK(ompx_target_reduce_scatter(dst, src, device, BLOCK, OMPX_DOUBLE, OMPX_SUM, group) == 0);
    CHECK(wrong(BLOCK, ranks, rest, 0, (long)me * BLOCK) == 0);
    /* Twice itself is nothing: bits, where the number of ranks is even. */
    fill();
    CHECK(ompx_target_bcast(src, device, sizeof(double) * BLOCK, 0, group) == 0);
    CHECK(ompx_target_allreduce(dst, src, device, BLOCK, OMPX_INT64, OMPX_BXOR, group) == 0);
    CHECK(wrong(BLOCK, ranks % 2 == 0 ? 0 : 1, 0, 0, 0) == 0);
}

static void moves(void) {
    size_t const nbytes = sizeof(double) * BLOCK;
    int const root = ranks - 1;
    fill();
    CHECK(ompx_target_allgather(dst, src, device, nbytes, group) == 0);
    CHECK(wrong((long)ranks * BLOCK, 1, 0, -1, 0) == 0);
    fill();
    CHECK(ompx_target_gather(dst, src, device, nbytes, root, group) == 0);
    CHECK(me != root || wrong((long)ranks * BLOCK, 1, 0, -1, 0) == 0);
    fill();
    CHECK(ompx_target_scatter(dst, src, device, nbytes, root, group) == 0);
    CHECK(wrong(BLOCK, 1, 0, root, (long)me * BLOCK) == 0);
    fill();
    CHECK(ompx_target_alltoall(dst, src, device, nbytes, group) == 0);
    CHECK(wrong((long)ranks * BLOCK, 1, 0, -1, (long)me * BLOCK) == 0);
}

static void allreduce(double *to, double *from, size_t nbytes) {
    CHECK(ompx_target_allreduce(to, from, device, nbytes / sizeof(double), OMPX_DOUBLE, OMPX_SUM,
                                group) == 0);
}

static void bcast(double *to, double *from, size_t nbytes) {
    (void)from;
    CHECK(ompx_target_bcast(to, device, nbytes, 0, group) == 0);
}

static void copy(double *to, double *from, size_t nbytes) {
    CHECK(omp_target_memcpy(to, from, nbytes, 0, 0, device, device) == 0);
}

static void put_from_host(double *to, double *from, size_t nbytes) {
    CHECK(ompx_target_put(me, to, device, from, omp_get_initial_device(), nbytes) == 0);
}

static void get_to_host(double *to, double *from, size_t nbytes) {
    CHECK(ompx_target_get(from, omp_get_initial_device(), me, to, device, nbytes) == 0);
}

static void print_speed(const char *name, void (*call)(double *, double *, size_t), double *to,
                        double *from, size_t nbytes) {
    int const rounds = 10;
    call(to, from, nbytes); /* opens what it needs, and pins host memory */
    call(to, from, nbytes);
    CHECK(ompx_barrier() == 0);
    double const start = omp_get_wtime();
    for (int round = 0; round < rounds; ++round) {
        call(to, from, nbytes);
    }
    double const seconds = (omp_get_wtime() - start) / rounds;
    if (me == 0) {
        printf("figure %s %zu %.2f GB/s\n", name, nbytes, (double)nbytes / seconds * 1e-9);
    }
}

/* From and to host memory, global or not. */
static void measure_host(const char *name, double *host, void (*call)(double *, double *, size_t),
                         size_t nbytes) {
    double *const to = ompx_target_alloc(nbytes, device, ompx_symmetric_mem_alloc);
    CHECK(to != NULL && host != NULL);
    memset(host, me, nbytes);
    print_speed(name, call, to, host, nbytes);
    CHECK(ompx_target_free(to, device) == 0);
}

static void measure_host_memory(size_t nbytes) {
    double *const global = omp_alloc(nbytes, ompx_local_mem_alloc);
    double *const own = malloc(nbytes);
    measure_host("global-to-device", global, put_from_host, nbytes);
    measure_host("device-to-global", global, get_to_host, nbytes);
    measure_host("malloc-to-device", own, put_from_host, nbytes);
    measure_host("device-to-malloc", own, get_to_host, nbytes);
    free(own);
    omp_free(global, ompx_local_mem_alloc);
}

static void measure(const char *name, void (*call)(double *, double *, size_t), size_t nbytes) {
    double *const to = ompx_target_alloc(nbytes, device, ompx_symmetric_mem_alloc);
    double *const from = ompx_target_alloc(nbytes, device, ompx_symmetric_mem_alloc);
    CHECK(to != NULL && from != NULL);
    print_speed(name, call, to, from, nbytes);
    CHECK(ompx_target_free(to, device) == 0 && ompx_target_free(from, device) == 0);
}

int main(int argc, char **argv) {
    me = ompx_rank_num();
    ranks = ompx_num_ranks();
    device = ompx_rank_device(0);
    CHECK(ompx_group_create_devices(ompx_group_world, &group) == 0);
    size_t const nbytes = sizeof(double) * BLOCK * (size_t)ranks;
    src = ompx_target_alloc(nbytes, device, ompx_symmetric_mem_alloc);
    dst = ompx_target_alloc(nbytes, device, ompx_symmetric_mem_alloc);
    CHECK(src != NULL && dst != NULL);
    reductions();
    moves();
    CHECK(ompx_target_free(src, device) == 0 && ompx_target_free(dst, device) == 0);
    if (argc > 1) {
        size_t const measured = (size_t)atoi(argv[1]) << 20;
        measure("allreduce-per-rank", allreduce, measured);
        measure("bcast-per-rank", bcast, measured);
        measure("copy-on-device", copy, measured);
        measure_host_memory(measured);
    }
    CHECK(ompx_group_free(&group) == 0);
    return 0;
}
