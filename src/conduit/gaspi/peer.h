// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is under way to one rank. Under the lock of traffic, but for what is atomic.
#pragma once

#include "conduit/gaspi/lane.h"
#include "conduit/gaspi/record.h"
#include "conduit/network_peer.h"

#include <array>
#include <deque>
#include <string>
#include <vector>

namespace diomp::conduit::gaspi {

/// A read behind everything that was started before it on a connection: when it arrives, they have.
struct marker {
    std::atomic<std::uint32_t> *word;
    std::uint64_t num_puts;
    std::uint64_t put_bytes;
    std::uint64_t small_put_bytes;
    std::vector<completion *> waiting;
};

/// A small put that waits for room, or a flush of those before it.
struct deferred {
    std::uint64_t offset;
    std::vector<std::byte> bytes;
    completion *flush; ///< nullptr: a put
};

/// Puts and messages travel on different lanes, so each have markers of their own.
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

    std::array<lane *, num_lane_kinds> lanes{};
    std::array<std::deque<marker>, 2> markers;
    marker unmarked{};                 ///< puts since the last marker
    bool is_unsettled = false;         ///< listed as such
    std::uint64_t unsettled_bytes = 0; ///< of puts, up to the last marker that has come
    std::uint64_t unsettled_small_bytes = 0;

    std::deque<deferred> waiting; ///< what GPI-2 has not been given yet
    std::size_t waiting_bytes = 0;

    std::atomic<std::uint32_t> num_flushes{0}; ///< that somebody waits for
    std::atomic<std::uint32_t> num_gets{0};    ///< pieces
    std::atomic<std::uint64_t> get_bytes{0};
    std::atomic<std::uint32_t> num_transfers{0}; ///< puts whose source is not free yet, pieces

    std::atomic<std::uint32_t> sent{0};    ///< end of the last message
    std::uint32_t shipped = 0;             ///< end of what GPI-2 has been given
    bool is_unshipped = false;             ///< listed as such
    std::atomic<std::uint32_t> handled{0}; ///< of them, as far as the peer has told
    std::atomic<std::uint32_t> taken{0};   ///< end of the last message from there
    std::uint32_t credited = 0;            ///< what the peer has been told of that
    std::uint32_t to_credit = 0;           ///< and what it is to be told
    bool owes_credit = false;
};

} // namespace diomp::conduit::gaspi
