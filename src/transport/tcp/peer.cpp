// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/tcp/peer.h"

#include "base/assert.h"
#include "transport/tcp/connection.h"

#include <fmt/core.h>

namespace diomp::transport::tcp {

std::uint64_t peer::send_put(connection &conn, const frame &head, const void *data,
                             completion &source_free, bool with_flush) {
    if (!with_flush && head.nbytes <= thread_coalescers::max_put_bytes &&
        coalescers_.are_needed()) {
        coalescers_.add(head, data, conn);
        return 0;
    }
    return conn.send_put(head, data, source_free, num_puts_, with_flush);
}

bool peer::begin_flush(completion &done, std::uint64_t &number) {
    std::lock_guard const guard(mutex_);
    number = num_puts_.load(std::memory_order_acquire);
    if (std::uint64_t const before = num_flushed_.load(std::memory_order_relaxed);
        before != number) {
        is_each_put_flushed_.store(number == before + 1, std::memory_order_relaxed);
        num_flushed_.store(number, std::memory_order_relaxed);
    }
    if (number == num_acknowledged_.load(std::memory_order_relaxed)) {
        return false;
    }
    DIOMP_ASSERT(number > num_acknowledged_.load(std::memory_order_relaxed),
                 "no more puts are acknowledged than have been sent");
    done.begin();
    if (is_failed()) { // no reply will come
        done.end(OMPX_ERR_PEER);
        return false;
    }
    DIOMP_ASSERT(pending_flushes_.empty() || pending_flushes_.back().number <= number,
                 "flushes wait in the order of their numbers");
    pending_flushes_.push_back({number, &done});
    if (num_flush_requested_ >= number) {
        return false;
    }
    num_flush_requested_ = number;
    return true;
}

void peer::note_flush_requested(std::uint64_t number) {
    std::lock_guard const guard(mutex_);
    num_flush_requested_ = std::max(num_flush_requested_, number);
}

void peer::end_flush(std::uint64_t number) {
    std::lock_guard const guard(mutex_);
    num_acknowledged_.store(std::max(number, num_acknowledged_.load(std::memory_order_relaxed)),
                            std::memory_order_release);
    while (!pending_flushes_.empty() && pending_flushes_.front().number <= number) {
        pending_flushes_.front().done->end();
        pending_flushes_.pop_front();
    }
}

get_id peer::begin_get(void *destination, std::size_t nbytes, completion &done) {
    done.begin();
    std::lock_guard const guard(mutex_);
    if (is_failed()) {
        done.end(OMPX_ERR_PEER);
        return {};
    }
    return gets_.begin(destination, nbytes, done);
}

std::byte *peer::destination_of(get_id id, std::size_t nbytes) {
    std::lock_guard const guard(mutex_);
    auto const *const get = gets_.find(id);
    return get != nullptr && get->left == nbytes ? get->destination : nullptr;
}

void peer::end_get(get_id id) {
    std::lock_guard const guard(mutex_);
    if (gets_.find(id) != nullptr) {
        gets_.finish(id);
    }
}

std::string peer::count_outstanding() const {
    return fmt::format("{} get(s) of {} bytes, {} put(s) and {} bytes of messages", gets_.count(),
                       gets_.bytes(), num_puts_.load() - num_acknowledged_.load(),
                       unhandled_bytes());
}

void peer::end_all() {
    gets_.fail(OMPX_ERR_PEER);
    for (pending_flush const &each : pending_flushes_) {
        each.done->end(OMPX_ERR_PEER);
    }
    pending_flushes_.clear();
}

std::string peer::describe_outstanding(bool is_silent) {
    std::lock_guard const guard(mutex_);
    bool const waits =
        gets_.count() > 0 || !pending_flushes_.empty() || (is_silent && is_awaited());
    return waits ? count_outstanding() : "";
}

} // namespace diomp::transport::tcp
