// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operations by request and reply, executed by the target: atomics on memory that is not mapped
// here, and transfers to registered private memory of ranks of this node where the system forbids
// cross-memory attach. The data of the latter goes through a bounce buffer in the requester's slot,
// which the target's handler can load and store.
#include "base/panic.h"
#include "rma/internal/atomics.h"
#include "rma/rma.h"

#include <fmt/core.h>

#include <algorithm>

namespace diomp::rma {
namespace {

/// Large enough to hide the message's cost, small enough that a handler does not delay other
/// messages for long.
constexpr std::size_t bounce_bytes = std::size_t{256} << 10;

} // namespace

struct transfers::rpc_request {
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

struct transfers::rpc_reply {
    std::uint64_t refused = 0; ///< 1: the range is no longer registered
    std::array<std::byte, 8> old{};
};

transfers::transfers(memory::address_space &space, memory::segment &own,
                     memory::directory &directory, messaging::engine &engine,
                     messaging::call_service &calls, const options &options)
    : space_(space), own_(own), directory_(directory), engine_(engine), calls_(calls),
      options_(options),
      request_handler_(engine.add_handler([this](const transport::message &m) { on_request(m); })),
      signal_handler_(engine.add_handler([this](const transport::message &m) { on_signal(m); })),
      acknowledgement_handler_(
          engine.add_handler([this](const transport::message &m) { on_acknowledgement(m); })),
      copies_(engine, own, directory) {
    for (int rank = 0; rank < options_.num_ranks && all_direct_; ++rank) {
        all_direct_ = engine_.transport().direct_base(world_rank{rank}) != nullptr;
    }
}

transfers::~transfers() {
    if (bounce_ != nullptr) {
        own_.release_internal(bounce_offset_);
    }
}

std::byte *transfers::bounce_buffer() {
    if (bounce_ == nullptr) {
        if (auto const offset = own_.allocate_internal(bounce_bytes)) {
            bounce_offset_ = *offset;
            bounce_ = engine_.transport().direct_base(options_.self) + *offset;
        }
    }
    return bounce_;
}

status transfers::move_by_messages(direction dir, world_rank peer, std::uint64_t remote,
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
        rpc_request request;
        request.what = dir == direction::put ? request_kind::put : request_kind::get;
        request.nbytes = static_cast<std::uint32_t>(chunk);
        request.address = remote + done;
        request.bounce_offset = bounce_offset_;
        auto reply = calls_.call<rpc_reply>(peer, request_handler_, request, [&] {
            return fmt::format("waiting for rank {} to move {} bytes of its registered memory",
                               peer.value(), chunk);
        });
        DIOMP_TRY(reply);
        if (reply.value().refused != 0) {
            return error(OMPX_ERR_ADDRESS,
                         fmt::format("rank {} has unregistered the range meanwhile", peer.value()));
        }
        if (dir == direction::get) {
            std::memcpy(here + done, bounce, chunk);
        }
        done += chunk;
    }
    return {};
}

status transfers::atomic_by_message(request_kind what, world_rank peer,
                                    const memory::location &target, const void *operand,
                                    const void *desired, void *result, ompx_type_t type,
                                    ompx_op_t op, std::size_t size) {
    rpc_request request;
    request.what = what;
    request.type = type;
    request.op = op;
    request.nbytes = static_cast<std::uint32_t>(size);
    request.address = target.remote_address;
    if (operand != nullptr) {
        std::memcpy(request.operand.data(), operand, size);
    }
    if (desired != nullptr) {
        std::memcpy(request.desired.data(), desired, size);
    }
    if (result == nullptr && target.in_segment) {
        auto number = open_ack();
        DIOMP_TRY(number);
        request.header.id = number.value();
        request.acknowledge = 1;
        engine_.send(peer, request_handler_, request);
        return {};
    }
    auto reply = calls_.call<rpc_reply>(peer, request_handler_, request, [&] {
        return fmt::format("waiting for rank {} to perform an atomic operation", peer.value());
    });
    DIOMP_TRY(reply);
    if (reply.value().refused != 0) {
        return refused(peer, target, size);
    }
    if (result != nullptr) {
        std::memcpy(result, reply.value().old.data(), size);
    }
    return {};
}

void transfers::on_request(const transport::message &incoming) {
    rpc_request request;
    std::memcpy(&request, incoming.payload.data(), sizeof(request));
    rpc_reply reply;
    if (!is_exposed(own_, directory_, request.address, request.nbytes)) {
        reply.refused = 1;
        finish_request(incoming.source, request, reply);
        return;
    }
    auto *const target = reinterpret_cast<std::byte *>(request.address);
    switch (request.what) {
    case request_kind::put:
        std::memcpy(target, bounce_of(incoming.source, request), request.nbytes);
        break;
    case request_kind::get:
        std::memcpy(bounce_of(incoming.source, request), target, request.nbytes);
        break;
    case request_kind::fetch:
        apply_atomic(target, request.operand.data(), reply.old.data(), request.type, request.op);
        break;
    case request_kind::compare_swap:
        apply_compare_swap(target, request.operand.data(), request.desired.data(), reply.old.data(),
                           request.type);
        break;
    }
    finish_request(incoming.source, request, reply);
}

std::byte *transfers::bounce_of(world_rank requester, const rpc_request &request) const {
    return engine_.transport().direct_base(requester) + request.bounce_offset;
}

void transfers::finish_request(world_rank requester, const rpc_request &request,
                               const rpc_reply &reply) {
    if (request.acknowledge != 0) {
        acknowledge(requester, request.header.id, reply.refused != 0 ? OMPX_ERR_ADDRESS : 0);
    } else {
        calls_.reply(requester, request.header.id, reply);
    }
}

} // namespace diomp::rma
