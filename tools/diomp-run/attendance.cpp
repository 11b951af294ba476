// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attendance.h"

#include <fmt/format.h>

namespace diomp::run {

void attendance::join(int rank) {
    if ((flags(rank) & joined) == 0) {
        flags(rank) |= joined;
        ++joined_;
    }
}

void attendance::finalize(int rank) {
    if ((flags(rank) & finalized) == 0) {
        unfinished_ -= (flags(rank) & left) == 0 ? 1 : 0;
        flags(rank) |= finalized;
        suspects_.erase(rank);
    }
}

void attendance::leave(int rank) {
    if ((flags(rank) & left) == 0) {
        flags(rank) |= left;
        if ((flags(rank) & finalized) == 0) {
            --unfinished_;
            suspects_.insert(rank);
        }
    }
}

std::optional<attendance::deserter> attendance::find_deserter() const {
    if (joined_ == 0 || unfinished_ == 0 || suspects_.empty()) {
        return std::nullopt;
    }
    int const rank = *suspects_.begin();
    bool const has_joined = (flags_[static_cast<std::size_t>(rank)] & joined) != 0;
    return deserter{rank, fmt::format("exited with status 0 {} while other ranks still run",
                                      has_joined ? "without ompx_finalize()"
                                                 : "without having joined the job")};
}

} // namespace diomp::run
