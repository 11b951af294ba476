// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/gaspi/peer.h"

#include <fmt/core.h>

namespace diomp::transport::gaspi {

bool peer::is_awaited() {
    return num_flushes.load(std::memory_order_relaxed) > 0 ||
           num_gets.load(std::memory_order_relaxed) > 0 ||
           num_transfers.load(std::memory_order_relaxed) > 0 ||
           sent.load(std::memory_order_relaxed) != handled.load(std::memory_order_relaxed);
}

std::string peer::count_outstanding() const {
    std::uint64_t puts = unmarked.num_puts;
    std::uint64_t put_bytes = unmarked.put_bytes;
    for (marker const &each : markers[static_cast<std::size_t>(marker_kind::puts)]) {
        puts += each.num_puts;
        put_bytes += each.put_bytes;
    }
    for (deferred const &each : waiting) {
        puts += each.flush == nullptr ? 1 : 0;
        put_bytes += each.bytes.size();
    }
    return fmt::format("{} get(s) of {} bytes, {} flush(es) of {} put(s) of {} bytes, {} large "
                       "transfer(s) and {} bytes of messages",
                       num_gets.load(), get_bytes.load(), num_flushes.load(), puts, put_bytes,
                       num_transfers.load(), distance(handled, sent) * message_unit);
}

std::string peer::describe_outstanding(bool is_silent) {
    bool const waits = num_gets > 0 || num_transfers > 0 || num_flushes > 0 ||
                       (is_silent && sent.load() != handled.load());
    return waits ? count_outstanding() : "";
}

} // namespace diomp::transport::gaspi
