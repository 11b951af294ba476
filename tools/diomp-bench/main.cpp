// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// diomp-bench: measures DiOMP. Each benchmark checks its data and ends the job on an error.
#include "base/tool_main.h"
#include "bench/memory_use.h"
#include "diomp_library.h"
#include "polling.h"
#include "remote.h"
#include "startup.h"

namespace {

/// Puts to each of the next `count` ranks and enters a barrier: the memory that a peer costs once
/// it is connected.
int put_to_peers(int count) {
    auto *const word =
        static_cast<std::uint64_t *>(ompx_alloc(sizeof(std::uint64_t), 0, OMPX_MEM_SYMMETRIC));
    if (word == nullptr) {
        return OMPX_ERR_NOMEM;
    }
    const int ranks = ompx_num_ranks();
    const std::uint64_t value = 1;
    int outcome = OMPX_SUCCESS;
    for (int i = 1; i <= count && outcome == OMPX_SUCCESS; ++i) {
        outcome = ompx_put((ompx_rank_num() + i) % ranks, word, &value, sizeof(value));
    }
    return outcome == OMPX_SUCCESS ? ompx_barrier() : outcome;
}

int hello(int num_peers) {
    int status = ompx_barrier();
    if (num_peers > 0) {
        status = put_to_peers(num_peers);
    }
    diomp::bench::print_resident_memory();
    return status == OMPX_SUCCESS ? 0 : 1;
}

int run(int argc, char **argv) {
    using namespace diomp::bench;
    int startup_ranks = 4;
    int num_peers = 0;
    options wanted = parse_benchmarks(
        "Measures DiOMP: latency, bandwidth, message rate, synchronisation, collectives.\n"
        "Run it under diomp-run; rank 0 reports.",
        argc, argv,
        {.subcommands = {{"channel", "latency of a message of a channel, one way, by size"},
                         {"memcpy", "memcpy and streaming stores into and from rank 1's memory"},
                         {"poll",
                          "a test and a wait whose condition holds, and progress, on rank 0"},
                         {"startup", "start and end of a whole job of --startup-ranks ranks"},
                         {"remote",
                          "puts to a remote device, inline in messages and zero-copy; finds "
                          "DIOMP_SPLIT_THRESHOLD"},
                         {"hello", "start, barrier, end; prints the resident memory of each rank"}},
         .numbers = {
             {"--startup-ranks", "ranks of the jobs that startup starts", &startup_ranks, 1, 4096},
             {"--contacts", "of hello: ranks that each rank puts to before it prints", &num_peers,
              0, 1 << 20}}});
    if (wanted.all) {
        wanted.benchmarks.insert(wanted.benchmarks.end(), {"channel", "memcpy", "poll", "startup"});
    }
    if (wanted.wants("hello")) {
        return hello(num_peers);
    }
    diomp_library library;
    report results = make_report(library);
    run_suite(library, wanted, results);
    if (wanted.wants("poll") && library.rank() == 0) {
        measure_polling(wanted.how, results);
    }
    // This benchmark starts jobs of its own; the other ranks of this job wait.
    bool ok = true;
    if (wanted.wants("startup") && library.rank() == 0) {
        ok = measure_startup(startup_ranks, wanted.how.samples, results);
    }
    if (wanted.wants("remote") && library.rank() == 0) {
        ok = measure_remote(wanted.how, results) && ok;
    }
    library.barrier();
    return results.write_files(wanted.json, wanted.csv) && ok ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
    return diomp::run_tool("diomp-bench", [argc, argv] { return run(argc, argv); });
}
