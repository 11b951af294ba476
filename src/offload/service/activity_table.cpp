// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/service/activity_table.h"

#include <algorithm>
#include <cstring>

namespace diomp::offload::service {

void activity_table::begin(std::size_t thread, const std::string &kernel) {
    if (thread >= num_entries) {
        return;
    }
    entry &mine = entries[thread];
    std::size_t const length = std::min(kernel.size(), sizeof(mine.kernel) - 1);
    std::memcpy(mine.kernel, kernel.data(), length);
    mine.kernel[length] = '\0';
    mine.is_busy.store(true, std::memory_order_release);
}

void activity_table::end(std::size_t thread) {
    if (thread < num_entries) {
        entries[thread].is_busy.store(false, std::memory_order_release);
    }
}

std::string activity_table::describe() const {
    std::string text;
    for (entry const &each : entries) {
        if (each.is_busy.load(std::memory_order_acquire)) {
            text += (text.empty() ? "kernel " : ", kernel ") +
                    std::string(each.kernel, ::strnlen(each.kernel, sizeof each.kernel));
        }
    }
    return text;
}

} // namespace diomp::offload::service
