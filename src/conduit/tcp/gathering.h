// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Small frames that leave together.
#pragma once

#include "base/cpu.h"
#include "base/short_mutex.h"
#include "base/thread_place.h"
#include "conduit/tcp/wire.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace diomp::conduit::tcp {

/// Frames with their bodies, one behind the other. Puts to adjacent places, as of a loop over an
/// array, become one.
class gathering {
public:
    [[nodiscard]] bool empty() const { return bytes_.empty(); }
    [[nodiscard]] std::size_t size() const { return bytes_.size(); }

    void append(const void *bytes, std::size_t nbytes);
    /// A put with its data, of at most `most_bytes` together with those before it.
    void append_put(const frame &head, const void *data, std::size_t most_bytes);
    void append(const gathering &others) { append(others.bytes_.data(), others.bytes_.size()); }

    /// What has gathered; the next goes to `next`, which is empty.
    [[nodiscard]] std::vector<std::byte> take(std::vector<std::byte> &&next) {
        last_put_end_ = 0;
        return std::exchange(bytes_, std::move(next));
    }
    void clear() {
        last_put_end_ = 0;
        bytes_.clear();
    }

private:
    [[nodiscard]] bool extend_last_put(const frame &head, const void *data, std::size_t most_bytes);

    std::vector<std::byte> bytes_;
    std::size_t last_put_begin_ = 0;
    std::size_t last_put_end_ = 0; ///< 0: none
};

/// Puts of one thread, or of a few, before they have a place in a connection's row: threads that
/// put side by side do not meet there at every put.
struct alignas(cache_line_bytes) put_nest {
    short_mutex mutex;
    gathering puts;
    std::uint64_t num_puts = 0;
    std::atomic<std::uint64_t> *counter = nullptr; ///< of puts in the row
};

struct put_nests {
    static constexpr std::size_t num = 8;

    /// The calling thread's.
    [[nodiscard]] put_nest &own() { return all[thread_place<num>()]; }

    std::array<put_nest, num> all;
};

} // namespace diomp::conduit::tcp
