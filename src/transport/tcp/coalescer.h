// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Coalescing of small frames that are sent together.
#pragma once

#include "transport/tcp/wire.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace diomp::transport::tcp {

/// A buffer of frames with their bodies. Puts to adjacent addresses, as of a loop over an array,
/// are merged into one put.
class coalescer {
public:
    [[nodiscard]] bool empty() const { return bytes_.empty(); }
    [[nodiscard]] std::size_t size() const { return bytes_.size(); }

    void append(const void *bytes, std::size_t nbytes);
    /// Appends a put with its data. A merged put has at most `max_put_bytes`.
    void append_put(const frame &head, const void *data, std::size_t max_put_bytes);
    void append(const coalescer &others) { append(others.bytes_.data(), others.bytes_.size()); }

    /// Returns the buffer and goes on with `next`, which is empty.
    [[nodiscard]] std::vector<std::byte> take(std::vector<std::byte> &&next) {
        last_put_end_ = 0;
        return std::exchange(bytes_, std::move(next));
    }
    void clear() {
        last_put_end_ = 0;
        bytes_.clear();
    }

private:
    [[nodiscard]] bool extend_last_put(const frame &head, const void *data,
                                       std::size_t max_put_bytes);

    std::vector<std::byte> bytes_;
    std::size_t last_put_begin_ = 0;
    std::size_t last_put_end_ = 0; ///< 0: none
};

} // namespace diomp::transport::tcp
