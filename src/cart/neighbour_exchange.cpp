// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cart/neighbour_exchange.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace diomp::cart {

neighbour_exchange::neighbour_exchange(channels::channel_registry &registry, std::uint64_t id,
                                       std::vector<std::optional<world_rank>> neighbours)
    : registry_(registry), id_(id), sides_(neighbours.size()), send_(neighbours.size()),
      receive_(neighbours.size()) {
    for (std::size_t i = 0; i < neighbours.size(); ++i) {
        sides_[i].neighbour = neighbours[i];
    }
}

// Nothing is created unless there is memory for all ends: the neighbours would find ends of an
// exchange that has failed.
status neighbour_exchange::provide_all(std::size_t first, std::span<const sent_block> send,
                                       std::span<const received_block> receive) {
    struct missing_end {
        std::unique_ptr<channels::channel_end> *where;
        channels::channel_registry::wanted_end what;
    };
    std::vector<missing_end> missing;
    auto const require = [&](std::unique_ptr<channels::channel_end> &end, std::size_t index,
                             ompx_channel_end_t kind, std::size_t nbytes) -> status {
        if (end != nullptr && end->shape().nbytes >= nbytes) {
            return {};
        }
        // Both ends have the tag of the direction in which the data goes, so that the two channels
        // to a rank that is the neighbour on both sides differ.
        std::size_t const direction = kind == OMPX_CHANNEL_SENDER ? index : index ^ 1;
        constexpr std::uint32_t num_buffers = 2;
        missing.push_back(
            {&end,
             {{*sides_[index].neighbour, channels::internal_tag | id_ << 8 | direction, kind},
              {nbytes, num_buffers}}});
        return end == nullptr ? status() : registry_.close(std::move(end));
    };
    for (std::size_t i = 0; i < send.size(); ++i) {
        if (std::size_t const index = first + i; sides_[index].neighbour) {
            side &each = sides_[index];
            DIOMP_TRY(require(each.sender, index, OMPX_CHANNEL_SENDER, send[i].nbytes));
            DIOMP_TRY(require(each.receiver, index, OMPX_CHANNEL_RECEIVER, receive[i].nbytes));
        }
    }
    if (missing.empty()) {
        return {};
    }
    std::vector<channels::channel_registry::wanted_end> ends;
    std::ranges::transform(missing, std::back_inserter(ends), &missing_end::what);
    DIOMP_TRY(registry_.check_space(ends));
    for (missing_end const &each : missing) {
        auto made = registry_.create(each.what.key, each.what.shape);
        DIOMP_TRY(made);
        *each.where = made.take();
    }
    return {};
}

status neighbour_exchange::send_block(side &to, const sent_block &block) {
    auto &end = static_cast<channels::sender_end &>(*to.sender);
    DIOMP_TRY(end.wait());
    DIOMP_TRY(end.send(block.data, block.nbytes));
    return {};
}

status neighbour_exchange::receive_block(side &from, const received_block &block) {
    auto &end = static_cast<channels::receiver_end &>(*from.receiver);
    status waited = end.wait();
    if (!waited && waited.failure().code() == OMPX_ERR_STATE) { // its channel was too small
        return error(OMPX_ERR_MISMATCH,
                     fmt::format("rank {} has sent a block of more than {} bytes",
                                 from.neighbour->value(), end.shape().nbytes),
                     "pass the same size on both sides");
    }
    DIOMP_TRY(waited);
    auto const arrived = end.receive();
    if (arrived.nbytes != block.nbytes) {
        DIOMP_TRY(end.release());
        return error(OMPX_ERR_MISMATCH,
                     fmt::format("rank {} has sent a block of {} bytes, not {}",
                                 from.neighbour->value(), arrived.nbytes, block.nbytes),
                     "pass the same size on both sides");
    }
    if (block.nbytes > 0) {
        std::memcpy(block.data, arrived.data, block.nbytes);
    }
    return end.release();
}

side_blocks neighbour_exchange::empty_lists(std::size_t count) {
    side_blocks const lists{std::span(send_).first(count), std::span(receive_).first(count)};
    std::ranges::fill(lists.send, sent_block{});
    std::ranges::fill(lists.receive, received_block{});
    return lists;
}

status neighbour_exchange::exchange(std::size_t first, std::span<const sent_block> send,
                                    std::span<const received_block> receive) {
    auto const sides = std::span(sides_).subspan(first, send.size());
    // First all ends: creation does not wait, and a neighbour may be waiting for any of them.
    DIOMP_TRY(provide_all(first, send, receive));
    for (std::size_t i = 0; i < sides.size(); ++i) {
        if (sides[i].neighbour) {
            DIOMP_TRY(send_block(sides[i], send[i]));
        }
    }
    for (std::size_t i = 0; i < sides.size(); ++i) {
        if (sides[i].neighbour) {
            DIOMP_TRY(receive_block(sides[i], receive[i]));
        }
    }
    return {};
}

status neighbour_exchange::close() {
    status outcome;
    for (side &each : sides_) {
        for (auto *end : {&each.sender, &each.receiver}) {
            if (*end != nullptr) {
                status closed = registry_.close(std::move(*end));
                outcome = outcome ? std::move(closed) : std::move(outcome);
            }
        }
    }
    return outcome;
}

} // namespace diomp::cart
