// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What follows when operations are over, and when peers are lost. Declared in traffic.h.
#include "conduit/gaspi/traffic.h"
#include "conduit/watch.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

namespace diomp::conduit::gaspi {

void traffic::end_operation(peer &at, const operation &over, int code) {
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
    // A lost peer's blocks stay out: GPI-2 may still use them.
    if (over.block != nullptr && code == 0) {
        memory_->give_block(over.block);
    }
}

bool traffic::finish(lane &at) {
    if (at.is_idle()) {
        return false;
    }
    if (!at.look()) {
        broken_.push_back(at.tenant);
        return true;
    }
    bool moved = false;
    while (at.is_front_over()) {
        operation const over = at.under_way.front();
        at.under_way.pop_front();
        end_operation(*at.tenant, over, 0);
        if (over.kind == operation::what::get || over.done != nullptr) {
            at.tenant->note_sign_of_life();
        }
        moved = true;
    }
    return moved;
}

void traffic::settle(peer &at) {
    if (at.unsettled_bytes == 0 && at.waiting.empty() && at.is_unsettled) {
        at.is_unsettled = false;
        std::erase(unsettled_, &at);
        --num_unsettled_;
    }
}

bool traffic::land_markers(peer &at, marker_kind kind) {
    auto &markers = at.markers_of(kind);
    bool moved = false;
    while (!markers.empty() && markers.front().word->load(std::memory_order_acquire) != 0) {
        marker const landed = std::move(markers.front());
        markers.pop_front();
        memory_->give_word(landed.word);
        at.unsettled_bytes -= landed.put_bytes;
        at.unsettled_small_bytes -= landed.small_put_bytes;
        settle(at);
        at.note_sign_of_life();
        for (completion *const each : landed.waiting) {
            --at.num_flushes;
            each->end();
        }
        moved = true;
    }
    return moved;
}

bool traffic::advance() {
    std::vector<peer *> lost;
    bool moved = false;
    {
        std::unique_lock const lock(mutex_, std::try_to_lock);
        if (!lock.owns_lock()) {
            return false;
        }
        for (lane &each : lanes_) {
            moved = (!each.is_lost && finish(each)) || moved;
        }
        std::erase_if(marked_, [&](peer *each) {
            moved = land_markers(*each, marker_kind::puts) || moved;
            moved = land_markers(*each, marker_kind::messages) || moved;
            return each->markers[0].empty() && each->markers[1].empty();
        });
        std::erase_if(waiting_, [&](peer *each) {
            moved = start_waiting(*each) || moved;
            return each->waiting.empty();
        });
        moved = ship_waiting() || moved;
        moved = pay_credits() || moved;
        lost.swap(broken_);
    }
    for (peer *const each : lost) {
        lose_(*each, "its connection is lost");
    }
    return moved;
}

void traffic::end_everything(peer &lost) {
    for (lane &each : lanes_) {
        if (each.tenant != &lost || each.is_idle()) {
            continue;
        }
        each.is_lost = true;
        for (operation const &over : each.under_way) {
            end_operation(lost, over, OMPX_ERR_PEER);
        }
        each.under_way.clear();
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
    std::erase(debtors_, &lost);
    std::erase(unshipped_, &lost);
}

std::string traffic::fail(peer &lost, const std::string &why) {
    std::lock_guard const guard(mutex_);
    std::string sentence = lost.fail(why);
    if (!sentence.empty()) {
        end_everything(lost);
    }
    return sentence;
}

void traffic::ping(peer &silent) {
    std::lock_guard const guard(mutex_);
    learn_credit(silent);
    if (!silent.is_failed() && silent.markers_of(marker_kind::messages).empty()) {
        start_marker(silent, marker_kind::messages);
    }
}

std::string traffic::describe_path(world_rank rank) const {
    return fmt::format("gaspi ({}): GPI-2 to {}", memory_->network(), peer_of(rank).name());
}

std::string traffic::describe_outstanding() const {
    std::lock_guard const guard(mutex_);
    return describe_awaited(pointers_to(peers_));
}

} // namespace diomp::conduit::gaspi
