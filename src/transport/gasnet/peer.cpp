// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/gasnet/peer.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

namespace diomp::transport::gasnet {

epoch *peer::begin_put(std::size_t num_chunks, std::size_t nbytes) {
    num_puts_.fetch_add(num_chunks, std::memory_order_relaxed);
    std::lock_guard const guard(mutex_);
    open_->unacknowledged += num_chunks;
    open_->bytes += nbytes;
    return open_.get();
}

void peer::end_put(epoch *of) {
    num_puts_.fetch_sub(1, std::memory_order_relaxed);
    std::lock_guard const guard(mutex_);
    if (--of->unacknowledged > 0 || !of->is_closed || is_failed()) {
        return;
    }
    for (completion *const each : of->waiting) {
        each->end();
    }
    auto const found = std::ranges::find(closed_, of, &std::unique_ptr<epoch>::get);
    of->waiting.clear();
    of->bytes = 0;
    of->is_closed = false;
    spare_.push_back(std::move(*found));
    closed_.erase(found);
}

std::unique_ptr<epoch> peer::next_epoch() {
    if (spare_.empty()) {
        return std::make_unique<epoch>();
    }
    std::unique_ptr<epoch> next = std::move(spare_.back());
    spare_.pop_back();
    return next;
}

void peer::flush(completion &done) {
    std::lock_guard const guard(mutex_);
    if (is_failed()) { // no acknowledgement would end it
        done.begin();
        done.end(OMPX_ERR_PEER);
        return;
    }
    if (open_->unacknowledged > 0) {
        open_->is_closed = true;
        closed_.push_back(std::exchange(open_, next_epoch()));
    } else {
        open_->bytes = 0;
    }
    for (auto const &each : closed_) {
        done.begin();
        each->waiting.push_back(&done);
    }
}

get_id peer::begin_get(void *destination, std::size_t nbytes, completion &done) {
    done.begin();
    std::lock_guard const guard(mutex_);
    if (is_failed()) { // no reply would end it
        done.end(OMPX_ERR_PEER);
        return {};
    }
    return gets_.begin(destination, nbytes, done);
}

void peer::store_chunk(get_id id, std::size_t offset, const void *bytes, std::size_t nbytes) {
    std::lock_guard const guard(mutex_);
    auto *const get = gets_.find(id);
    if (get == nullptr) {
        return;
    }
    std::memcpy(get->destination + offset, bytes, nbytes);
    get->left -= nbytes;
    if (get->left == 0) {
        gets_.finish(id);
    }
}

void peer::end_get(get_id id) {
    std::lock_guard const guard(mutex_);
    if (gets_.find(id) != nullptr) {
        gets_.finish(id);
    }
}

bool peer::add_to_backlog(pending_transfer &&transfer) {
    std::lock_guard const guard(backlog_mutex_);
    if (is_failed()) {
        return false;
    }
    copied_bytes_.fetch_add(transfer.copy.size(), std::memory_order_relaxed);
    backlog_.push_back(std::move(transfer));
    num_waiting_.fetch_add(1, std::memory_order_release);
    return true;
}

void peer::finish_front(int code) {
    pending_transfer const &front = backlog_.front();
    if (front.source_free != nullptr) {
        front.source_free->end(code);
    }
    copied_bytes_.fetch_sub(front.copy.size(), std::memory_order_relaxed);
    num_waiting_.fetch_sub(1, std::memory_order_release);
    backlog_.pop_front();
}

bool peer::is_awaited() { return has_unacknowledged() || unhandled_bytes() > 0; }

std::string peer::count_outstanding() const {
    std::uint64_t put_bytes = open_->bytes;
    for (auto const &each : closed_) {
        put_bytes += each->bytes;
    }
    return fmt::format(
        "{} get(s) of {} bytes, {} put(s) of at most {} bytes and {} bytes of messages",
        gets_.count(), gets_.bytes(), num_puts_.load(), put_bytes, unhandled_bytes());
}

void peer::end_all() {
    gets_.fail(OMPX_ERR_PEER);
    // The epochs are kept: late acknowledgements may refer to them.
    for (auto const &each : closed_) {
        for (completion *const done : each->waiting) {
            done->end(OMPX_ERR_PEER);
        }
        each->waiting.clear();
    }
}

std::string peer::fail(const std::string &why) {
    std::lock_guard const guard(backlog_mutex_);
    std::string sentence = network_peer::fail(why);
    while (!backlog_.empty()) {
        finish_front(OMPX_ERR_PEER);
    }
    return sentence;
}

std::string peer::describe_outstanding(bool is_silent) {
    std::lock_guard const guard(mutex_);
    bool const waits = gets_.count() > 0 || !closed_.empty() || (is_silent && is_awaited());
    return waits ? count_outstanding() : "";
}

} // namespace diomp::transport::gasnet
