// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rank_tracker.h"

#include <fmt/format.h>

namespace diomp::run {

void rank_tracker::join(int rank) {
    if ((flags(rank) & joined) == 0) {
        flags(rank) |= joined;
        ++joined_;
    }
}

void rank_tracker::finalize(int rank) {
    if ((flags(rank) & finalized) == 0) {
        unfinished_ -= (flags(rank) & exited) == 0 ? 1 : 0;
        flags(rank) |= finalized;
        suspects_.erase(rank);
    }
}

void rank_tracker::mark_exited(int rank) {
    if ((flags(rank) & exited) == 0) {
        flags(rank) |= exited;
        if ((flags(rank) & finalized) == 0) {
            --unfinished_;
            suspects_.insert(rank);
        }
    }
}

std::optional<rank_tracker::premature_exit> rank_tracker::find_premature_exit() const {
    if (joined_ == 0 || unfinished_ == 0 || suspects_.empty()) {
        return std::nullopt;
    }
    int const rank = *suspects_.begin();
    bool const has_joined = (flags_[static_cast<std::size_t>(rank)] & joined) != 0;
    return premature_exit{rank, fmt::format("exited with status 0 {} while other ranks still run",
                                            has_joined ? "without ompx_finalize()"
                                                       : "without having joined the job")};
}

std::vector<int> rank_tracker::absent_ranks() const {
    std::vector<int> absent;
    for (std::size_t rank = 0; rank < flags_.size(); ++rank) {
        if ((flags_[rank] & joined) == 0) {
            absent.push_back(static_cast<int>(rank));
        }
    }
    return absent;
}

} // namespace diomp::run
