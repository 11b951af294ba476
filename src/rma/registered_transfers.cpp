// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rma/internal/registered_transfers.h"

#include "memory/memory.h"
#include "rma/internal/message_copies.h"
#include "transport/conduit.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

namespace diomp::rma {
namespace {

/// Large enough to hide the message's cost, small enough that a handler does not delay other
/// messages for long.
constexpr std::size_t bounce_bytes = std::size_t{256} << 10;

} // namespace

registered_transfers::~registered_transfers() {
    if (bounce_ != nullptr) {
        own_.release_internal(bounce_offset_);
    }
}

result<path> registered_transfers::move(direction dir, world_rank peer, std::uint64_t remote,
                                        void *local, std::size_t nbytes) {
    if (!attach_forbidden_.load(std::memory_order_relaxed)) {
        transport::private_memory &transport = engine_.transport().direct_private_memory();
        status done = dir == direction::put ? transport.write_private(peer, remote, local, nbytes)
                                            : transport.read_private(peer, remote, local, nbytes);
        if (done) {
            return path::attach;
        }
        if (done.failure().code() != OMPX_ERR_UNSUPPORTED) {
            return done.take_failure();
        }
        attach_forbidden_.store(true, std::memory_order_relaxed);
    }
    DIOMP_TRY(move_by_messages(dir, peer, remote, local, nbytes));
    return path::message;
}

std::byte *registered_transfers::bounce_buffer() {
    if (bounce_ == nullptr) {
        if (auto const offset = own_.allocate_internal(bounce_bytes)) {
            bounce_offset_ = *offset;
            bounce_ = engine_.transport().direct_base(self_) + *offset;
        }
    }
    return bounce_;
}

status registered_transfers::move_by_messages(direction dir, world_rank peer, std::uint64_t remote,
                                              void *local, std::size_t nbytes) {
    std::lock_guard const guard(bounce_mutex_);
    std::byte *const bounce = bounce_buffer();
    if (bounce == nullptr) {
        return error(OMPX_ERR_NOMEM,
                     "no space for a bounce buffer in the runtime's part of the segment",
                     "free groups that are no longer used");
    }
    auto *const here = static_cast<std::byte *>(local);
    for (std::size_t done = 0; done < nbytes;) {
        std::size_t const chunk = std::min(nbytes - done, bounce_bytes);
        if (dir == direction::put) {
            std::memcpy(bounce, here + done, chunk);
        }
        target_request request;
        request.what = dir == direction::put ? request_kind::put : request_kind::get;
        request.nbytes = static_cast<std::uint32_t>(chunk);
        request.address = remote + done;
        request.bounce_offset = bounce_offset_;
        auto reply = requests_.call(peer, request, [&] {
            return fmt::format("waiting for rank {} to move {} bytes of its registered memory",
                               peer.value(), chunk);
        });
        DIOMP_TRY(reply);
        if (reply.value().refused != 0) {
            return refused_error(peer, dir == direction::get ? access::read : access::write);
        }
        if (dir == direction::get) {
            std::memcpy(here + done, bounce, chunk);
        }
        done += chunk;
    }
    return {};
}

} // namespace diomp::rma
