// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operations that are part of a context.
#pragma once

#include "api/internal/state.h"
#include "rma/context.h"
#include "rma/nonblocking_transfers.h"
#include "rma/rma.h"

#include <atomic>
#include <utility>

namespace diomp::api {

/// Keeps other calls from a context while one uses it.
class used_context {
public:
    explicit used_context(ompx_context &context) : context_(&context) {}
    used_context(used_context &&other) noexcept
        : context_(std::exchange(other.context_, nullptr)) {}
    used_context &operator=(used_context &&) = delete;
    used_context(const used_context &) = delete;
    used_context &operator=(const used_context &) = delete;
    ~used_context() {
        if (context_ != nullptr) {
            context_->is_in_use.store(false, std::memory_order_release);
        }
    }
    [[nodiscard]] ompx_context &operator*() const { return *context_; }

private:
    ompx_context *context_;
};

/// OMPX_ERR_ARG if the handle is invalid, OMPX_ERR_STATE while another thread uses the context.
inline result<used_context> use_context(runtime::runtime &running, ompx_context_t handle) {
    ompx_context *const found = running.transfers().nonblocking().contexts().find(handle);
    if (found == nullptr) {
        return error(OMPX_ERR_ARG,
                     handle == nullptr ? "the context is a null pointer"
                                       : "not a context, or freed already",
                     "create it with ompx_context_create");
    }
    if (found->is_in_use.exchange(true, std::memory_order_acquire)) {
        return error(OMPX_ERR_STATE, "another thread uses the context",
                     "create a context for each thread");
    }
    return used_context(*found);
}

/// Runs start(ompx_event_t *) -> status, whose operation becomes part of the context.
template <typename Start>
status start_in(runtime::runtime &running, ompx_context_t handle, Start &&start) {
    auto context = use_context(running, handle);
    DIOMP_TRY(context);
    ompx_event_t event = nullptr;
    DIOMP_TRY(start(&event));
    running.transfers().nonblocking().keep_in(*context.value(), event);
    return {};
}

} // namespace diomp::api
