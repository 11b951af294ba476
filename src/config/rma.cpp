// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "config/internal/rows.h"

namespace diomp::config {

std::span<const setting_row> rma_rows() {
    static constexpr auto rows = std::to_array<setting_row>({
        {"DIOMP_STREAM_THRESHOLD", "size", "auto",
         "Transfers of at least this size (at least 1K) use stores that bypass the caches. auto: "
         "tuned at run time from 1M up, for puts to new places from 4K up; collectives use the "
         "cache sizes.",
         value<auto_size>([](auto &s) -> auto & { return s.rma.stream_threshold_bytes; })},
    });
    return rows;
}

} // namespace diomp::config
