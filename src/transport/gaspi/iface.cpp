// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/gaspi/iface.h"

#include "transport/common/backoff.h"
#include "transport/common/liveness.h"

#include <fmt/core.h>

#include <algorithm>

namespace diomp::transport::gaspi {
namespace {

constexpr std::size_t message_bytes_limit = 8192;
constexpr const char *host_key = "gaspi.name";

std::vector<std::unique_ptr<peer>> make_peers(const std::vector<std::string> &hosts,
                                              const work_segment &work) {
    std::vector<std::unique_ptr<peer>> made;
    for (std::string const &host : hosts) {
        world_rank const rank{static_cast<int>(made.size())};
        made.push_back(std::make_unique<peer>(rank, host, work));
    }
    return made;
}

} // namespace

result<std::unique_ptr<iface>> iface::create(launch::launcher &launcher, const arena &arena,
                                             peer_lost_callback on_peer_lost) {
    auto const &job = launcher.info();
    DIOMP_TRY(launcher.put(host_key, job.host));
    DIOMP_TRY(launcher.fence());
    std::vector<std::string> hosts;
    for (int rank = 0; rank < job.size; ++rank) {
        auto host = launcher.get(world_rank{rank}, host_key);
        DIOMP_TRY(host);
        hosts.push_back(host.take());
    }
    DIOMP_TRY(launch::gaspi::start(launcher));
    auto registered = memory::create(arena, job.rank, false);
    DIOMP_TRY(registered);
    return std::unique_ptr<iface>(
        new iface(job.rank, std::move(on_peer_lost), registered.take(), hosts));
}

iface::iface(world_rank self, peer_lost_callback on_peer_lost, std::unique_ptr<memory> registered,
             const std::vector<std::string> &hosts)
    : on_peer_lost_(std::move(on_peer_lost)), memory_(std::move(registered)),
      peers_(make_peers(hosts, memory_->work())), queues_(memory_->work()), rma_(*memory_, queues_),
      sender_(self, peers_.size(), *memory_, queues_), receiver_(peers_, sender_, mutex_) {}

template <typename Attempt>
status iface::retry_until_started(peer &at, Attempt &&attempt) {
    backoff idle;
    for (;;) {
        if (at.is_failed()) {
            return at.lost_error();
        }
        {
            std::lock_guard const guard(mutex_);
            if (!at.is_failed() && attempt() == outcome::started) {
                return {};
            }
        }
        if (advance()) {
            idle.reset();
        } else {
            idle.pause();
        }
    }
}

status iface::put(world_rank rank, std::uint64_t remote, const void *source, std::size_t nbytes,
                  completion &source_free) {
    peer &to = peer_of(rank);
    std::uint64_t const offset = memory_->offset_in_slot(rank, remote);
    const auto *const from = static_cast<const std::byte *>(source);
    std::size_t const step = memory_->reaches(source, nbytes) ? chunk_bytes : large_block_bytes;
    for (std::size_t at = 0; at < nbytes; at += step) {
        DIOMP_TRY(retry_until_started(to, [&] {
            return rma_.put(to, offset + at, from + at, std::min(step, nbytes - at), source_free);
        }));
    }
    return {};
}

status iface::get(world_rank rank, std::uint64_t remote, void *destination, std::size_t nbytes,
                  completion &done) {
    peer &from = peer_of(rank);
    std::uint64_t const offset = memory_->offset_in_slot(rank, remote);
    auto *const to = static_cast<std::byte *>(destination);
    std::size_t const step =
        memory_->reaches(destination, nbytes) ? chunk_bytes : large_block_bytes;
    for (std::size_t at = 0; at < nbytes; at += step) {
        DIOMP_TRY(retry_until_started(from, [&] {
            return rma_.get(from, offset + at, to + at, std::min(step, nbytes - at), done);
        }));
    }
    return {};
}

status iface::flush(peer &to, completion &done, bool also_messages) {
    DIOMP_TRY(retry_until_started(to, [&] {
        rma_.flush(to, done);
        return outcome::started;
    }));
    if (also_messages && to.outgoing.is_used()) {
        DIOMP_TRY(retry_until_started(to, [&] { return rma_.flush_messages(to, done); }));
    }
    return {};
}

status iface::flush_all(completion &done, bool also_messages) {
    std::vector<peer *> found;
    if (also_messages || rma_.has_unflushed()) {
        std::lock_guard const guard(mutex_);
        found = rma_.unflushed();
        for (auto const &each : peers_) {
            if (also_messages && each->outgoing.is_used() && !each->is_unflushed) {
                found.push_back(each.get());
            }
        }
    }
    for (peer *const each : found) {
        DIOMP_TRY(flush(*each, done, also_messages));
    }
    return {};
}

std::size_t iface::max_message_bytes() const {
    return std::min(message_bytes_limit, memory_->work().ring_bytes() / 4) - sizeof(record);
}

bool iface::try_send(world_rank rank, handler_id handler, std::span<const std::byte> payload) {
    peer &to = peer_of(rank);
    std::lock_guard const guard(mutex_);
    if (to.is_failed()) {
        return true; // dropped; waits for a reply of this peer fail
    }
    return sender_.send(to, handler, payload, receiver_.is_handling_here());
}

result<bool> iface::put_with_message(world_rank rank, std::uint64_t remote,
                                     std::span<const std::byte> source, handler_id handler,
                                     std::span<const std::byte> payload, completion &source_free) {
    if (!sender_.supports_data(source)) {
        return false;
    }
    peer &to = peer_of(rank);
    std::lock_guard const guard(mutex_);
    if (to.is_failed()) {
        return to.lost_error().take_failure();
    }
    return sender_.put_with_message(to, memory_->offset_in_slot(rank, remote), source, handler,
                                    payload, source_free);
}

bool iface::advance() {
    bool moved = false;
    std::vector<peer *> lost;
    {
        std::unique_lock const lock(mutex_, std::try_to_lock);
        if (!lock.owns_lock()) {
            return false;
        }
        moved = queues_.advance();
        moved = rma_.advance() || moved;
        moved = sender_.advance() || moved;
        lost = queues_.take_broken();
    }
    for (peer *const each : lost) {
        on_peer_lost_(*each, "its connection is lost");
    }
    return moved;
}

std::string iface::fail(peer &lost, const std::string &why) {
    std::lock_guard const guard(mutex_);
    std::string sentence = lost.fail(why);
    if (!sentence.empty()) {
        queues_.fail(lost);
        rma_.fail(lost);
        sender_.fail(lost);
    }
    return sentence;
}

void iface::ping(peer &silent) {
    std::lock_guard const guard(mutex_);
    sender_.read_credit(silent);
    if (!silent.is_failed() && silent.markers_of(marker_kind::messages).empty()) {
        rma_.start_marker(silent, marker_kind::messages);
    }
}

std::string iface::describe_path(world_rank rank) const {
    return fmt::format("gaspi ({}): GPI-2 to {}", memory_->network(), peer_of(rank).name());
}

std::string iface::describe_outstanding() const {
    std::lock_guard const guard(mutex_);
    return describe_awaited(pointers_to(peers_));
}

} // namespace diomp::transport::gaspi
