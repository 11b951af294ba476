// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "remote.h"

#include "offload/remote_table.h"

#include <cstdlib>
#include <iterator>
#include <vector>

extern "C" const diomp_remote_table *diomp_remote_table();

namespace diomp::bench {
namespace {

constexpr std::size_t sizes[] = {64, 256, 1024, 2048, 4096, 6144, 7168};

struct protocol_setting {
    const char *name;
    const char *threshold; ///< DIOMP_SPLIT_THRESHOLD
};
constexpr protocol_setting protocols[] = {{"inline", "1M"}, {"zero_copy", "1"}};

/// Measures all sizes with one threshold, which is read when the connection is made.
bool measure_protocol(const protocol_setting &protocol, const sampling &how,
                      std::vector<timing> &times) {
    const struct diomp_remote_table &remote = *diomp_remote_table();
    ::setenv("DIOMP_SPLIT_THRESHOLD", protocol.threshold, 1);
    if (remote.open() < 1) {
        std::fprintf(stderr, "diomp-bench: no remote device: %s\n", remote.failure());
        return false;
    }
    std::vector<char> const source(sizes[std::size(sizes) - 1], 'x');
    std::uint64_t const there = remote.allocate(0, source.size());
    bool ok = there != 0;
    for (std::size_t const nbytes : sizes) {
        times.push_back(measure(std::vector<body>{single_rank_body([&] {
                                    void *const queue = remote.queue(0);
                                    ok = ok && remote.put(queue, there, source.data(), nbytes) == 0;
                                    ok = remote.wait(queue) == 0 && ok;
                                })},
                                how)
                            .front());
    }
    if (!ok) {
        std::fprintf(stderr, "diomp-bench: %s\n", remote.failure());
    }
    remote.close();
    return ok;
}

} // namespace

bool measure_remote(const sampling &how, report &into) {
    if (diomp_remote_table()->wanted() == 0) {
        std::fprintf(stderr, "diomp-bench: remote needs a remote device: run it under diomp-run "
                             "--remote-devices, or set DIOMP_REMOTE_DEVICES\n");
        return false;
    }
    std::vector<timing> times[std::size(protocols)];
    for (std::size_t protocol = 0; protocol < std::size(protocols); ++protocol) {
        if (!measure_protocol(protocols[protocol], how, times[protocol])) {
            return false;
        }
    }
    std::size_t best = 0;
    for (std::size_t i = 0; i < std::size(sizes); ++i) {
        for (std::size_t protocol = 0; protocol < std::size(protocols); ++protocol) {
            into.add({.benchmark = "remote",
                      .operation = protocols[protocol].name,
                      .buffers = "-",
                      .size_bytes = sizes[i],
                      .time = times[protocol][i]});
        }
        if (times[0][i].median_us <= times[1][i].median_us) {
            best = sizes[i];
        }
    }
    std::printf("inline is faster up to %zu bytes: DIOMP_SPLIT_THRESHOLD=%zu\n", best,
                best > 0 ? best : 1);
    return true;
}

} // namespace diomp::bench
