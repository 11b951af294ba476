// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rma/internal/message_copies.h"

#include "memory/directory.h"
#include "memory/memory.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <span>

namespace diomp::rma {
namespace {

/// Large enough to keep a network busy for a round trip (two windows are in flight), small enough
/// that a handler does not delay other messages for long.
constexpr std::size_t window_bytes = std::size_t{128} << 10;

} // namespace

bool is_exposed(const memory::segment &own, const memory::directory &directory,
                std::uint64_t address, std::size_t nbytes, access how) {
    std::uint64_t const offset = address - reinterpret_cast<std::uint64_t>(own.base());
    if (offset < own.size_bytes()) {
        return nbytes <= own.size_bytes() - offset;
    }
    std::span<std::byte> const devices = own.device_area();
    std::uint64_t const on_device = address - reinterpret_cast<std::uint64_t>(devices.data());
    if (on_device < devices.size()) {
        return nbytes <= devices.size() - on_device;
    }
    auto const range = directory.find_own(address);
    return range && nbytes <= range->base + range->nbytes - address &&
           (how == access::read || range->is_writable);
}

error refused_error(world_rank owner, access how) {
    return how == access::read
               ? error(OMPX_ERR_ADDRESS,
                       fmt::format("rank {} has unregistered the range meanwhile", owner.value()),
                       "unregister after a barrier that follows the last transfer")
               : error(OMPX_ERR_ADDRESS,
                       fmt::format("rank {} has unregistered the range meanwhile, or it was "
                                   "read-only when it was registered",
                                   owner.value()),
                       "unregister after a barrier that follows the last transfer; register "
                       "memory that is written when it can be written");
}

message_copies::message_copies(messaging::engine &engine, const memory::segment &own,
                               const memory::directory &directory)
    : engine_(engine), own_(own), directory_(directory),
      put_handler_(engine.add_handler([this](const transport::message &m) { on_put(m); })),
      get_handler_(engine.add_handler([this](const transport::message &m) { on_get(m); })),
      bytes_handler_(engine.add_handler([this](const transport::message &m) { on_bytes(m); })),
      ack_handler_(engine.add_handler([this](const transport::message &m) { on_ack(m); })) {}

void message_copies::start(direction dir, world_rank peer, std::uint64_t remote, void *local,
                           std::size_t nbytes, transport::completion &count) {
    count.begin();
    std::lock_guard const guard(mutex_);
    std::uint64_t const id = next_id_++;
    copy &each = copies_[id];
    each = {dir, peer, remote, static_cast<std::byte *>(local), nbytes, 0, 0, &count};
    begin_window(id, each);
    begin_window(id, each);
}

void message_copies::cancel(transport::completion &count) {
    std::lock_guard const guard(mutex_);
    for (auto each = copies_.begin(); each != copies_.end();) {
        if (each->second.count == &count) {
            each = copies_.erase(each);
            count.end(OMPX_ERR_TIMEOUT);
        } else {
            ++each;
        }
    }
}

void message_copies::begin_window(std::uint64_t id, copy &each) {
    std::size_t const nbytes = std::min(window_bytes, each.nbytes - each.requested);
    if (nbytes == 0) {
        return;
    }
    header head{id, each.remote, each.nbytes, each.requested, static_cast<std::uint32_t>(nbytes),
                0};
    if (each.dir == direction::get) {
        engine_.send(each.peer, get_handler_, head);
    } else {
        head.ack = head.chunk_bytes;
        send_bytes(each.peer, put_handler_, head, each.local + each.requested, nbytes);
    }
    each.requested += nbytes;
}

/// Messages of one thread to one peer are handled in order, so the last one, with `ack`, requests
/// the acknowledgement of all.
void message_copies::send_bytes(world_rank peer, transport::handler_id handler, header head,
                                const std::byte *from, std::size_t nbytes) {
    std::uint32_t const ack = head.ack;
    for (std::size_t sent = 0; sent < nbytes;) {
        std::size_t const chunk_bytes =
            std::min(nbytes - sent, payload_space<header>(engine_, peer));
        head.chunk_bytes = static_cast<std::uint32_t>(chunk_bytes);
        head.ack = sent + chunk_bytes == nbytes ? ack : 0;
        send_with_bytes(engine_, peer, handler, head, from + sent, chunk_bytes);
        sent += chunk_bytes;
        head.offset += chunk_bytes;
    }
}

void message_copies::on_put(const transport::message &incoming) {
    header head;
    std::memcpy(&head, incoming.payload.data(), sizeof(head));
    bool const exposed = is_exposed(own_, directory_, head.remote, head.nbytes, access::write);
    if (exposed) {
        std::memcpy(reinterpret_cast<std::byte *>(head.remote + head.offset),
                    incoming.payload.data() + sizeof(head), head.chunk_bytes);
    }
    if (head.ack > 0) {
        head.chunk_bytes = head.ack;
        head.ack = exposed ? 0 : static_cast<std::uint32_t>(-OMPX_ERR_ADDRESS);
        engine_.send(incoming.source, ack_handler_, head);
    }
}

void message_copies::on_get(const transport::message &incoming) {
    header head;
    std::memcpy(&head, incoming.payload.data(), sizeof(head));
    if (!is_exposed(own_, directory_, head.remote, head.nbytes, access::read)) {
        head.ack = static_cast<std::uint32_t>(-OMPX_ERR_ADDRESS);
        engine_.send(incoming.source, ack_handler_, head);
        return;
    }
    send_bytes(incoming.source, bytes_handler_, head,
               reinterpret_cast<const std::byte *>(head.remote + head.offset), head.chunk_bytes);
}

void message_copies::on_bytes(const transport::message &incoming) {
    header head;
    std::memcpy(&head, incoming.payload.data(), sizeof(head));
    std::lock_guard const guard(mutex_);
    auto const found = copies_.find(head.id);
    if (found == copies_.end()) {
        return; // its caller has cancelled it
    }
    std::memcpy(found->second.local + head.offset, incoming.payload.data() + sizeof(head),
                head.chunk_bytes);
    advance(head.id, head.chunk_bytes, 0);
}

void message_copies::on_ack(const transport::message &incoming) {
    header head;
    std::memcpy(&head, incoming.payload.data(), sizeof(head));
    std::lock_guard const guard(mutex_);
    advance(head.id, head.chunk_bytes, head.ack);
}

/// The caller holds the lock.
void message_copies::advance(std::uint64_t id, std::size_t nbytes, std::uint32_t failure) {
    auto const found = copies_.find(id);
    if (found == copies_.end()) {
        return;
    }
    copy &each = found->second;
    each.done += nbytes;
    if (failure != 0 || each.done == each.nbytes) {
        transport::completion &count = *each.count;
        copies_.erase(found);
        count.end(-static_cast<int>(failure));
        return;
    }
    // Keeps two windows in flight: the next begins when all but one have arrived.
    if (each.requested - each.done <= window_bytes) {
        begin_window(id, each);
    }
}

} // namespace diomp::rma
