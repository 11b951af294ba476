// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/gaspi/traffic.h"

#include "conduit/backoff.h"

#include <algorithm>
#include <cstring>

namespace diomp::conduit::gaspi {
namespace {

constexpr std::size_t num_lanes[num_lane_kinds] = {6, 5, 4}; // put, get, message
static_assert(num_lanes[0] + num_lanes[1] + num_lanes[2] == launch::gaspi::launcher_queue);

constexpr std::uint64_t marker_distance = window_bytes / 4;
constexpr std::uint32_t most_small_gets = 256;
/// Small puts towards a peer that takes none: kept until then, so that the caller goes on.
constexpr std::size_t most_waiting_bytes = std::size_t{4} << 20;
constexpr std::size_t most_waiting = 16384;
constexpr std::size_t nothing_bytes = sizeof(std::uint32_t);
constexpr const char *host_key = "gaspi.name";

std::size_t index_of(lane_kind kind) { return static_cast<std::size_t>(kind); }

} // namespace

result<std::unique_ptr<traffic>> traffic::create(launch::launcher &launcher, const window &window,
                                                 loss_sink lose) {
    std::unique_ptr<traffic> made(new traffic);
    auto const &job = launcher.info();
    made->self_ = job.rank;
    made->lose_ = std::move(lose);
    DIOMP_TRY(launcher.put(host_key, job.host));
    DIOMP_TRY(launcher.fence());
    for (int rank = 0; rank < job.size; ++rank) {
        auto host = launcher.get(world_rank{rank}, host_key);
        DIOMP_TRY(host);
        made->peers_.push_back(std::make_unique<peer>(world_rank{rank}, host.take()));
    }
    DIOMP_TRY(launch::gaspi::start(launcher));
    auto memory = memory::create(window, job.rank, false);
    DIOMP_TRY(memory);
    made->memory_ = memory.take();
    std::uint8_t queue = 0;
    for (std::size_t kind = 0; kind < num_lane_kinds; ++kind) {
        for (std::size_t i = 0; i < num_lanes[kind]; ++i) {
            made->lanes_.emplace_back(queue++, static_cast<lane_kind>(kind));
        }
    }
    return made;
}

lane *traffic::lane_of(peer &at, lane_kind kind) {
    lane *&own = at.lanes[index_of(kind)];
    if (own != nullptr && own->tenant == &at) {
        return own->has_room() ? own : nullptr;
    }
    for (lane &each : lanes_) {
        if (each.kind == kind && each.is_idle() && !each.is_lost) {
            each.tenant = &at;
            own = &each;
            return own;
        }
    }
    return nullptr;
}

traffic::outcome traffic::note(peer &at, outcome tried) {
    if (tried == outcome::failed) {
        broken_.push_back(&at);
    }
    return tried;
}

template <typename Attempt>
status traffic::insist(peer &at, Attempt &&attempt) {
    backoff idle;
    for (;;) {
        if (at.is_failed()) {
            return at.gone();
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

traffic::outcome traffic::start_marker(peer &at, marker_kind kind) {
    lane *const on = lane_of(at, kind == marker_kind::puts ? lane_kind::put : lane_kind::message);
    auto *const word = on != nullptr ? memory_->take_word() : nullptr;
    if (word == nullptr) {
        return outcome::full;
    }
    outcome const tried =
        note(at, on->read(at.rank(), memory_->place_of(word), segment::work, memory::one_offset,
                          {operation::what::nothing, nothing_bytes}));
    if (tried != outcome::started) {
        memory_->give_word(word);
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

void traffic::list_unsettled(peer &to) {
    if (!to.is_unsettled) {
        to.is_unsettled = true;
        unsettled_.push_back(&to);
        ++num_unsettled_;
    }
}

traffic::outcome traffic::start_put(peer &to, std::uint64_t offset, const std::byte *source,
                                    std::size_t nbytes, completion &source_free) {
    bool const is_small = nbytes < large_bytes;
    std::uint64_t const limited = is_small ? to.unsettled_bytes : to.unsettled_small_bytes;
    if (limited > window_bytes) {
        if (to.unmarked.num_puts > 0) {
            start_marker(to, marker_kind::puts);
        }
        return outcome::full;
    }
    lane *const on = lane_of(to, lane_kind::put);
    if (on == nullptr) {
        return outcome::full;
    }
    operation started{operation::what::put, static_cast<std::uint32_t>(nbytes)};
    if (nbytes <= small_bytes || !memory_->reaches(source, nbytes)) {
        started.block = memory_->take_block(nbytes > small_bytes);
        if (started.block == nullptr) {
            return outcome::full;
        }
        std::memcpy(started.block, source, nbytes);
    } else {
        started.done = &source_free;
    }
    const void *const from = started.block != nullptr ? started.block : source;
    outcome const tried =
        note(to, on->write(to.rank(), memory_->place_of(from), segment::window, offset, started));
    if (tried != outcome::started) {
        if (started.block != nullptr) {
            memory_->give_block(started.block);
        }
        return tried;
    }
    if (started.done != nullptr) {
        source_free.begin();
        ++to.num_transfers;
    }
    list_unsettled(to);
    ++to.unmarked.num_puts;
    to.unmarked.put_bytes += nbytes;
    to.unmarked.small_put_bytes += is_small ? nbytes : 0;
    to.unsettled_bytes += nbytes;
    to.unsettled_small_bytes += is_small ? nbytes : 0;
    if (to.unmarked.small_put_bytes > marker_distance) {
        start_marker(to, marker_kind::puts);
    }
    return tried;
}

bool traffic::defer_put(peer &to, std::uint64_t offset, std::span<const std::byte> bytes) {
    if (to.waiting_bytes + bytes.size() > most_waiting_bytes || to.waiting.size() >= most_waiting) {
        return false;
    }
    list_unsettled(to);
    defer(to, {offset, {bytes.begin(), bytes.end()}, nullptr});
    return true;
}

void traffic::defer(peer &to, deferred what) {
    if (to.waiting.empty()) {
        waiting_.push_back(&to);
    }
    to.waiting_bytes += what.bytes.size();
    to.waiting.push_back(std::move(what));
}

status traffic::put(world_rank rank, std::uint64_t remote, const void *source, std::size_t nbytes,
                    completion &source_free) {
    peer &to = peer_of(rank);
    std::uint64_t const offset = memory_->offset_in_slot(rank, remote);
    const auto *const from = static_cast<const std::byte *>(source);
    std::size_t const step = memory_->reaches(source, nbytes) ? piece_bytes : large_block_bytes;
    for (std::size_t at = 0; at < nbytes; at += step) {
        std::size_t const length = std::min(step, nbytes - at);
        DIOMP_TRY(insist(to, [&] {
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

traffic::outcome traffic::start_get(peer &from, std::uint64_t offset, std::byte *destination,
                                    std::size_t nbytes, completion &done) {
    lane *const on = lane_of(from, lane_kind::get);
    bool const is_full = from.num_gets >= most_small_gets || from.get_bytes > window_bytes;
    if (on == nullptr || (nbytes < large_bytes && is_full)) {
        return outcome::full;
    }
    operation started{operation::what::get, static_cast<std::uint32_t>(nbytes), &done};
    if (nbytes <= small_bytes || !memory_->reaches(destination, nbytes)) {
        started.block = memory_->take_block(nbytes > small_bytes);
        started.copy_to = destination;
        if (started.block == nullptr) {
            return outcome::full;
        }
    }
    void *const to = started.block != nullptr ? started.block : destination;
    outcome const tried =
        note(from, on->read(from.rank(), memory_->place_of(to), segment::window, offset, started));
    if (tried != outcome::started) {
        if (started.block != nullptr) {
            memory_->give_block(started.block);
        }
        return tried;
    }
    done.begin();
    ++from.num_gets;
    from.get_bytes += nbytes;
    return tried;
}

status traffic::get(world_rank rank, std::uint64_t remote, void *destination, std::size_t nbytes,
                    completion &done) {
    peer &from = peer_of(rank);
    std::uint64_t const offset = memory_->offset_in_slot(rank, remote);
    auto *const to = static_cast<std::byte *>(destination);
    std::size_t const step =
        memory_->reaches(destination, nbytes) ? piece_bytes : large_block_bytes;
    for (std::size_t at = 0; at < nbytes; at += step) {
        DIOMP_TRY(insist(from, [&] {
            return start_get(from, offset + at, to + at, std::min(step, nbytes - at), done);
        }));
    }
    return {};
}

void traffic::join_marker(peer &to, marker_kind kind, completion &done) {
    auto &markers = to.markers_of(kind);
    if (!markers.empty()) {
        done.begin();
        ++to.num_flushes;
        markers.back().waiting.push_back(&done);
    }
}

status traffic::flush(peer &to, completion &done, bool also_messages) {
    DIOMP_TRY(insist(to, [&] {
        bool const has_marker =
            to.waiting.empty() &&
            (to.unmarked.num_puts == 0 || start_marker(to, marker_kind::puts) == outcome::started);
        if (has_marker) {
            join_marker(to, marker_kind::puts, done);
        } else {
            done.begin();
            ++to.num_flushes;
            defer(to, {0, {}, &done});
        }
        return outcome::started;
    }));
    if (also_messages && to.sent.load() != 0) {
        DIOMP_TRY(insist(to, [&] {
            outcome const tried =
                to.is_unshipped ? outcome::full : start_marker(to, marker_kind::messages);
            if (tried == outcome::started) {
                join_marker(to, marker_kind::messages, done);
            }
            return tried;
        }));
    }
    return {};
}

bool traffic::start_waiting(peer &to) {
    bool moved = false;
    while (!to.waiting.empty()) {
        deferred &next = to.waiting.front();
        if (next.flush == nullptr) {
            completion unused; // the bytes are copied
            if (start_put(to, next.offset, next.bytes.data(), next.bytes.size(), unused) !=
                outcome::started) {
                return moved;
            }
        } else {
            if (to.unmarked.num_puts > 0 &&
                start_marker(to, marker_kind::puts) != outcome::started) {
                return moved;
            }
            join_marker(to, marker_kind::puts, *next.flush);
            --to.num_flushes;
            next.flush->end();
        }
        to.waiting_bytes -= next.bytes.size();
        to.waiting.pop_front();
        moved = true;
    }
    settle(to);
    return moved;
}

status traffic::flush_all(completion &done, bool also_messages) {
    std::vector<peer *> found;
    if (also_messages || num_unsettled_.load(std::memory_order_relaxed) > 0) {
        std::lock_guard const guard(mutex_);
        found = unsettled_;
        for (auto const &each : peers_) {
            if (also_messages && each->sent.load() != 0 && !each->is_unsettled) {
                found.push_back(each.get());
            }
        }
    }
    for (peer *const each : found) {
        DIOMP_TRY(flush(*each, done, also_messages));
    }
    return {};
}

} // namespace diomp::conduit::gaspi
