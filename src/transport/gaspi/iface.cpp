// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/gaspi/iface.h"

#include "transport/common/backoff.h"

#include <algorithm>
#include <cstring>

namespace diomp::transport::gaspi {
namespace {

constexpr std::size_t num_queues[num_queue_kinds] = {6, 5, 4}; // put, get, message
static_assert(num_queues[0] + num_queues[1] + num_queues[2] == launch::gaspi::launcher_queue);

constexpr std::uint64_t marker_interval_bytes = window_bytes / 4;
constexpr std::uint32_t max_small_gets = 256;
/// Limits of the small puts that are copied and deferred while a peer accepts none.
constexpr std::size_t max_deferred_bytes = std::size_t{4} << 20;
constexpr std::size_t max_deferred = 16384;
constexpr std::size_t marker_bytes = sizeof(std::uint32_t);
constexpr const char *host_key = "gaspi.name";

std::size_t index_of(queue_kind kind) { return static_cast<std::size_t>(kind); }

} // namespace

result<std::unique_ptr<iface>> iface::create(launch::launcher &launcher, const arena &arena,
                                             peer_lost_callback on_peer_lost) {
    std::unique_ptr<iface> made(new iface);
    auto const &job = launcher.info();
    made->self_ = job.rank;
    made->on_peer_lost_ = std::move(on_peer_lost);
    DIOMP_TRY(launcher.put(host_key, job.host));
    DIOMP_TRY(launcher.fence());
    for (int rank = 0; rank < job.size; ++rank) {
        auto host = launcher.get(world_rank{rank}, host_key);
        DIOMP_TRY(host);
        made->peers_.push_back(std::make_unique<peer>(world_rank{rank}, host.take()));
    }
    DIOMP_TRY(launch::gaspi::start(launcher));
    auto memory = memory::create(arena, job.rank, false);
    DIOMP_TRY(memory);
    made->memory_ = memory.take();
    std::uint8_t queue = 0;
    for (std::size_t kind = 0; kind < num_queue_kinds; ++kind) {
        for (std::size_t i = 0; i < num_queues[kind]; ++i) {
            made->queues_.emplace_back(queue++, static_cast<queue_kind>(kind));
        }
    }
    return made;
}

gaspi_queue *iface::queue_for(peer &at, queue_kind kind) {
    gaspi_queue *&own = at.queues[index_of(kind)];
    if (own != nullptr && own->assigned_peer == &at) {
        return own->has_space() ? own : nullptr;
    }
    for (gaspi_queue &each : queues_) {
        if (each.kind == kind && each.is_idle() && !each.is_lost) {
            each.assigned_peer = &at;
            own = &each;
            return own;
        }
    }
    return nullptr;
}

iface::outcome iface::check_outcome(peer &at, outcome tried) {
    if (tried == outcome::failed) {
        broken_.push_back(&at);
    }
    return tried;
}

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

iface::outcome iface::start_marker(peer &at, marker_kind kind) {
    gaspi_queue *const queue =
        queue_for(at, kind == marker_kind::puts ? queue_kind::put : queue_kind::message);
    auto *const word = queue != nullptr ? memory_->acquire_word() : nullptr;
    if (word == nullptr) {
        return outcome::full;
    }
    outcome const tried = check_outcome(at, queue->read(at.rank(), memory_->location_of(word),
                                                        segment::work, memory::one_offset,
                                                        {operation::what::nothing, marker_bytes}));
    if (tried != outcome::started) {
        memory_->release_word(word);
        return tried;
    }
    marker made{};
    if (kind == marker_kind::puts) {
        made = std::exchange(at.unmarked, {});
    }
    made.word = word;
    at.markers_of(kind).push_back(std::move(made));
    if (std::ranges::find(marked_, &at) == marked_.end()) {
        marked_.push_back(&at);
    }
    return tried;
}

void iface::list_unflushed(peer &to) {
    if (!to.is_unflushed) {
        to.is_unflushed = true;
        unflushed_.push_back(&to);
        ++num_unflushed_;
    }
}

iface::outcome iface::start_put(peer &to, std::uint64_t offset, const std::byte *source,
                                std::size_t nbytes, completion &source_free) {
    bool const is_small = nbytes < large_bytes;
    std::uint64_t const limited = is_small ? to.unflushed_bytes : to.unflushed_small_bytes;
    if (limited > window_bytes) {
        if (to.unmarked.num_puts > 0) {
            start_marker(to, marker_kind::puts);
        }
        return outcome::full;
    }
    gaspi_queue *const queue = queue_for(to, queue_kind::put);
    if (queue == nullptr) {
        return outcome::full;
    }
    operation started{operation::what::put, static_cast<std::uint32_t>(nbytes)};
    if (nbytes <= small_bytes || !memory_->reaches(source, nbytes)) {
        started.block = memory_->acquire_block(nbytes > small_bytes);
        if (started.block == nullptr) {
            return outcome::full;
        }
        std::memcpy(started.block, source, nbytes);
    } else {
        started.done = &source_free;
    }
    const void *const from = started.block != nullptr ? started.block : source;
    outcome const tried = check_outcome(
        to, queue->write(to.rank(), memory_->location_of(from), segment::arena, offset, started));
    if (tried != outcome::started) {
        if (started.block != nullptr) {
            memory_->release_block(started.block);
        }
        return tried;
    }
    if (started.done != nullptr) {
        source_free.begin();
        ++to.num_transfers;
    }
    list_unflushed(to);
    ++to.unmarked.num_puts;
    to.unmarked.put_bytes += nbytes;
    to.unmarked.small_put_bytes += is_small ? nbytes : 0;
    to.unflushed_bytes += nbytes;
    to.unflushed_small_bytes += is_small ? nbytes : 0;
    if (to.unmarked.small_put_bytes > marker_interval_bytes) {
        start_marker(to, marker_kind::puts);
    }
    return tried;
}

bool iface::defer_put(peer &to, std::uint64_t offset, std::span<const std::byte> bytes) {
    if (to.waiting_bytes + bytes.size() > max_deferred_bytes || to.waiting.size() >= max_deferred) {
        return false;
    }
    list_unflushed(to);
    defer(to, {offset, {bytes.begin(), bytes.end()}, nullptr});
    return true;
}

void iface::defer(peer &to, deferred what) {
    if (to.waiting.empty()) {
        waiting_.push_back(&to);
    }
    to.waiting_bytes += what.bytes.size();
    to.waiting.push_back(std::move(what));
}

status iface::put(world_rank rank, std::uint64_t remote, const void *source, std::size_t nbytes,
                  completion &source_free) {
    peer &to = peer_of(rank);
    std::uint64_t const offset = memory_->offset_in_slot(rank, remote);
    const auto *const from = static_cast<const std::byte *>(source);
    std::size_t const step = memory_->reaches(source, nbytes) ? chunk_bytes : large_block_bytes;
    for (std::size_t at = 0; at < nbytes; at += step) {
        std::size_t const length = std::min(step, nbytes - at);
        DIOMP_TRY(retry_until_started(to, [&] {
            bool const may_wait = length <= small_bytes;
            if (!may_wait || to.waiting.empty()) {
                outcome const tried = start_put(to, offset + at, from + at, length, source_free);
                if (tried != outcome::full || !may_wait) {
                    return tried;
                }
            }
            return defer_put(to, offset + at, {from + at, length}) ? outcome::started
                                                                   : outcome::full;
        }));
    }
    return {};
}

iface::outcome iface::start_get(peer &from, std::uint64_t offset, std::byte *destination,
                                std::size_t nbytes, completion &done) {
    gaspi_queue *const queue = queue_for(from, queue_kind::get);
    bool const is_full = from.num_gets >= max_small_gets || from.get_bytes > window_bytes;
    if (queue == nullptr || (nbytes < large_bytes && is_full)) {
        return outcome::full;
    }
    operation started{operation::what::get, static_cast<std::uint32_t>(nbytes), &done};
    if (nbytes <= small_bytes || !memory_->reaches(destination, nbytes)) {
        started.block = memory_->acquire_block(nbytes > small_bytes);
        started.copy_to = destination;
        if (started.block == nullptr) {
            return outcome::full;
        }
    }
    void *const to = started.block != nullptr ? started.block : destination;
    outcome const tried = check_outcome(
        from, queue->read(from.rank(), memory_->location_of(to), segment::arena, offset, started));
    if (tried != outcome::started) {
        if (started.block != nullptr) {
            memory_->release_block(started.block);
        }
        return tried;
    }
    done.begin();
    ++from.num_gets;
    from.get_bytes += nbytes;
    return tried;
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
            return start_get(from, offset + at, to + at, std::min(step, nbytes - at), done);
        }));
    }
    return {};
}

