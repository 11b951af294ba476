// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operations outstanding towards one rank. Protected by the lock of `iface`, except atomic members.
#pragma once

#include "transport/common/network_peer.h"
#include "transport/gaspi/queue.h"
#include "transport/gaspi/record.h"

#include <array>
#include <deque>
#include <string>
#include <vector>

namespace diomp::transport::gaspi {

/// A read after earlier operations of a connection: when it completes, they have arrived.
struct marker {
    std::atomic<std::uint32_t> *word;
    std::uint64_t num_puts;
    std::uint64_t put_bytes;
    std::uint64_t small_put_bytes;
    std::vector<completion *> waiting;
};

/// A small put that waits for space in a queue, or a flush of the deferred puts before it.
struct deferred {
    std::uint64_t offset;
    std::vector<std::byte> bytes;
    completion *flush; ///< nullptr: a put
};

/// Puts and messages use different queues, so each kind has its own markers.
enum class marker_kind : std::uint8_t { puts, messages };

class peer final : public network_peer {
public:
    using network_peer::network_peer;

    [[nodiscard]] bool is_awaited() override;
    [[nodiscard]] std::string describe_outstanding(bool is_silent) override;
    [[nodiscard]] std::string count_outstanding() const override;
    [[nodiscard]] std::deque<marker> &markers_of(marker_kind kind) {
        return markers[static_cast<std::size_t>(kind)];
    }

    std::array<gaspi_queue *, num_queue_kinds> queues{};
    std::array<std::deque<marker>, 2> markers;
    marker unmarked{};                 ///< puts since the last marker
    bool is_unflushed = false;         ///< is in the iface's list
    std::uint64_t unflushed_bytes = 0; ///< of puts after the last completed marker
    std::uint64_t unflushed_small_bytes = 0;

    std::deque<deferred> waiting; ///< not posted to GPI-2 yet
    std::size_t waiting_bytes = 0;

    std::atomic<std::uint32_t> num_flushes{0}; ///< waited for
    std::atomic<std::uint32_t> num_gets{0};    ///< chunks
    std::atomic<std::uint64_t> get_bytes{0};
    std::atomic<std::uint32_t> num_transfers{0}; ///< chunks of puts whose source is still in use

    std::atomic<std::uint32_t> sent{0};     ///< end of the last message
    std::uint32_t transmitted = 0;          ///< end of what was posted to GPI-2
    bool is_untransmitted = false;          ///< is in the iface's list
    std::atomic<std::uint32_t> handled{0};  ///< end of what the peer has acknowledged
    std::atomic<std::uint32_t> received{0}; ///< end of the last message received
    std::uint32_t credited = 0;             ///< received position of the last credit
    std::uint32_t to_credit = 0;            ///< received position of the next credit
    bool is_credit_due = false;
};

} // namespace diomp::transport::gaspi
