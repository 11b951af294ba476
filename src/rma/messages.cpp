// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What needs the target's help: one request, one reply. Atomics on memory that is not mapped here,
// and transfers to registered private memory of ranks of this node where the system forbids
// cross-memory attach: their data goes through a bounce buffer in the asking rank's slot, which the
// target's handler can load and store.
#include "base/panic.h"
#include "base/settings.h"
#include "rma/atomics.h"
#include "rma/rma.h"

#include <fmt/core.h>

#include <algorithm>

namespace diomp::rma {
namespace {

/// Large enough to hide the message's cost, small enough that a handler does not hold up other
/// messages for long.
constexpr std::size_t bounce_bytes = std::size_t{256} << 10;

} // namespace

struct transfers::request {
    conduit::request_header header;
    verb what = verb::put;
    ompx_type_t type = 0;
    ompx_op_t op = 0;
    std::uint32_t nbytes = 0;
    std::uint32_t acknowledge = 0;   ///< 1: nobody waits, header.id is a number of the ack window
    std::uint64_t address = 0;       ///< at the target
    std::uint64_t bounce_offset = 0; ///< in the slot of the asking rank
    std::array<std::byte, 8> operand{};
    std::array<std::byte, 8> desired{};
};

struct transfers::answer {
    std::uint64_t refused = 0; ///< 1: the range is not registered any more
    std::array<std::byte, 8> old{};
};

transfers::transfers(memory::address_space &space, memory::segment &own,
                     memory::directory &directory, conduit::engine &engine,
                     conduit::call_service &calls, const options &options)
    : space_(space), own_(own), directory_(directory), engine_(engine), calls_(calls),
      options_(options),
      request_handler_(engine.add_handler([this](const conduit::message &m) { on_request(m); })),
      signal_handler_(engine.add_handler([this](const conduit::message &m) { on_signal(m); })),
      acknowledgement_handler_(
          engine.add_handler([this](const conduit::message &m) { on_acknowledgement(m); })),
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

status transfers::move_by_messages(direction way, world_rank peer, std::uint64_t remote,
                                   void *local, std::size_t nbytes) {
    std::lock_guard const guard(bounce_mutex_);
    std::byte *const bounce = bounce_buffer();
    if (bounce == nullptr) {
        return error(OMPX_ERR_NOMEM,
                     "the runtime's part of the segment has no room for a bounce buffer",
                     "free groups that are no longer used");
    }
    auto *const here = static_cast<std::byte *>(local);
    for (std::size_t done = 0; done < nbytes;) {
        std::size_t const chunk = std::min(nbytes - done, bounce_bytes);
        if (way == direction::put) {
            std::memcpy(bounce, here + done, chunk);
        }
        request asked;
        asked.what = way == direction::put ? verb::put : verb::get;
        asked.nbytes = static_cast<std::uint32_t>(chunk);
        asked.address = remote + done;
        asked.bounce_offset = bounce_offset_;
        auto told = calls_.call<answer>(peer, request_handler_, asked, [&] {
            return fmt::format("waiting for rank {} to move {} bytes of its registered memory",
                               peer.value(), chunk);
        });
        DIOMP_TRY(told);
        if (told.value().refused != 0) {
            return error(OMPX_ERR_ADDRESS,
                         fmt::format("rank {} has unregistered the range meanwhile", peer.value()));
        }
        if (way == direction::get) {
            std::memcpy(here + done, bounce, chunk);
        }
        done += chunk;
    }
    return {};
}

status transfers::atomic_by_message(verb what, world_rank peer, const memory::place &target,
                                    const void *operand, const void *desired, void *result,
                                    ompx_type_t type, ompx_op_t op, std::size_t size) {
    request asked;
    asked.what = what;
    asked.type = type;
    asked.op = op;
    asked.nbytes = static_cast<std::uint32_t>(size);
    asked.address = target.remote_address;
    if (operand != nullptr) {
        std::memcpy(asked.operand.data(), operand, size);
    }
    if (desired != nullptr) {
        std::memcpy(asked.desired.data(), desired, size);
    }
    if (result == nullptr && target.in_segment) {
        auto number = open_ack();
        DIOMP_TRY(number);
        asked.header.id = number.value();
        asked.acknowledge = 1;
        engine_.send(peer, request_handler_, asked);
        return {};
    }
    auto told = calls_.call<answer>(peer, request_handler_, asked, [&] {
        return fmt::format("waiting for rank {} to perform an atomic operation", peer.value());
    });
    DIOMP_TRY(told);
    if (told.value().refused != 0) {
        return refused(peer, target, size);
    }
    if (result != nullptr) {
        std::memcpy(result, told.value().old.data(), size);
    }
    return {};
}

void transfers::on_request(const conduit::message &incoming) {
    request asked;
    std::memcpy(&asked, incoming.payload.data(), sizeof(asked));
    answer told;
    if (!is_exposed(own_, directory_, asked.address, asked.nbytes)) {
        told.refused = 1;
        finish_request(incoming.source, asked, told);
        return;
    }
    auto *const target = reinterpret_cast<std::byte *>(asked.address);
    switch (asked.what) {
    case verb::put:
        std::memcpy(target, bounce_of(incoming.source, asked), asked.nbytes);
        break;
    case verb::get:
        std::memcpy(bounce_of(incoming.source, asked), target, asked.nbytes);
        break;
    case verb::fetch:
        apply_atomic(target, asked.operand.data(), told.old.data(), asked.type, asked.op);
        break;
    case verb::compare_swap:
        apply_compare_swap(target, asked.operand.data(), asked.desired.data(), told.old.data(),
                           asked.type);
        break;
    }
    finish_request(incoming.source, asked, told);
}

std::byte *transfers::bounce_of(world_rank asker, const request &asked) const {
    return engine_.transport().direct_base(asker) + asked.bounce_offset;
}

void transfers::finish_request(world_rank asker, const request &asked, const answer &told) {
    if (asked.acknowledge != 0) {
        acknowledge(asker, asked.header.id, told.refused != 0 ? OMPX_ERR_ADDRESS : 0);
    } else {
        calls_.reply(asker, asked.header.id, told);
    }
}

} // namespace diomp::rma
