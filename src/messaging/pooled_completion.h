// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The completion of one blocking operation. A conduit may still update it after the waiter has
// given up (timeout, lost peer), so it never lives on a stack: it is taken from a pool, and an
// abandoned one stays in the pool until the conduit has finished with it.
#pragma once

#include "messaging/engine.h"

#include <array>
#include <cstddef>
#include <memory>
#include <span>

namespace diomp::messaging {

/// Error of a failed completion; its message ends with `doing` ("waiting for ...").
status failure_of(const transport::completion &count, engine &engine, const std::string &doing);

/// Status of a finished completion. `describe` returns the end of the error message.
template <typename Describe>
status outcome_of(const transport::completion &count, engine &engine, Describe &&describe) {
    if (count.failure.load(std::memory_order_relaxed) == 0) [[likely]] {
        return {};
    }
    return failure_of(count, engine, describe());
}

/// One thread. Usually does not allocate.
class pooled_completion {
public:
    static constexpr std::size_t buffer_bytes = 64;

    pooled_completion();
    ~pooled_completion();
    pooled_completion(const pooled_completion &) = delete;
    pooled_completion &operator=(const pooled_completion &) = delete;

    [[nodiscard]] transport::completion &count() { return state_->count; }
    [[nodiscard]] bool is_done() const { return state_->count.is_done(); }
    /// A buffer that lives as long as the completion: a small get may still write to it after the
    /// waiter has given up.
    [[nodiscard]] std::span<std::byte, buffer_bytes> buffer() { return state_->buffer; }

    /// Waits until the completion is done. `describe` continues "timed out after 3 s ...".
    template <typename Describe>
    status wait(engine &engine, Describe &&describe) {
        if (!count().is_done()) {
            DIOMP_TRY(engine.wait_for_network([this] { return count().is_done(); }, describe));
        }
        return outcome_of(count(), engine, describe);
    }

private:
    friend class completion_pool;
    struct state {
        transport::completion count;
        alignas(8) std::array<std::byte, buffer_bytes> buffer{};
    };
    std::unique_ptr<state> state_;
};

} // namespace diomp::messaging
