// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Counts the puts to a peer per epoch, since acknowledgements arrive in any order. An epoch
// contains the puts between two flushes; it is complete when each of them is acknowledged.
#pragma once

#include "transport/types.h"

#include <memory>
#include <vector>

namespace diomp::transport::gasnet {

/// Acknowledgements carry its address.
struct epoch {
    std::uint64_t unacknowledged = 0; ///< chunks of puts
    std::uint64_t bytes = 0;
    bool is_closed = false;
    std::vector<completion *> waiting;
};

/// Guarded by its owner's lock, except functions that say otherwise.
class put_epochs {
public:
    /// Adds a put to the open epoch, which is returned for the acknowledgement of each chunk.
    epoch *begin_put(std::size_t num_chunks, std::size_t nbytes);
    /// A chunk has been acknowledged.
    void end_put(epoch *of);
    /// `done` counts until all puts so far are acknowledged.
    void flush(completion &done);
    /// Ends all flushes with this code. The epochs are kept: late acknowledgements may refer to
    /// them.
    void fail(int code);
    [[nodiscard]] bool has_flushes() const { return !closed_.empty(); }
    /// At most so many bytes are not acknowledged.
    [[nodiscard]] std::uint64_t bytes() const;
    /// Chunks of puts. Any thread.
    [[nodiscard]] std::uint64_t num_unacknowledged() const {
        return num_chunks_.load(std::memory_order_relaxed);
    }

private:
    [[nodiscard]] std::unique_ptr<epoch> next();

    std::unique_ptr<epoch> open_ = std::make_unique<epoch>();
    std::vector<std::unique_ptr<epoch>> closed_; ///< with puts that are not acknowledged
    std::vector<std::unique_ptr<epoch>> spare_;
    std::atomic<std::uint64_t> num_chunks_{0};
};

} // namespace diomp::transport::gasnet
