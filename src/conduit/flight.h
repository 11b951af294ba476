// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The count of one blocking operation. A conduit may count down after the waiter has given up
// (timeout, lost peer), so the count never lies on a stack: it is taken from a pool, and one that
// is given up stays in the pool until the conduit is through with it.
#pragma once

#include "conduit/engine.h"

#include <array>
#include <cstddef>
#include <memory>
#include <span>

namespace diomp::conduit {

/// Of a finished count that is no success: an error that ends with `doing` ("waiting for ...").
status failure_of(const completion &count, const engine &engine, const std::string &doing);

/// The outcome of a finished count. `describe` gives the end of an error, if it is one.
template <typename Describe>
status outcome_of(const completion &count, const engine &engine, Describe &&describe) {
    if (count.failure.load(std::memory_order_relaxed) == 0) [[likely]] {
        return {};
    }
    return failure_of(count, engine, describe());
}

/// One thread. Costs no allocation as a rule.
class flight {
public:
    static constexpr std::size_t buffer_bytes = 64;

    flight();
    ~flight();
    flight(const flight &) = delete;
    flight &operator=(const flight &) = delete;

    [[nodiscard]] completion &count() { return state_->count; }
    [[nodiscard]] bool is_done() const { return state_->count.is_done(); }
    /// Bytes that live as long as the count: where a small get may land although nobody waits for
    /// it any more.
    [[nodiscard]] std::span<std::byte, buffer_bytes> buffer() { return state_->buffer; }

    /// Waits until the count is done. `describe` continues "timed out after 3 s ...".
    template <typename Describe>
    status wait(engine &engine, Describe &&describe) {
        if (!count().is_done()) {
            DIOMP_TRY(engine.wait_for_network([this] { return count().is_done(); }, describe));
        }
        return outcome_of(count(), engine, describe);
    }

private:
    friend class flight_pool;
    struct state {
        completion count;
        alignas(8) std::array<std::byte, buffer_bytes> buffer{};
    };
    std::unique_ptr<state> state_;
};

} // namespace diomp::conduit
