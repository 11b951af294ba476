// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "api/internal/error_mode.h"

#include "api/internal/state.h"
#include "diomp/process.h"

#include <atomic>
#include <utility>

namespace diomp::api {
namespace {

std::atomic<error_policy> g_library_policy{error_policy::abort};
constinit thread_local ompx_errors_t t_mode = OMPX_ERRORS_INHERIT;

constexpr ompx_errors_t mode_of(error_policy policy) {
    return policy == error_policy::abort ? OMPX_ERRORS_ABORT : OMPX_ERRORS_RETURN;
}
constexpr error_policy policy_of(ompx_errors_t mode) {
    return mode == OMPX_ERRORS_ABORT ? error_policy::abort : error_policy::return_status;
}

bool is_mode(ompx_errors_t mode, ompx_scope_t scope) {
    return mode == OMPX_ERRORS_ABORT || mode == OMPX_ERRORS_RETURN ||
           (mode == OMPX_ERRORS_INHERIT && scope == OMPX_SCOPE_THREAD);
}

int report_misuse(ompx_errors_t mode, ompx_scope_t scope) {
    bool const is_scope = scope == OMPX_SCOPE_THREAD || scope == OMPX_SCOPE_LIBRARY;
    return fail("ompx_set_errors",
                fmt::format("mode={}, scope={}", static_cast<int>(mode), static_cast<int>(scope)),
                {OMPX_ERR_ARG, is_scope ? "not a mode of this scope" : "unknown scope",
                 is_scope ? "pass OMPX_ERRORS_ABORT or _RETURN, for a thread also _INHERIT"
                          : "pass OMPX_SCOPE_THREAD or OMPX_SCOPE_LIBRARY"});
}

ompx_errors_t exchange_library_mode(ompx_errors_t mode) {
    auto const before = mode_of(g_library_policy.exchange(policy_of(mode)));
    runtime_access const here("ompx_set_errors");
    if (here.running() != nullptr) {
        here.running()->connection().set_errors(policy_of(mode));
    }
    return before;
}

} // namespace

void set_library_errors(error_policy policy) { g_library_policy.store(policy); }

error_policy errors_in_effect() {
    return t_mode == OMPX_ERRORS_INHERIT ? g_library_policy.load() : policy_of(t_mode);
}

} // namespace diomp::api

extern "C" {

int ompx_set_errors(ompx_errors_t mode, ompx_scope_t scope) noexcept {
    using namespace diomp::api;
    if (scope == OMPX_SCOPE_LIBRARY && is_mode(mode, scope)) {
        return exchange_library_mode(mode);
    }
    if (scope != OMPX_SCOPE_THREAD || !is_mode(mode, scope)) {
        return report_misuse(mode, scope);
    }
    return std::exchange(t_mode, mode);
}

int ompx_errors_mode(void) noexcept { return diomp::api::mode_of(diomp::api::errors_in_effect()); }

} // extern "C"
