// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "head_exchange.h"

#include <fmt/format.h>

#include <utility>

namespace diomp::run {

void head_exchange::on_entries(frame_reader &frame) {
    std::vector<launch::local::entry> entries;
    if (auto decoded = launch::local::decode_entries(frame, entries); decoded.ok()) {
        values_.stage(std::move(entries));
    }
}

status head_exchange::on_fence(const host &from) {
    if (!in_fence_.insert(&from).second) {
        return error(OMPX_ERR_SYSTEM,
                     fmt::format("host {} entered a fence twice", from.block.name));
    }
    if (in_fence_.size() == hosts_.size()) {
        in_fence_.clear();
        bool const replaced = values_.commit();
        hosts_.send_to_all(
            small_frame(frame_type::fence_done, static_cast<std::uint8_t>(replaced ? 1 : 0)));
    }
    return {};
}

std::vector<std::string> head_exchange::describe_late() const {
    std::vector<std::string> late;
    for (const host &each : hosts_) {
        if (is_waiting() && !in_fence_.contains(&each)) {
            late.push_back(fmt::format("a rank of host {}", each.describe()));
        }
    }
    return late;
}

void head_exchange::on_get(const host &from, frame_reader &frame) {
    auto const owner = frame.number<std::uint32_t>();
    std::string const key(frame.text());
    const std::string *const value = values_.find(static_cast<int>(owner), key);
    frame_writer reply(frame_type::value);
    reply.number(owner);
    reply.text(key);
    reply.number(static_cast<std::uint8_t>(value != nullptr ? 1 : 0));
    reply.text(value != nullptr ? *value : "");
    from.link->send(reply.take());
}

} // namespace diomp::run
