// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs the chosen benchmarks in a fixed order.
#pragma once

#include "collectives.h"
#include "synchronisation.h"
#include "transfers.h"

namespace diomp::bench {

/// Returns the size of each of the two symmetric buffers.
inline std::size_t symmetric_bytes(const options &wanted) {
    std::size_t largest = mib;
    if (wanted.wants("put") || wanted.wants("put_event") || wanted.wants("get") ||
        wanted.wants("signal") || wanted.wants("bandwidth") || wanted.wants("memcpy")) {
        for (const std::size_t size : transfer_sizes(wanted)) {
            largest = std::max(largest, size);
        }
    }
    return largest;
}

/// Makes an empty report; rank 0 prints it and writes the files.
template <typename Library>
report make_report(const Library &library) {
    return {{Library::name(), library.conduit(), library.size()}, library.rank() == 0};
}

/// Runs all chosen benchmarks. Collective. Wrong data ends the job by library.fail().
template <typename Library>
void run_suite(Library &library, const options &wanted, report &results) {
    const std::size_t largest = symmetric_bytes(wanted);
    session<Library> with{
        library, wanted, results, library.symmetric(largest), library.symmetric(largest), largest};
    if (wanted.wants("put") || wanted.wants("put_event") || wanted.wants("memcpy")) {
        bench_put(with);
    }
    if (wanted.wants("get") || wanted.wants("memcpy")) {
        bench_get(with);
    }
    if (wanted.wants("signal")) {
        bench_signal(with);
    }
    if (wanted.wants("channel")) {
        bench_channel(with);
    }
    if (wanted.wants("bandwidth")) {
        bench_bandwidth(with);
    }
    if (wanted.wants("rate")) {
        bench_rate(with);
    }
    if (wanted.wants("barrier")) {
        bench_barrier(with);
    }
    if (wanted.wants("lock")) {
        bench_lock(with);
    }
    if (wanted.wants("atomic")) {
        bench_atomic(with);
    }
    for (const collective &what : collectives()) {
        if (wanted.wants(what.name)) {
            bench_collective(with, what);
        }
    }
    library.barrier();
}

/// Runs the benchmarks and writes the report. Returns false if it could not be written.
template <typename Library>
[[nodiscard]] bool run_and_report(Library &library, const options &wanted) {
    report results = make_report(library);
    run_suite(library, wanted, results);
    return results.write_files(wanted.json, wanted.csv);
}

} // namespace diomp::bench
