// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A put with fence from rank 0 to rank 1, for bench/compare-offload: between host memory ("host"),
// between allocations of the default device ("device"), and between arrays that are mapped there
// ("mapped"). The three are measured in turn.
#include "bench/session.h"

#include <array>
#include <diomp.h>
#include <omp.h>

namespace diomp::bench {
namespace {

constexpr std::size_t largest_bytes = 16 * mib;
constexpr int target_rank = 1;

void check(int status) {
    if (status != OMPX_SUCCESS) { // with DIOMP_ERRORS=return; otherwise the job has ended
        ompx_abort(1);
    }
}

/// One kind of memory: a source, and a symmetric target.
struct arrays {
    const char *kind;
    int device; ///< device of both arrays
    char *source;
    char *target;
};

void put(const arrays &pair, std::size_t nbytes) {
    check(ompx_target_put(target_rank, pair.target, pair.device, pair.source, pair.device, nbytes));
    check(ompx_fence());
}

void put_host(const arrays &pair, std::size_t nbytes) {
    check(ompx_put(target_rank, pair.target, pair.source, nbytes));
    check(ompx_fence());
}

void fill_source(const arrays &pair, const char *pattern) {
    check(ompx_target_put(ompx_rank_num(), pair.source, pair.device, pattern,
                          omp_get_initial_device(), largest_bytes));
}

/// Ends the job if the target differs from the source.
void check_target(const arrays &pair) {
    buffer const back = private_buffer(largest_bytes);
    check(ompx_target_get(back.get(), omp_get_initial_device(), target_rank, pair.target,
                          pair.device, largest_bytes));
    std::string const error = pattern_error(back.get(), largest_bytes, largest_bytes);
    if (!error.empty()) {
        std::fprintf(stderr, "target_put, %s: moved wrong data: %s\n", pair.kind, error.c_str());
        ompx_abort(1);
    }
}

void measure_size(const std::array<arrays, 3> &kinds, const sampling &how, report &results,
                  std::size_t nbytes) {
    std::vector<body> bodies;
    for (const arrays &pair : kinds) {
        bool const on_host = pair.device == omp_get_initial_device();
        bodies.push_back(single_rank_body(
            [&pair, nbytes, operation = on_host ? put_host : put] { operation(pair, nbytes); }));
    }
    std::vector<timing> const times = measure(bodies, how);
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        results.add({.benchmark = "offload",
                     .operation = "put",
                     .buffers = kinds[i].kind,
                     .size_bytes = nbytes,
                     .time = times[i]});
    }
}

void measure_all(const std::array<arrays, 3> &kinds, const sampling &how, report &results) {
    for (std::size_t const nbytes : {std::size_t{8}, 4 * kib, 64 * kib, mib, largest_bytes}) {
        measure_size(kinds, how, results, nbytes);
    }
    for (const arrays &pair : kinds) {
        check_target(pair);
    }
}

char *allocate(int device) {
    void *const memory = device == omp_get_initial_device()
                             ? omp_alloc(largest_bytes, ompx_symmetric_mem_alloc)
                             : ompx_target_alloc(largest_bytes, device, ompx_symmetric_mem_alloc);
    if (memory == nullptr) {
        ompx_abort(1);
    }
    return static_cast<char *>(memory);
}

void measure_puts(const sampling &how, report &results) {
    int const host = omp_get_initial_device();
    int const device = omp_get_default_device();
    buffer const mapped_source = private_buffer(largest_bytes);
    buffer const mapped_target = private_buffer(largest_bytes);
    char *const source = mapped_source.get();
    char *const target = mapped_target.get();
#pragma omp target enter data map(to : source[0 : largest_bytes], target[0 : largest_bytes])
    std::array<arrays, 3> const kinds{{{"host", host, allocate(host), allocate(host)},
                                       {"device", device, allocate(device), allocate(device)},
                                       {"mapped", device, source, target}}};
    buffer const pattern = private_buffer(largest_bytes);
    fill_pattern(pattern.get(), largest_bytes, largest_bytes);
    for (const arrays &each : kinds) {
        fill_source(each, pattern.get());
    }
    check(ompx_barrier());
    if (ompx_rank_num() == 0) {
        measure_all(kinds, how, results);
    }
    check(ompx_barrier());
#pragma omp target exit data map(release : source[0 : largest_bytes], target[0 : largest_bytes])
    check(ompx_target_free(kinds[1].target, device));
    check(ompx_target_free(kinds[1].source, device));
    check(ompx_free(kinds[0].target));
    check(ompx_free(kinds[0].source));
}

} // namespace
} // namespace diomp::bench

int main(int argc, char **argv) {
    using namespace diomp::bench;
    options const wanted = parse_measurement(
        "A put with fence between host memory and between devices; 2 ranks", argc, argv);
    if (ompx_num_ranks() != 2) {
        std::fprintf(stderr, "target_put: run it with 2 ranks\n");
        return 1;
    }
    report results({"diomp", "shm", 2}, ompx_rank_num() == 0);
    measure_puts(wanted.how, results);
    return results.write_files(wanted.json, wanted.csv) ? 0 : 1;
}
