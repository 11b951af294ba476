// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/gaspi/peer.h"

#include <fmt/core.h>

namespace diomp::transport::gaspi {

put_counts deferred_queue::count_puts() const {
    put_counts counts;
    for (deferred const &each : waiting_) {
        counts.num_puts += each.flush == nullptr ? 1 : 0;
        counts.bytes += each.bytes.size();
    }
    return counts;
}

bool peer::is_awaited() {
    return num_flushes.load(std::memory_order_relaxed) > 0 || gets.num_gets() > 0 ||
           num_transfers.load(std::memory_order_relaxed) > 0 || outgoing.num_unacknowledged() > 0;
}

std::string peer::count_outstanding() const {
    put_counts const deferred_puts = waiting.count_puts();
    std::uint64_t num_puts = puts.unmarked().num_puts + deferred_puts.num_puts;
    std::uint64_t put_bytes = puts.unmarked().bytes + deferred_puts.bytes;
    for (marker const &each : markers[static_cast<std::size_t>(marker_kind::puts)]) {
        num_puts += each.puts.num_puts;
        put_bytes += each.puts.bytes;
    }
    return fmt::format("{} get(s) of {} bytes, {} flush(es) of {} put(s) of {} bytes, {} large "
                       "transfer(s) and {} bytes of messages",
                       gets.num_gets(), gets.bytes(), num_flushes.load(), num_puts, put_bytes,
                       num_transfers.load(), outgoing.num_unacknowledged() * message_unit);
}

std::string peer::describe_outstanding(bool is_silent) {
    bool const waits = gets.num_gets() > 0 || num_transfers > 0 || num_flushes > 0 ||
                       (is_silent && outgoing.num_unacknowledged() > 0);
    return waits ? count_outstanding() : "";
}

} // namespace diomp::transport::gaspi
