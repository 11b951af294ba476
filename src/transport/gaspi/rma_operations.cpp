// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/gaspi/rma_operations.h"

#include <algorithm>
#include <cstring>

namespace diomp::transport::gaspi {

rma_operations::outcome rma_operations::start_marker(peer &at, marker_kind kind) {
    gaspi_queue *const queue =
        queues_.find(at, kind == marker_kind::puts ? queue_kind::put : queue_kind::message);
    auto *const word = queue != nullptr ? memory_.work().acquire_word() : nullptr;
    if (word == nullptr) {
        return outcome::full;
    }
    outcome const tried =
        queues_.check(at, queue->read(at.rank(), memory_.location_of(word), segment::work,
                                      work_segment::one_offset,
                                      {operation::what::nothing, sizeof(std::uint32_t)}));
    if (tried != outcome::started) {
        memory_.work().release_word(word);
        return tried;
    }
    put_counts const covered = kind == marker_kind::puts ? at.puts.take_unmarked() : put_counts{};
    at.markers_of(kind).push_back({word, covered, {}});
    if (std::ranges::find(marked_, &at) == marked_.end()) {
        marked_.push_back(&at);
    }
    return tried;
}

void rma_operations::list_unflushed(peer &to) {
    if (!to.is_unflushed) {
        to.is_unflushed = true;
        unflushed_.push_back(&to);
        ++num_unflushed_;
    }
}

void rma_operations::unlist_if_flushed(peer &at) {
    if (at.puts.is_empty() && at.waiting.is_empty() && at.is_unflushed) {
        at.is_unflushed = false;
        std::erase(unflushed_, &at);
        --num_unflushed_;
    }
}

rma_operations::outcome rma_operations::start_put(peer &to, std::uint64_t offset,
                                                  const std::byte *source, std::size_t nbytes,
                                                  completion &source_free) {
    if (to.puts.is_full_for(nbytes)) {
        if (to.puts.unmarked().num_puts > 0) {
            start_marker(to, marker_kind::puts);
        }
        return outcome::full;
    }
    gaspi_queue *const queue = queues_.find(to, queue_kind::put);
    if (queue == nullptr) {
        return outcome::full;
    }
    operation started{operation::what::put, static_cast<std::uint32_t>(nbytes)};
    if (nbytes <= small_bytes || !memory_.reaches(source, nbytes)) {
        started.block = memory_.work().acquire_block(nbytes > small_bytes);
        if (started.block == nullptr) {
            return outcome::full;
        }
        std::memcpy(started.block, source, nbytes);
    } else {
        started.done = &source_free;
    }
    const void *const from = started.block != nullptr ? started.block : source;
    outcome const tried = queues_.check(
        to, queue->write(to.rank(), memory_.location_of(from), segment::arena, offset, started));
    if (tried != outcome::started) {
        if (started.block != nullptr) {
            memory_.work().release_block(started.block);
        }
        return tried;
    }
    if (started.done != nullptr) {
        source_free.begin();
        ++to.num_transfers;
    }
    list_unflushed(to);
    to.puts.add(nbytes);
    if (to.puts.wants_marker()) {
        start_marker(to, marker_kind::puts);
    }
    return tried;
}

void rma_operations::defer(peer &to, deferred what) {
    if (to.waiting.is_empty()) {
        waiting_.push_back(&to);
    }
    to.waiting.add(std::move(what));
}

rma_operations::outcome rma_operations::put(peer &to, std::uint64_t offset, const std::byte *source,
                                            std::size_t nbytes, completion &source_free) {
    bool const may_wait = nbytes <= small_bytes;
    if (!may_wait || to.waiting.is_empty()) {
        outcome const tried = start_put(to, offset, source, nbytes, source_free);
        if (tried != outcome::full || !may_wait) {
            return tried;
        }
    }
    if (!to.waiting.has_space_for(nbytes)) {
        return outcome::full;
    }
    list_unflushed(to);
    defer(to, {offset, {source, source + nbytes}, nullptr});
    return outcome::started;
}

rma_operations::outcome rma_operations::get(peer &from, std::uint64_t offset,
                                            std::byte *destination, std::size_t nbytes,
                                            completion &done) {
    gaspi_queue *const queue = queues_.find(from, queue_kind::get);
    if (queue == nullptr || (nbytes < large_bytes && from.gets.is_full())) {
        return outcome::full;
    }
    operation started{operation::what::get, static_cast<std::uint32_t>(nbytes), &done};
    if (nbytes <= small_bytes || !memory_.reaches(destination, nbytes)) {
        started.block = memory_.work().acquire_block(nbytes > small_bytes);
        started.copy_to = destination;
        if (started.block == nullptr) {
            return outcome::full;
        }
    }
    void *const to = started.block != nullptr ? started.block : destination;
    outcome const tried = queues_.check(
        from, queue->read(from.rank(), memory_.location_of(to), segment::arena, offset, started));
    if (tried != outcome::started) {
        if (started.block != nullptr) {
            memory_.work().release_block(started.block);
        }
        return tried;
    }
    done.begin();
    from.gets.add(nbytes);
    return tried;
}

void rma_operations::attach_to_marker(peer &to, marker_kind kind, completion &done) {
    auto &markers = to.markers_of(kind);
    if (!markers.empty()) {
        done.begin();
        ++to.num_flushes;
        markers.back().waiting.push_back(&done);
    }
}

void rma_operations::flush(peer &to, completion &done) {
    bool const has_marker =
        to.waiting.is_empty() && (to.puts.unmarked().num_puts == 0 ||
                                  start_marker(to, marker_kind::puts) == outcome::started);
    if (has_marker) {
        attach_to_marker(to, marker_kind::puts, done);
    } else {
        done.begin();
        ++to.num_flushes;
        defer(to, {0, {}, &done});
    }
}

rma_operations::outcome rma_operations::flush_messages(peer &to, completion &done) {
    outcome const tried =
        to.is_untransmitted ? outcome::full : start_marker(to, marker_kind::messages);
    if (tried == outcome::started) {
        attach_to_marker(to, marker_kind::messages, done);
    }
    return tried;
}

bool rma_operations::start_deferred(peer &to) {
    bool moved = false;
    while (!to.waiting.is_empty()) {
        deferred const &next = to.waiting.front();
        if (next.flush == nullptr) {
            completion unused; // the bytes are a copy
            if (start_put(to, next.offset, next.bytes.data(), next.bytes.size(), unused) !=
                outcome::started) {
                return moved;
            }
        } else {
            if (to.puts.unmarked().num_puts > 0 &&
                start_marker(to, marker_kind::puts) != outcome::started) {
                return moved;
            }
            attach_to_marker(to, marker_kind::puts, *next.flush);
            --to.num_flushes;
            next.flush->end();
        }
        to.waiting.pop_front();
        moved = true;
    }
    unlist_if_flushed(to);
    return moved;
}

bool rma_operations::complete_markers(peer &at, marker_kind kind) {
    auto &markers = at.markers_of(kind);
    bool moved = false;
    while (!markers.empty() && markers.front().word->load(std::memory_order_acquire) != 0) {
        marker const arrived = std::move(markers.front());
        markers.pop_front();
        memory_.work().release_word(arrived.word);
        at.puts.complete(arrived.puts);
        unlist_if_flushed(at);
        at.note_activity();
        for (completion *const each : arrived.waiting) {
            --at.num_flushes;
            each->end();
        }
        moved = true;
    }
    return moved;
}

bool rma_operations::advance() {
    bool moved = false;
    std::erase_if(marked_, [&](peer *each) {
        moved = complete_markers(*each, marker_kind::puts) || moved;
        moved = complete_markers(*each, marker_kind::messages) || moved;
        return each->markers[0].empty() && each->markers[1].empty();
    });
    std::erase_if(waiting_, [&](peer *each) {
        moved = start_deferred(*each) || moved;
        return each->waiting.is_empty();
    });
    return moved;
}

void rma_operations::fail(peer &lost) {
    for (auto &markers : lost.markers) {
        for (marker const &each : markers) {
            for (completion *const waiting : each.waiting) {
                --lost.num_flushes;
                waiting->end(OMPX_ERR_PEER);
            }
        }
        markers.clear();
    }
    for (deferred const &each : lost.waiting.take_all()) {
        if (each.flush != nullptr) {
            --lost.num_flushes;
            each.flush->end(OMPX_ERR_PEER);
        }
    }
    std::erase(waiting_, &lost);
    std::erase(marked_, &lost);
}

} // namespace diomp::transport::gaspi
