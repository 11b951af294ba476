// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Target regions and transfers on a remote device, for bench/compare-remote. Does not use DiOMP.
// Rows: region (an empty one), chain (one of a chain of empty regions, nowait with depend),
// nowait (one of many that do not depend on each other), map_to and map_from (enter data or exit
// data of an array that moves it), on the default device.
#include "bench/session.h"

#include <omp.h>

namespace diomp::bench {
namespace {

constexpr int chain_length = 64;

[[noreturn]] void fail(const char *message) {
    std::fprintf(stderr, "remote_regions: %s\n", message);
    std::exit(1);
}

void region() {
#pragma omp target
    {
    }
}

/// Returns the seconds of regions that depend on each other, without a wait for each of them.
double chain(std::uint64_t iterations) {
    stopwatch const watch;
    int token = 0;
#pragma omp parallel num_threads(1)
#pragma omp single
    for (std::uint64_t i = 0; i < iterations; ++i) {
#pragma omp target nowait depend(inout : token)
        {
        }
        if (i % chain_length == chain_length - 1) {
#pragma omp taskwait
        }
    }
    region(); // completes all deferred regions
    return watch.seconds();
}

/// Returns the seconds of regions that may run concurrently.
double side_by_side(std::uint64_t iterations) {
    stopwatch const watch;
#pragma omp parallel num_threads(1)
#pragma omp single
    for (std::uint64_t i = 0; i < iterations; ++i) {
#pragma omp target nowait
        {
        }
        if (i % chain_length == chain_length - 1) {
#pragma omp taskwait
        }
    }
    region();
    return watch.seconds();
}

void map_to(const char *array, std::size_t nbytes) {
#pragma omp target enter data map(to : array[0 : nbytes])
#pragma omp target exit data map(release : array[0 : nbytes])
}

void map_from(char *array, std::size_t nbytes) {
#pragma omp target enter data map(alloc : array[0 : nbytes])
#pragma omp target exit data map(from : array[0 : nbytes])
}

/// Checks a round trip: the device adds one to each byte.
void check_transfer(char *array, std::size_t nbytes) {
    fill_pattern(array, nbytes, 1);
#pragma omp target map(tofrom : array[0 : nbytes])
    for (std::size_t i = 0; i < nbytes; ++i) {
        array[i] = static_cast<char>(array[i] + 1);
    }
    for (std::size_t i = 0; i < nbytes; ++i) {
        if (static_cast<unsigned char>(array[i] - 1) != pattern_byte(i, 1)) {
            fail("a transfer moved wrong data");
        }
    }
}

void add(report &results, const char *operation, std::size_t nbytes, const timing &time) {
    results.add({.benchmark = "remote",
                 .operation = operation,
                 .buffers = "-",
                 .size_bytes = nbytes,
                 .time = time});
}

void measure_size(const sampling &how, report &results, std::size_t nbytes) {
    buffer const memory = private_buffer(nbytes);
    char *const array = memory.get();
    check_transfer(array, nbytes);
    std::vector<body> const bodies{single_rank_body([array, nbytes] { map_to(array, nbytes); }),
                                   single_rank_body([array, nbytes] { map_from(array, nbytes); })};
    std::vector<timing> const times = measure(bodies, how);
    add(results, "map_to", nbytes, times[0]);
    add(results, "map_from", nbytes, times[1]);
}

} // namespace
} // namespace diomp::bench

int main(int argc, char **argv) {
    using namespace diomp::bench;
    options const wanted =
        parse_measurement("Target regions and transfers on the default device", argc, argv);
    int on_host = 1;
#pragma omp target map(from : on_host)
    on_host = omp_is_initial_device();
    if (on_host != 0) {
        fail("target regions run on the host");
    }
    report results({"libomptarget", "-", 1}, true);
    std::vector<body> const bodies{single_rank_body(region), chain, side_by_side};
    std::vector<timing> const times = measure(bodies, wanted.how);
    add(results, "region", 0, times[0]);
    add(results, "chain", 0, times[1]);
    add(results, "nowait", 0, times[2]);
    for (std::size_t const nbytes : {std::size_t{4}, std::size_t{1024}, 4 * kib, 16 * kib, 64 * kib,
                                     mib, 16 * mib, 64 * mib}) {
        measure_size(wanted.how, results, nbytes);
    }
    return results.write_files(wanted.json, wanted.csv) ? 0 : 1;
}