void iface::attach_to_marker(peer &to, marker_kind kind, completion &done) {
    auto &markers = to.markers_of(kind);
    if (!markers.empty()) {
        done.begin();
        ++to.num_flushes;
        markers.back().waiting.push_back(&done);
    }
}

status iface::flush(peer &to, completion &done, bool also_messages) {
    DIOMP_TRY(retry_until_started(to, [&] {
        bool const has_marker =
            to.waiting.empty() &&
            (to.unmarked.num_puts == 0 || start_marker(to, marker_kind::puts) == outcome::started);
        if (has_marker) {
            attach_to_marker(to, marker_kind::puts, done);
        } else {
            done.begin();
            ++to.num_flushes;
            defer(to, {0, {}, &done});
        }
        return outcome::started;
    }));
    if (also_messages && to.sent.load() != 0) {
        DIOMP_TRY(retry_until_started(to, [&] {
            outcome const tried =
                to.is_untransmitted ? outcome::full : start_marker(to, marker_kind::messages);
            if (tried == outcome::started) {
                attach_to_marker(to, marker_kind::messages, done);
            }
            return tried;
        }));
    }
    return {};
}

bool iface::start_deferred(peer &to) {
    bool moved = false;
    while (!to.waiting.empty()) {
        deferred &next = to.waiting.front();
        if (next.flush == nullptr) {
            completion unused; // the bytes are a copy
            if (start_put(to, next.offset, next.bytes.data(), next.bytes.size(), unused) !=
                outcome::started) {
                return moved;
            }
        } else {
            if (to.unmarked.num_puts > 0 &&
                start_marker(to, marker_kind::puts) != outcome::started) {
                return moved;
            }
            attach_to_marker(to, marker_kind::puts, *next.flush);
            --to.num_flushes;
            next.flush->end();
        }
        to.waiting_bytes -= next.bytes.size();
        to.waiting.pop_front();
        moved = true;
    }
    unlist_if_flushed(to);
    return moved;
}

status iface::flush_all(completion &done, bool also_messages) {
    std::vector<peer *> found;
    if (also_messages || num_unflushed_.load(std::memory_order_relaxed) > 0) {
        std::lock_guard const guard(mutex_);
        found = unflushed_;
        for (auto const &each : peers_) {
            if (also_messages && each->sent.load() != 0 && !each->is_unflushed) {
                found.push_back(each.get());
            }
        }
    }
    for (peer *const each : found) {
        DIOMP_TRY(flush(*each, done, also_messages));
    }
    return {};
}

} // namespace diomp::transport::gaspi
