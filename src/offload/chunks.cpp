// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/internal/chunks.h"

namespace diomp::offload {

using rma::run;

std::vector<packed_runs> pack(std::span<const run> runs, std::size_t overhead) {
    // A smaller rest of a chunk is not filled with a part of a run.
    constexpr std::size_t min_part_bytes = 4096;
    std::vector<packed_runs> batches;
    std::size_t space = 0;
    for (run left : runs) {
        while (left.nbytes > 0) {
            if (space < overhead + std::min(left.nbytes, min_part_bytes)) {
                batches.emplace_back();
                space = chunk_bytes;
            }
            std::size_t const nbytes = std::min(left.nbytes, space - overhead);
            batches.back().runs.push_back({left.remote, left.local, nbytes});
            batches.back().nbytes += nbytes;
            space -= nbytes + overhead;
            left = {left.remote + nbytes, left.local + nbytes, left.nbytes - nbytes};
        }
    }
    return batches;
}

std::vector<run> packed_runs::to_local(std::size_t data_begin) const {
    std::vector<run> made;
    made.reserve(runs.size());
    for (const run &each : runs) {
        made.push_back({data_begin, each.local, each.nbytes});
        data_begin += each.nbytes;
    }
    return made;
}

std::vector<run> packed_runs::to_remote(std::size_t data_begin) const {
    std::vector<run> made;
    made.reserve(runs.size());
    for (const run &each : runs) {
        made.push_back({each.remote, data_begin, each.nbytes});
        data_begin += each.nbytes;
    }
    return made;
}

} // namespace diomp::offload
