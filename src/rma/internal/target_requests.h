// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operations by request and reply, executed by the target's message handler: atomics on memory that
// is not mapped here, and copies of registered memory through a bounce buffer in the requester's
// slot, which the handler can load and store.
#pragma once

#include "diomp/types.h"
#include "messaging/call.h"
#include "rma/internal/acknowledgements.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace diomp::memory {
class directory;
class segment;
} // namespace diomp::memory

namespace diomp::rma {

enum class request_kind : std::uint32_t { put, get, fetch, compare_swap };

struct target_request {
    messaging::request_header header;
    request_kind what = request_kind::put;
    ompx_type_t type = 0;
    ompx_op_t op = 0;
    std::uint32_t nbytes = 0;
    std::uint32_t acknowledge = 0;   ///< 1: no reply; header.id is a number of the ack window
    std::uint64_t address = 0;       ///< at the target
    std::uint64_t bounce_offset = 0; ///< in the requester's slot
    std::array<std::byte, 8> operand{};
    std::array<std::byte, 8> desired{};
};

struct target_reply {
    std::uint64_t refused = 0; ///< 1: the range is no longer registered
    std::array<std::byte, 8> old{};
};

/// Any thread. Create before engine.start().
class target_requests {
public:
    target_requests(const memory::segment &own, const memory::directory &directory,
                    messaging::engine &engine, messaging::call_service &calls,
                    acknowledgements &acks);

    /// Blocks until the target has replied.
    template <typename Describe>
    result<target_reply> call(world_rank peer, const target_request &request, Describe &&describe) {
        return calls_.call<target_reply>(peer, handler_, request, std::forward<Describe>(describe));
    }
    /// Sends a request without a reply; the next fence waits for its acknowledgement. Returns its
    /// number in the ack window.
    result<std::uint64_t> send(world_rank peer, target_request request);
    /// Sends a request whose reply writes the old value to `old`, request.nbytes bytes. The next
    /// fence waits for it. Returns its number in the ack window.
    result<std::uint64_t> start(world_rank peer, const target_request &request, void *old);
    /// Where these numbers are acknowledged.
    [[nodiscard]] acknowledgements &acks() { return acks_; }

private:
    void on_request(const transport::message &incoming);
    void finish(world_rank requester, const target_request &request, const target_reply &reply);
    [[nodiscard]] std::byte *bounce_of(world_rank requester, const target_request &request) const;

    const memory::segment &own_;
    const memory::directory &directory_;
    messaging::engine &engine_;
    messaging::call_service &calls_;
    acknowledgements &acks_;
    transport::handler_id handler_;
};

} // namespace diomp::rma
