// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "agent_exchange.h"

#include <memory>

namespace diomp::run {

// ---- Packets from the ranks

status agent_exchange::on_fence(int rank) {
    auto complete = values_.enter_fence(rank);
    DIOMP_TRY(complete);
    if (complete.value()) {
        deferred_entries_ = values_.take_entries();
        for (const std::string &frame : entry_frames(deferred_entries_)) {
            head_.send(frame);
        }
        head_.send(small_frame(frame_type::fence));
    }
    return {};
}

status agent_exchange::on_get(int rank, int owner, std::string key) {
    value_key wanted(owner, std::move(key));
    if (auto const known = cache_.find(wanted); known != cache_.end()) {
        node_.send(rank, value_packet(&known->second));
        return {};
    }
    auto const [item, is_new] = pending_gets_.try_emplace(std::move(wanted));
    item->second.push_back(rank);
    if (is_new) {
        frame_writer frame(frame_type::get);
        frame.number(static_cast<std::uint32_t>(owner));
        frame.text(item->first.second);
        head_.send(frame.take());
    }
    return {};
}

// ---- Frames from the head

void agent_exchange::on_fence_done(bool invalidate) {
    if (invalidate) {
        cache_.clear();
    }
    node_.send_to_all(release_packets(std::move(deferred_entries_), values_.ranks(), invalidate));
    deferred_entries_.clear();
}

void agent_exchange::on_value(frame_reader &frame) {
    auto const owner = static_cast<int>(frame.number<std::uint32_t>());
    value_key const key(owner, std::string(frame.text()));
    bool const found = frame.number<std::uint8_t>() != 0;
    std::string const value(frame.text());
    if (found) {
        cache_.insert_or_assign(key, value);
    }
    auto const waiting = pending_gets_.extract(key);
    if (!waiting.empty()) {
        for (int const rank : waiting.mapped()) {
            node_.send(rank, value_packet(found ? &value : nullptr));
        }
    }
}

} // namespace diomp::run
