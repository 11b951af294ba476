// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operations that are part of a context.
#pragma once

#include "api/internal/state.h"
#include "rma/context.h"
#include "rma/nonblocking_transfers.h"
#include "rma/rma.h"

namespace diomp::api {

inline status check_context(ompx_context_t context) {
    return context != nullptr ? status()
                              : error(OMPX_ERR_ARG, "the context is a null pointer",
                                      "create it with ompx_context_create");
}

/// Runs start(ompx_event_t *) -> status, whose operation becomes part of the context.
template <typename Start>
status start_in(runtime::runtime &running, ompx_context_t context, Start &&start) {
    DIOMP_TRY(check_context(context));
    ompx_event_t event = nullptr;
    DIOMP_TRY(start(&event));
    running.transfers().nonblocking().keep_in(*context, event);
    return {};
}

} // namespace diomp::api
