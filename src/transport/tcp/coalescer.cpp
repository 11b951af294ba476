// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/tcp/coalescer.h"

#include "base/assert.h"

#include <cstring>

namespace diomp::transport::tcp {

// Not inlined: gcc 12 would warn of an overflow in the vector's growth.
[[gnu::noinline]] void coalescer::append(const void *bytes, std::size_t nbytes) {
    const auto *const begin = static_cast<const std::byte *>(bytes);
    bytes_.insert(bytes_.end(), begin, begin + nbytes);
}

bool coalescer::extend_last_put(const frame &head, const void *data, std::size_t max_put_bytes) {
    if (bytes_.empty() || bytes_.size() != last_put_end_) {
        return false;
    }
    DIOMP_ASSERT(last_put_begin_ + sizeof(frame) <= last_put_end_, "the last put has its header");
    frame last;
    std::byte *const last_frame = bytes_.data() + last_put_begin_;
    std::memcpy(&last, last_frame, sizeof(last));
    if (last.address + last.nbytes != head.address || last.nbytes + head.nbytes > max_put_bytes) {
        return false;
    }
    last.nbytes += head.nbytes;
    std::memcpy(last_frame, &last, sizeof(last));
    append(data, head.nbytes);
    last_put_end_ = bytes_.size();
    return true;
}

void coalescer::append_put(const frame &head, const void *data, std::size_t max_put_bytes) {
    if (!extend_last_put(head, data, max_put_bytes)) {
        last_put_begin_ = bytes_.size();
        append(&head, sizeof(head));
        append(data, head.nbytes);
        last_put_end_ = bytes_.size();
    }
}

} // namespace diomp::transport::tcp
