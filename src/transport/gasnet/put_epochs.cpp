// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/gasnet/put_epochs.h"

#include <algorithm>
#include <utility>

namespace diomp::transport::gasnet {

epoch *put_epochs::begin_put(std::size_t num_chunks, std::size_t nbytes) {
    num_chunks_.fetch_add(num_chunks, std::memory_order_relaxed);
    open_->unacknowledged += num_chunks;
    open_->bytes += nbytes;
    return open_.get();
}

void put_epochs::end_put(epoch *of) {
    num_chunks_.fetch_sub(1, std::memory_order_relaxed);
    if (--of->unacknowledged > 0 || !of->is_closed) {
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

std::unique_ptr<epoch> put_epochs::next() {
    if (spare_.empty()) {
        return std::make_unique<epoch>();
    }
    std::unique_ptr<epoch> next = std::move(spare_.back());
    spare_.pop_back();
    return next;
}

void put_epochs::flush(completion &done) {
    if (open_->unacknowledged > 0) {
        open_->is_closed = true;
        closed_.push_back(std::exchange(open_, next()));
    } else {
        open_->bytes = 0;
    }
    for (auto const &each : closed_) {
        done.begin();
        each->waiting.push_back(&done);
    }
}

void put_epochs::fail(int code) {
    for (auto const &each : closed_) {
        for (completion *const done : each->waiting) {
            done->end(code);
        }
        each->waiting.clear();
    }
}

std::uint64_t put_epochs::bytes() const {
    std::uint64_t sum = open_->bytes;
    for (auto const &each : closed_) {
        sum += each->bytes;
    }
    return sum;
}

} // namespace diomp::transport::gasnet
