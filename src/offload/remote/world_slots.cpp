// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory that a client shares with sessions of its host.
#include "base/log.h"
#include "launch/launch.h"
#include "offload/remote/protocol.h"
#include "offload/remote/world.h"
#include "transport/arena.h"
#include "transport/fd_exchange.h"
#include "transport/find_node.h"
#include "transport/node_watch.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace diomp::offload::remote {
namespace {

constexpr const char *surroundings_key = "shared_slots.surroundings";
constexpr const char *socket_key = "shared_slots.socket";
constexpr const char *secret_key = "shared_slots.secret";

std::string socket_of(const std::string &name) { return "diomp-slots-" + name; }

/// Beside the descriptors of the memory and of the process.
struct passed_slot {
    std::string secret;
    world_rank owner{0};
    std::uint64_t offset = 0; ///< in the file
};

std::string encode(const passed_slot &slot) {
    packet_writer packet;
    packet.text(slot.secret);
    packet.number(static_cast<std::uint32_t>(slot.owner.value()));
    packet.number(slot.offset);
    return packet.take();
}

/// The slot if it belongs to a session of the world, and its file contains it.
std::optional<passed_slot> decode(const transport::descriptor_bundle &bundle,
                                  const std::string &secret, const world &ranks) {
    packet_reader packet(
        {reinterpret_cast<const char *>(bundle.bytes.data()), bundle.bytes.size()});
    passed_slot slot;
    slot.secret = packet.text();
    slot.owner = world_rank(static_cast<int>(packet.number<std::uint32_t>()));
    slot.offset = packet.number<std::uint64_t>();
    struct stat file{};
    bool is_good = packet.ok() && slot.secret == secret && ranks.is_session(slot.owner) &&
                   bundle.fds.size() == 2 && ::fstat(bundle.fds.front().get(), &file) == 0;
    auto const nbytes = static_cast<std::uint64_t>(file.st_size);
    is_good =
        is_good && slot.offset <= nbytes && ranks.arena().usable_bytes() <= nbytes - slot.offset;
    return is_good ? std::optional(std::move(slot)) : std::nullopt;
}

/// Maps memory of the arena that nothing is mapped in yet, out of core files as the rest of it.
bool map_slot(const transport::arena &memory, world_rank owner, int file, std::uint64_t offset) {
    std::size_t const nbytes = memory.usable_bytes();
    void *const at = memory.slot(owner);
    if (::mmap(at, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file,
               static_cast<off_t>(offset)) == MAP_FAILED) {
        return false;
    }
    static_cast<void>(::madvise(at, nbytes, MADV_DONTDUMP));
    return true;
}

} // namespace

shared_slots::shared_slots() = default;
shared_slots::~shared_slots() = default;

status shared_slots::publish(launch::launcher &launcher, bool may_share) {
    std::string surroundings = may_share ? transport::describe_surroundings() : "";
    std::string socket;
    if (!surroundings.empty()) {
        is_lost_ = std::vector<std::atomic<bool>>(static_cast<std::size_t>(launcher.info().size));
        auto name = transport::random_name();
        DIOMP_TRY(name);
        socket = name.take();
        auto secret = transport::random_name();
        DIOMP_TRY(secret);
        secret_ = secret.take();
        auto opened = transport::listen_for_peers(socket_of(socket), launcher.info().size);
        auto watch = transport::node_watch::create({});
        if (opened && watch) {
            listener_ = opened.take();
            watch_ = watch.take();
        } else {
            surroundings.clear();
        }
    }
    DIOMP_TRY(launcher.put(surroundings_key, surroundings));
    DIOMP_TRY(launcher.put(socket_key, socket));
    return launcher.put(secret_key, secret_);
}

void shared_slots::map(const world &ranks) {
    unique_fd const listener = std::exchange(listener_, unique_fd());
    if (!listener.valid()) {
        return;
    }
    ranks_ = &ranks;
    is_mapped_.resize(static_cast<std::size_t>(ranks.size()));
    for (;;) {
        auto bundle = transport::receive_descriptors(listener.get(), 0);
        if (!bundle) { // there is none left, usually
            log(log_level::debug, "no further memory of sessions: {}", bundle.failure().message());
            return;
        }
        auto const slot = decode(bundle.value(), secret_, ranks);
        if (!slot || has(slot->owner)) {
            log(log_level::debug, "unexpected values with memory of a session");
            continue;
        }
        auto &fds = bundle.value().fds;
        if (map_slot(ranks.arena(), slot->owner, fds.front().get(), slot->offset)) {
            watch_->add(slot->owner, std::move(fds.back()));
            is_mapped_[slot->owner.index()] = true;
        }
    }
}

status shared_slots::check_present(world_rank session) const {
    const char *const why = is_lost_[session.index()].load(std::memory_order_acquire) ? "it is lost"
                            : watch_->has_ended(session) ? "its session has ended"
                                                         : nullptr;
    return why != nullptr ? ranks_->name_device(session, error(OMPX_ERR_PEER, why)) : status();
}

void shared_slots::note_lost(world_rank session) {
    if (session.index() < is_lost_.size()) {
        is_lost_[session.index()].store(true, std::memory_order_release);
    }
}

void pass_slot(launch::launcher &launcher, const transport::arena &memory, int num_clients) {
    std::string const own = transport::describe_surroundings();
    unique_fd process;
    for (int client = 0; client < num_clients && !own.empty(); ++client) {
        world_rank const to(client);
        auto const surroundings = launcher.get(to, surroundings_key);
        auto const socket = launcher.get(to, socket_key);
        auto const secret = launcher.get(to, secret_key);
        if (!surroundings || surroundings.value() != own || !socket || !secret) {
            continue;
        }
        if (!process.valid()) {
            process = transport::open_process(::getpid());
        }
        transport::arena::slot_range const slot = memory.file_of(launcher.info().local);
        std::string const bytes =
            encode({secret.value(), launcher.info().rank, slot.offset_in_file});
        std::array<int, 2> const fds{slot.file, process.get()};
        status const sent = transport::send_descriptors(socket_of(socket.value()),
                                                        std::as_bytes(std::span(bytes)), fds);
        if (!sent) {
            log(log_level::debug, "memory is not shared with rank {}: {}", client,
                sent.failure().message());
        }
    }
}

} // namespace diomp::offload::remote
