// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/tcp/send_queue.h"

#include "base/assert.h"

#include <iterator>
#include <utility>

namespace diomp::transport::tcp {

std::size_t send_items::describe(std::span<iovec> iovecs, std::size_t &nbytes) const {
    std::size_t num = 0;
    for (item const &each : items_) {
        if (num == iovecs.size()) {
            break;
        }
        iovecs[num++] = {const_cast<std::byte *>(each.data), each.left};
        nbytes += each.left;
    }
    return num;
}

void send_items::push_copy(std::vector<std::byte> &&copy) {
    item next{.copy = std::move(copy)};
    next.data = next.copy.data();
    next.left = next.copy.size();
    copied_bytes_ += next.left;
    items_.push_back(std::move(next));
}

void send_items::append(send_items &others) {
    std::ranges::move(others.items_, std::back_inserter(items_));
    others.items_.clear();
    copied_bytes_ += std::exchange(others.copied_bytes_, 0);
}

void send_items::consume(std::size_t nbytes, std::vector<std::byte> &spare) {
    while (nbytes > 0) {
        DIOMP_ASSERT(!items_.empty(), "no more is written than there was to write");
        item &front = items_.front();
        std::size_t const consumed = std::min(nbytes, front.left);
        front.data += consumed;
        front.left -= consumed;
        nbytes -= consumed;
        DIOMP_ASSERT(front.copy.empty() || copied_bytes_ >= consumed, "the sum counts every copy");
        copied_bytes_ -= front.copy.empty() ? 0 : consumed;
        if (front.left > 0) {
            return;
        }
        if (front.source_free != nullptr) {
            front.source_free->end();
        }
        if (front.copy.capacity() > spare.capacity()) {
            spare = std::move(front.copy);
            spare.clear();
        }
        items_.pop_front();
    }
    DIOMP_ASSERT(!items_.empty() || copied_bytes_ == 0, "the sum counts every copy");
}

void send_items::discard() {
    for (item const &each : items_) {
        if (each.source_free != nullptr) {
            each.source_free->end(OMPX_ERR_PEER);
        }
    }
    items_.clear();
    copied_bytes_ = 0;
}

/// Moves coalesced frames to the items, so that data that is not copied can follow them.
void send_queue::end_coalescing(std::vector<std::byte> &&next_buffer) {
    if (!coalesced_.empty()) {
        items_.push_copy(coalesced_.take(std::move(next_buffer)));
    }
}

void send_queue::append_uncopied(const void *data, std::size_t nbytes, completion *source_free) {
    end_coalescing({});
    if (source_free != nullptr) {
        source_free->begin();
    }
    items_.push(data, nbytes, source_free);
}

void send_queue::move_to(send_items &to, std::vector<std::byte> &next_buffer) {
    if (!coalesced_.empty()) {
        end_coalescing(std::move(next_buffer));
        next_buffer = {};
    }
    to.append(items_);
}

void send_queue::discard() {
    items_.discard();
    coalesced_.clear();
}

} // namespace diomp::transport::tcp
