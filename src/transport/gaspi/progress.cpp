// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Completion of operations, and cleanup after a lost peer. Declared in iface.h.
#include "transport/common/liveness.h"
#include "transport/gaspi/iface.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

namespace diomp::transport::gaspi {

void iface::complete_operation(peer &at, const operation &over, int code) {
    if (over.kind == operation::what::get) {
        if (code == 0 && over.block != nullptr) {
            std::memcpy(over.copy_to, over.block, over.nbytes);
        }
        --at.num_gets;
        at.get_bytes -= over.nbytes;
    }
    if (over.kind == operation::what::put && over.done != nullptr) {
        --at.num_transfers;
    }
    if (over.done != nullptr) {
        over.done->end(code);
    }
    // Blocks of a lost peer are not reused: GPI-2 may still access them.
    if (over.block != nullptr && code == 0) {
        memory_->release_block(over.block);
    }
}

bool iface::progress_queue(gaspi_queue &at) {
    if (at.is_idle()) {
        return false;
    }
    if (!at.poll_completions()) {
        broken_.push_back(at.assigned_peer);
        return true;
    }
    bool moved = false;
    while (at.is_front_complete()) {
        operation const over = at.outstanding.front();
        at.outstanding.pop_front();
        complete_operation(*at.assigned_peer, over, 0);
        if (over.kind == operation::what::get || over.done != nullptr) {
            at.assigned_peer->note_activity();
        }
        moved = true;
    }
    return moved;
}

void iface::unlist_if_flushed(peer &at) {
    if (at.unflushed_bytes == 0 && at.waiting.empty() && at.is_unflushed) {
        at.is_unflushed = false;
        std::erase(unflushed_, &at);
        --num_unflushed_;
    }
}

bool iface::complete_markers(peer &at, marker_kind kind) {
    auto &markers = at.markers_of(kind);
    bool moved = false;
    while (!markers.empty() && markers.front().word->load(std::memory_order_acquire) != 0) {
        marker const arrived = std::move(markers.front());
        markers.pop_front();
        memory_->release_word(arrived.word);
        at.unflushed_bytes -= arrived.put_bytes;
        at.unflushed_small_bytes -= arrived.small_put_bytes;
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

bool iface::advance() {
    std::vector<peer *> lost;
    bool moved = false;
    {
        std::unique_lock const lock(mutex_, std::try_to_lock);
        if (!lock.owns_lock()) {
            return false;
        }
        for (gaspi_queue &each : queues_) {
            moved = (!each.is_lost && progress_queue(each)) || moved;
        }
        std::erase_if(marked_, [&](peer *each) {
            moved = complete_markers(*each, marker_kind::puts) || moved;
            moved = complete_markers(*each, marker_kind::messages) || moved;
            return each->markers[0].empty() && each->markers[1].empty();
        });
        std::erase_if(waiting_, [&](peer *each) {
            moved = start_deferred(*each) || moved;
            return each->waiting.empty();
        });
        moved = transmit_pending() || moved;
        moved = send_credits() || moved;
        lost.swap(broken_);
    }
    for (peer *const each : lost) {
        on_peer_lost_(*each, "its connection is lost");
    }
    return moved;
}

void iface::fail_operations(peer &lost) {
    for (gaspi_queue &each : queues_) {
        if (each.assigned_peer != &lost || each.is_idle()) {
            continue;
        }
        each.is_lost = true;
        for (operation const &over : each.outstanding) {
            complete_operation(lost, over, OMPX_ERR_PEER);
        }
        each.outstanding.clear();
    }
    for (auto &markers : lost.markers) {
        for (marker const &each : markers) {
            for (completion *const waiting : each.waiting) {
                --lost.num_flushes;
                waiting->end(OMPX_ERR_PEER);
            }
        }
        markers.clear();
    }
    for (deferred const &each : lost.waiting) {
        if (each.flush != nullptr) {
            --lost.num_flushes;
            each.flush->end(OMPX_ERR_PEER);
        }
    }
    lost.waiting.clear();
    std::erase(waiting_, &lost);
    std::erase(marked_, &lost);
    std::erase(credits_due_, &lost);
    std::erase(untransmitted_, &lost);
}

std::string iface::fail(peer &lost, const std::string &why) {
    std::lock_guard const guard(mutex_);
    std::string sentence = lost.fail(why);
    if (!sentence.empty()) {
        fail_operations(lost);
    }
    return sentence;
}

void iface::ping(peer &silent) {
    std::lock_guard const guard(mutex_);
    read_credit(silent);
    if (!silent.is_failed() && silent.markers_of(marker_kind::messages).empty()) {
        start_marker(silent, marker_kind::messages);
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
