// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "exchange.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace diomp::run {

void exchange::add(std::vector<launch::local::entry> entries) {
    new_entries_.insert(new_entries_.end(), std::make_move_iterator(entries.begin()),
                        std::make_move_iterator(entries.end()));
}

result<bool> exchange::enter_fence(int rank) {
    auto const index = static_cast<std::size_t>(rank - first_);
    if (in_fence_[index]) {
        return error(OMPX_ERR_SYSTEM, fmt::format("rank {} entered a fence twice", rank));
    }
    in_fence_[index] = true;
    return ++waiting_ == in_fence_.size();
}

std::vector<launch::local::entry> exchange::take_entries() {
    in_fence_.assign(in_fence_.size(), false);
    waiting_ = 0;
    return std::exchange(new_entries_, {});
}

std::vector<int> exchange::late_ranks() const {
    std::vector<int> late;
    for (std::size_t i = 0; waiting_ > 0 && i < in_fence_.size(); ++i) {
        if (!in_fence_[i]) {
            late.push_back(first_ + static_cast<int>(i));
        }
    }
    return late;
}

std::vector<shared_packet> release_packets(std::vector<launch::local::entry> entries, int ranks,
                                           bool invalidate) {
    std::erase_if(entries, [ranks](const launch::local::entry &each) {
        return !launch::local::is_delivered(static_cast<int>(each.owner), ranks);
    });
    std::vector<shared_packet> release;
    for (std::string &packet : launch::local::encode_entries(entries)) {
        release.push_back(std::make_shared<const std::string>(std::move(packet)));
    }
    packet_writer done(launch::local::packet_type::fence_done);
    done.number(static_cast<std::uint8_t>(invalidate ? 1 : 0));
    release.push_back(std::make_shared<const std::string>(done.take()));
    return release;
}

std::vector<shared_packet> value_packet(const std::string *value) {
    packet_writer packet(launch::local::packet_type::value);
    packet.number(static_cast<std::uint8_t>(value != nullptr ? 1 : 0));
    packet.text(value != nullptr ? *value : "");
    return {std::make_shared<const std::string>(packet.take())};
}

} // namespace diomp::run
