// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/ucx/peer.h"

#include <fmt/core.h>

#include <algorithm>

namespace diomp::transport::ucx {

result<endpoint *> peer::endpoint_of(worker &owner) {
    auto &slot = endpoints_[owner.index];
    if (slot == nullptr) [[unlikely]] {
        auto made = std::make_unique<endpoint>(owner, *this);
        DIOMP_TRY(made->connect());
        slot = std::move(made);
    }
    return slot.get();
}

void peer::add_flush(const endpoint &from, completion &done) {
    done.begin();
    std::lock_guard const guard(mutex_);
    if (is_failed()) { // no reply will come
        done.end(OMPX_ERR_PEER);
        return;
    }
    flushes_.push_back({from.owner.index, from.epoch.number(), false, &done, from.epoch.num_puts(),
                        from.epoch.put_bytes()});
}

bool peer::join_flush(std::uint16_t endpoint, completion &done) {
    std::lock_guard const guard(mutex_);
    auto const newest = std::find_if(flushes_.rbegin(), flushes_.rend(),
                                     [&](auto const &flush) { return flush.endpoint == endpoint; });
    if (newest == flushes_.rend()) {
        return false;
    }
    done.begin();
    flushes_.push_back({endpoint, newest->epoch, newest->acknowledged, &done, 0, 0});
    return true;
}

void peer::acknowledge(std::uint16_t endpoint, std::uint32_t epoch) {
    std::lock_guard const guard(mutex_);
    for (auto &flush : flushes_) {
        if (flush.endpoint == endpoint && flush.epoch == epoch) {
            flush.acknowledged = true;
        }
    }
    // A flush covers the epochs before its own, so it is done when they all are.
    bool found_unacknowledged = false;
    std::erase_if(flushes_, [&](const pending_flush &flush) {
        if (flush.endpoint != endpoint || found_unacknowledged) {
            return false;
        }
        if (!flush.acknowledged) {
            found_unacknowledged = true;
            return false;
        }
        flush.done->end();
        return true;
    });
}

std::uint64_t peer::add_get(void *destination, std::size_t nbytes, memory_kind memory,
                            completion &done) {
    done.begin();
    num_gets_.fetch_add(1, std::memory_order_relaxed);
    std::lock_guard const guard(mutex_);
    if (is_failed()) { // no reply will come
        done.end(OMPX_ERR_PEER);
        num_gets_.fetch_sub(1, std::memory_order_relaxed);
        return ~std::uint64_t{0};
    }
    std::uint64_t id = gets_.size();
    if (free_ids_.empty()) {
        gets_.emplace_back();
    } else {
        id = free_ids_.back();
        free_ids_.pop_back();
    }
    gets_[id] = {static_cast<std::byte *>(destination), nbytes, nbytes, &done, memory};
    return id;
}

pending_get peer::find_get(std::uint64_t id) {
    std::lock_guard const guard(mutex_);
    return id < gets_.size() ? gets_[id] : pending_get{};
}

void peer::end_get(std::uint64_t id, std::size_t nbytes, int code) {
    std::lock_guard const guard(mutex_);
    if (id < gets_.size() && gets_[id].done != nullptr) {
        gets_[id].num_left -= std::min(nbytes, gets_[id].num_left);
        if (code == 0 && gets_[id].num_left > 0) {
            return;
        }
        gets_[id].done->end(code);
        gets_[id] = {};
        free_ids_.push_back(id);
        num_gets_.fetch_sub(1, std::memory_order_relaxed);
    }
}

std::string peer::count_outstanding() const {
    std::size_t gets = 0;
    std::size_t get_bytes = 0;
    for (auto const &get : gets_) {
        if (get.done != nullptr) {
            ++gets;
            get_bytes += get.nbytes;
        }
    }
    std::uint64_t puts = 0;
    std::uint64_t put_bytes = 0;
    for (auto const &flush : flushes_) {
        puts += flush.num_puts;
        put_bytes += flush.put_bytes;
    }
    return fmt::format("{} get(s) of {} bytes, {} flush(es) of {} put(s) of {} bytes, {} large "
                       "transfer(s) and {} bytes of messages",
                       gets, get_bytes, flushes_.size(), puts, put_bytes,
                       num_large_transfers.load(), unhandled_bytes());
}

void peer::end_all() {
    for (auto &get : gets_) {
        if (get.done != nullptr) {
            get.done->end(OMPX_ERR_PEER);
            get = {};
        }
    }
    for (auto &flush : flushes_) {
        flush.done->end(OMPX_ERR_PEER);
    }
    flushes_.clear();
}

std::string peer::describe_outstanding(bool is_silent) {
    std::lock_guard const guard(mutex_);
    bool const waits = num_gets_.load(std::memory_order_relaxed) > 0 ||
                       num_large_transfers.load(std::memory_order_relaxed) > 0 ||
                       !flushes_.empty() || (is_silent && unhandled_bytes() > 0);
    return waits ? count_outstanding() : "";
}

bool peer::is_awaited() {
    if (num_gets_.load(std::memory_order_relaxed) > 0 ||
        num_large_transfers.load(std::memory_order_relaxed) > 0 || unhandled_bytes() > 0) {
        return true;
    }
    std::lock_guard const guard(mutex_);
    return !flushes_.empty();
}

void peer::set_path(const std::string &path) {
    std::lock_guard const guard(mutex_);
    path_ = path;
}

std::string peer::path() {
    std::lock_guard const guard(mutex_);
    return path_;
}

} // namespace diomp::transport::ucx
