// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/tcp/gathering.h"

#include <cstring>

namespace diomp::conduit::tcp {

// Inlined, gcc 12 takes the vector's growth for an overflow.
[[gnu::noinline]] void gathering::append(const void *bytes, std::size_t nbytes) {
    const auto *const begin = static_cast<const std::byte *>(bytes);
    bytes_.insert(bytes_.end(), begin, begin + nbytes);
}

bool gathering::extend_last_put(const frame &head, const void *data, std::size_t most_bytes) {
    if (bytes_.empty() || bytes_.size() != last_put_end_) {
        return false;
    }
    frame last;
    std::byte *const there = bytes_.data() + last_put_begin_;
    std::memcpy(&last, there, sizeof(last));
    if (last.address + last.nbytes != head.address || last.nbytes + head.nbytes > most_bytes) {
        return false;
    }
    last.nbytes += head.nbytes;
    std::memcpy(there, &last, sizeof(last));
    append(data, head.nbytes);
    last_put_end_ = bytes_.size();
    return true;
}

void gathering::append_put(const frame &head, const void *data, std::size_t most_bytes) {
    if (!extend_last_put(head, data, most_bytes)) {
        last_put_begin_ = bytes_.size();
        append(&head, sizeof(head));
        append(data, head.nbytes);
        last_put_end_ = bytes_.size();
    }
}

} // namespace diomp::conduit::tcp
