// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rma/message_copies.h"

#include <algorithm>
#include <cstring>

namespace diomp::rma {
namespace {

/// Large enough to keep a network busy for a round trip (two of them are on their way), small
/// enough that a handler does not hold up other messages for long.
constexpr std::size_t window_bytes = std::size_t{128} << 10;

} // namespace

bool is_exposed(const memory::segment &own, const memory::directory &directory,
                std::uint64_t address, std::size_t nbytes) {
    std::uint64_t const offset = address - reinterpret_cast<std::uint64_t>(own.base());
    if (offset < own.size_bytes()) {
        return nbytes <= own.size_bytes() - offset;
    }
    auto const range = directory.find_own(address);
    return range && nbytes <= range->base + range->nbytes - address;
}

message_copies::message_copies(conduit::engine &engine, const memory::segment &own,
                               const memory::directory &directory)
    : engine_(engine), own_(own), directory_(directory),
      put_handler_(engine.add_handler([this](const conduit::message &m) { on_put(m); })),
      get_handler_(engine.add_handler([this](const conduit::message &m) { on_get(m); })),
      bytes_handler_(engine.add_handler([this](const conduit::message &m) { on_bytes(m); })),
      answer_handler_(engine.add_handler([this](const conduit::message &m) { on_answer(m); })) {}

void message_copies::start(direction way, world_rank peer, std::uint64_t remote, void *local,
                           std::size_t nbytes, conduit::completion &count) {
    count.begin();
    std::lock_guard const guard(mutex_);
    std::uint64_t const id = next_id_++;
    copy &each = copies_[id];
    each = {way, peer, remote, static_cast<std::byte *>(local), nbytes, 0, 0, &count};
    begin_window(id, each);
    begin_window(id, each);
}

void message_copies::give_up(conduit::completion &count) {
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
    std::size_t const nbytes = std::min(window_bytes, each.nbytes - each.begun);
    if (nbytes == 0) {
        return;
    }
    header about{id, each.remote, each.nbytes, each.begun, static_cast<std::uint32_t>(nbytes), 0};
    if (each.way == direction::get) {
        engine_.send(each.peer, get_handler_, about);
    } else {
        about.answer = about.part;
        send_bytes(each.peer, put_handler_, about, each.local + each.begun, nbytes);
    }
    each.begun += nbytes;
}

/// Messages of one thread to one peer are handled in order: the last one, with `answer`, speaks for
/// all.
void message_copies::send_bytes(world_rank peer, conduit::handler_id handler, header about,
                                const std::byte *from, std::size_t nbytes) {
    std::uint32_t const answer = about.answer;
    for (std::size_t sent = 0; sent < nbytes;) {
        std::size_t const part = std::min(nbytes - sent, room_after<header>(engine_, peer));
        about.part = static_cast<std::uint32_t>(part);
        about.answer = sent + part == nbytes ? answer : 0;
        send_with_bytes(engine_, peer, handler, about, from + sent, part);
        sent += part;
        about.offset += part;
    }
}

void message_copies::on_put(const conduit::message &incoming) {
    header about;
    std::memcpy(&about, incoming.payload.data(), sizeof(about));
    bool const exposed = is_exposed(own_, directory_, about.remote, about.nbytes);
    if (exposed) {
        std::memcpy(reinterpret_cast<std::byte *>(about.remote + about.offset),
                    incoming.payload.data() + sizeof(about), about.part);
    }
    if (about.answer > 0) {
        about.part = about.answer;
        about.answer = exposed ? 0 : static_cast<std::uint32_t>(-OMPX_ERR_ADDRESS);
        engine_.send(incoming.source, answer_handler_, about);
    }
}

void message_copies::on_get(const conduit::message &incoming) {
    header about;
    std::memcpy(&about, incoming.payload.data(), sizeof(about));
    if (!is_exposed(own_, directory_, about.remote, about.nbytes)) {
        about.answer = static_cast<std::uint32_t>(-OMPX_ERR_ADDRESS);
        engine_.send(incoming.source, answer_handler_, about);
        return;
    }
    send_bytes(incoming.source, bytes_handler_, about,
               reinterpret_cast<const std::byte *>(about.remote + about.offset), about.part);
}

void message_copies::on_bytes(const conduit::message &incoming) {
    header about;
    std::memcpy(&about, incoming.payload.data(), sizeof(about));
    std::lock_guard const guard(mutex_);
    auto const found = copies_.find(about.id);
    if (found == copies_.end()) {
        return; // its caller gave up
    }
    std::memcpy(found->second.local + about.offset, incoming.payload.data() + sizeof(about),
                about.part);
    advance(about.id, about.part, 0);
}

void message_copies::on_answer(const conduit::message &incoming) {
    header about;
    std::memcpy(&about, incoming.payload.data(), sizeof(about));
    std::lock_guard const guard(mutex_);
    advance(about.id, about.part, about.answer);
}

/// Under the lock.
void message_copies::advance(std::uint64_t id, std::size_t nbytes, std::uint32_t failure) {
    auto const found = copies_.find(id);
    if (found == copies_.end()) {
        return;
    }
    copy &each = found->second;
    each.done += nbytes;
    if (failure != 0 || each.done == each.nbytes) {
        conduit::completion &count = *each.count;
        copies_.erase(found);
        count.end(-static_cast<int>(failure));
        return;
    }
    // Keep two windows on their way: the next begins when all but one have arrived.
    if (each.begun - each.done <= window_bytes) {
        begin_window(id, each);
    }
}

} // namespace diomp::rma
