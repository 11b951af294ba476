// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "config/internal/rows.h"

namespace diomp::config {

std::span<const setting_row> coll_rows() {
    static constexpr auto rows = std::to_array<setting_row>({
        {"DIOMP_COLL_TUNING", "path", "",
         "File of rules that choose the algorithms of collectives by collective, number of members "
         "and nodes, and size (docs/collectives.md has the format, diomp-info --coll-tuning the "
         "names). Rank 0 reads it for all ranks; the value of other ranks does not matter.",
         value<any_text>([](auto &s) -> auto & { return s.coll.tuning_file; })},
    });
    return rows;
}

} // namespace diomp::config
