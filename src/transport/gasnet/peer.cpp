// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/gasnet/peer.h"

#include <fmt/core.h>

#include <cstring>

namespace diomp::transport::gasnet {

epoch *peer::begin_put(std::size_t num_chunks, std::size_t nbytes) {
    std::lock_guard const guard(mutex_);
    return epochs_.begin_put(num_chunks, nbytes);
}

void peer::end_put(epoch *of) {
    std::lock_guard const guard(mutex_);
    epochs_.end_put(of);
}

void peer::flush(completion &done) {
    std::lock_guard const guard(mutex_);
    if (is_failed()) { // no acknowledgement would end it
        done.begin();
        done.end(OMPX_ERR_PEER);
        return;
    }
    epochs_.flush(done);
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

bool peer::is_awaited() { return has_unacknowledged() || unhandled_bytes() > 0; }

std::string peer::count_outstanding() const {
    return fmt::format(
        "{} get(s) of {} bytes, {} put(s) of at most {} bytes and {} bytes of messages",
        gets_.count(), gets_.bytes(), epochs_.num_unacknowledged(), epochs_.bytes(),
        unhandled_bytes());
}

void peer::end_all() {
    gets_.fail(OMPX_ERR_PEER);
    epochs_.fail(OMPX_ERR_PEER);
}

std::string peer::fail(const std::string &why) {
    std::string sentence;
    waiting.fail(OMPX_ERR_PEER, [&] { sentence = network_peer::fail(why); });
    return sentence;
}

std::string peer::describe_outstanding(bool is_silent) {
    std::lock_guard const guard(mutex_);
    bool const waits = gets_.count() > 0 || epochs_.has_flushes() || (is_silent && is_awaited());
    return waits ? count_outstanding() : "";
}

} // namespace diomp::transport::gasnet
