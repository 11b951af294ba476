// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "config/internal/rows.h"

namespace diomp::config {

std::span<const setting_row> messaging_rows() {
    static constexpr auto rows = std::to_array<setting_row>({
        {"DIOMP_TIMEOUT", "seconds", "0",
         "A call that waits for other ranks fails after this time and names these ranks; the start "
         "of a job after at least 30 s. 0: waits forever, with a warning after DIOMP_WARN_AFTER.",
         value<seconds>([](auto &s) -> auto & { return s.messaging.timeout_s; })},
        {"DIOMP_WARN_AFTER", "seconds", "60",
         "A call that has waited this long prints once what it waits for. 0: never.",
         value<seconds>([](auto &s) -> auto & { return s.messaging.warn_after_s; })},
        {"DIOMP_SPIN", "integer", "auto",
         "Maximum number of polls before a waiting thread yields or sleeps; the actual number "
         "adapts to the load of the cores. auto: 2000, some 40 us.",
         value<auto_number<0, -1>>([](auto &s) -> auto & { return s.messaging.spin_count; })},
    });
    return rows;
}

} // namespace diomp::config
