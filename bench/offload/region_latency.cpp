// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Target regions, maps and allocations on the default device, for bench/compare-offload. Does not
// use DiOMP. Rows: region (an empty one), map_tofrom (a region that maps an array and changes its
// first byte), enter_exit (enter data and exit data of an array, without copies), target_alloc
// (omp_target_alloc and omp_target_free), copy_to and copy_from (omp_target_memcpy of private host
// memory).
#include "bench/session.h"

#include <omp.h>

namespace diomp::bench {
namespace {

[[noreturn]] void fail(const char *message) {
    std::fprintf(stderr, "region_latency: %s\n", message);
    std::exit(1);
}

void region() {
#pragma omp target
    {
    }
}

void map_to_and_from(char *array, std::size_t nbytes) {
#pragma omp target map(tofrom : array[0 : nbytes])
    array[0] = static_cast<char>(array[0] + 1);
}

void enter_and_exit(const char *array, std::size_t nbytes) {
#pragma omp target enter data map(alloc : array[0 : nbytes])
#pragma omp target exit data map(release : array[0 : nbytes])
}

void allocate(int device, std::size_t nbytes) {
    void *const memory = omp_target_alloc(nbytes, device);
    if (memory == nullptr) {
        fail("no memory on the device");
    }
    omp_target_free(memory, device);
}

/// Ends the program if regions run on the host, where times would be meaningless.
void require_device() {
    int on_host = 1;
#pragma omp target map(from : on_host)
    on_host = omp_is_initial_device();
    if (on_host != 0) {
        fail("target regions run on the host");
    }
}

void add(report &results, const char *operation, std::size_t nbytes, const timing &time) {
    results.add({.benchmark = "offload",
                 .operation = operation,
                 .buffers = "-",
                 .size_bytes = nbytes,
                 .time = time});
}

void measure_size(const sampling &how, report &results, std::size_t nbytes) {
    int const device = omp_get_default_device();
    buffer const memory = private_buffer(nbytes);
    char *const array = memory.get();
    unsigned char changes = 0;
    std::vector<body> const bodies{
        single_rank_body([&changes, array, nbytes] {
            map_to_and_from(array, nbytes);
            ++changes;
        }),
        single_rank_body([array, nbytes] { enter_and_exit(array, nbytes); }),
        single_rank_body([device, nbytes] { allocate(device, nbytes); })};
    std::vector<timing> const times = measure(bodies, how);
    if (static_cast<unsigned char>(array[0]) != changes) {
        fail("a region's change did not come back");
    }
    add(results, "map_tofrom", nbytes, times[0]);
    add(results, "enter_exit", nbytes, times[1]);
    add(results, "target_alloc", nbytes, times[2]);
}

void copy(void *to, const void *from, std::size_t nbytes, int to_device, int from_device) {
    if (omp_target_memcpy(to, from, nbytes, 0, 0, to_device, from_device) != 0) {
        fail("a copy failed");
    }
}

void measure_copies(const sampling &how, report &results, std::size_t nbytes) {
    int const device = omp_get_default_device();
    int const host = omp_get_initial_device();
    buffer const memory = private_buffer(nbytes);
    char *const array = memory.get();
    void *const there = omp_target_alloc(nbytes, device);
    if (there == nullptr) {
        fail("no memory on the device");
    }
    std::vector<body> const bodies{
        single_rank_body([=] { copy(there, array, nbytes, device, host); }),
        single_rank_body([=] { copy(array, there, nbytes, host, device); })};
    std::vector<timing> const times = measure(bodies, how);
    omp_target_free(there, device);
    add(results, "copy_to", nbytes, times[0]);
    add(results, "copy_from", nbytes, times[1]);
}

} // namespace
} // namespace diomp::bench

int main(int argc, char **argv) {
    using namespace diomp::bench;
    options const wanted =
        parse_measurement("Target regions and maps on the default device", argc, argv);
    require_device();
    report results({"libomptarget", "-", 1}, true);
    body const empty = single_rank_body(region);
    add(results, "region", 0, measure(std::span(&empty, 1), wanted.how).front());
    for (std::size_t const nbytes : {std::size_t{64}, 4 * kib, 64 * kib, mib, 16 * mib}) {
        measure_size(wanted.how, results, nbytes);
    }
    for (std::size_t const nbytes : {64 * kib, mib, 16 * mib, 64 * mib}) {
        measure_copies(wanted.how, results, nbytes);
    }
    return results.write_files(wanted.json, wanted.csv) ? 0 : 1;
}
