// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Waits for and tests of a local word that puts, signals or atomics change, and progress.
#include "diomp/wait.h"

#include "api/internal/words.h"
#include "diomp/transfer.h"
#include "messaging/engine.h"

#include <cstring>

using namespace diomp;
using api::g_fast;

namespace {

template <typename T>
status wait_for_one(runtime::runtime &running, const void *variable, ompx_cmp_t cmp,
                    const void *value, void *result) {
    auto const *cell = static_cast<const T *>(variable);
    T wanted;
    std::memcpy(&wanted, value, sizeof(wanted));
    api::comparison<T> const compared(cmp, wanted);
    T found;
    auto const ready = [&] {
        found = __atomic_load_n(cell, __ATOMIC_ACQUIRE);
        return compared.holds(found);
    };
    auto const waiting = [&] {
        return fmt::format("waiting for {} {} {} (it is {})", variable, api::sign_of(cmp), wanted,
                           __atomic_load_n(cell, __ATOMIC_RELAXED));
    };
    DIOMP_TRY(api::wait_for_words(running, ready, waiting));
    if (result != nullptr) {
        std::memcpy(result, &found, sizeof(found));
    }
    return {};
}

status wait_for_word(runtime::runtime &running, const void *variable, ompx_type_t type,
                     ompx_cmp_t cmp, const void *value, void *result) {
    DIOMP_TRY(api::check_pointer(variable, "variable"));
    DIOMP_TRY(api::check_pointer(value, "value"));
    DIOMP_TRY(api::check_word(variable, type, cmp));
    return api::with_integer(type, status(), [&](auto of) {
        return wait_for_one<decltype(of)>(running, variable, cmp, value, result);
    });
}

std::string describe_signal(const std::uint64_t *signal, ompx_cmp_t cmp, std::uint64_t value) {
    return fmt::format("signal={}, cmp={}, value={}", fmt::ptr(signal), diomp::comparison_name(cmp),
                       value);
}

int wait_for_signal(const char *function, const void *site, const std::uint64_t *signal,
                    ompx_cmp_t cmp, std::uint64_t value, std::uint64_t *result) {
    return api::call(
        function, site, [&] { return describe_signal(signal, cmp, value); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(api::check_pointer(signal, "signal"));
            DIOMP_TRY(api::check_word(signal, OMPX_UINT64, cmp));
            return wait_for_one<std::uint64_t>(running, signal, cmp, &value, result);
        });
}

bool test_word(const void *variable, ompx_type_t type, ompx_cmp_t cmp, const void *value) {
    return api::with_integer(type, false, [&](auto of) {
        using word = decltype(of);
        word wanted;
        std::memcpy(&wanted, value, sizeof(wanted));
        return api::comparison<word>(cmp, wanted)
            .holds(__atomic_load_n(static_cast<const word *>(variable), __ATOMIC_ACQUIRE));
    });
}

/// Whether the comparison holds. Returns 1, 0 or a negative status.
[[gnu::noinline]] int test_word_slow_path(const char *function, const void *site,
                                          const void *variable, ompx_type_t type, ompx_cmp_t cmp,
                                          const void *value) noexcept {
    bool found = false;
    int const outcome = api::call(
        function, site, [&] { return api::describe_word(variable, type, cmp); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(api::check_pointer(variable, "variable"));
            DIOMP_TRY(api::check_pointer(value, "value"));
            DIOMP_TRY(api::check_word(variable, type, cmp));
            found = test_word(variable, type, cmp, value);
            if (!found && !g_fast.fence_orders_only.load(std::memory_order_relaxed)) {
                running.connection().engine().poll();
                found = test_word(variable, type, cmp, value);
            }
            return {};
        });
    return outcome == OMPX_SUCCESS ? static_cast<int>(found) : outcome;
}

} // namespace

extern "C" {

int ompx_progress(void) noexcept {
    return api::call(
        "ompx_progress", DIOMP_SITE, [] { return std::string(); },
        [](runtime::runtime &running, api::call_stats &) -> status {
            running.connection().engine().poll();
            return {};
        });
}

int ompx_signal_wait(const uint64_t *signal, ompx_cmp_t cmp, uint64_t value) noexcept {
    return wait_for_signal("ompx_signal_wait", DIOMP_SITE, signal, cmp, value, nullptr);
}

int ompx_signal_wait_fetch(const uint64_t *signal, ompx_cmp_t cmp, uint64_t value,
                           uint64_t *result) noexcept {
    return wait_for_signal("ompx_signal_wait_fetch", DIOMP_SITE, signal, cmp, value, result);
}

int ompx_signal_test(const uint64_t *signal, ompx_cmp_t cmp, uint64_t value) noexcept {
    if (g_fast.fence_orders_only.load(std::memory_order_relaxed) && signal != nullptr &&
        api::is_comparison(cmp) && api::is_aligned(signal, sizeof(*signal))) [[likely]] {
        return static_cast<int>(api::comparison<std::uint64_t>(cmp, value)
                                    .holds(__atomic_load_n(signal, __ATOMIC_ACQUIRE)));
    }
    return test_word_slow_path("ompx_signal_test", DIOMP_SITE, signal, OMPX_UINT64, cmp, &value);
}

int ompx_wait_until(const void *variable, ompx_type_t type, ompx_cmp_t cmp,
                    const void *value) noexcept {
    return api::call(
        "ompx_wait_until", DIOMP_SITE, [&] { return api::describe_word(variable, type, cmp); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            return wait_for_word(running, variable, type, cmp, value, nullptr);
        });
}

int ompx_wait_until_fetch(const void *variable, ompx_type_t type, ompx_cmp_t cmp, const void *value,
                          void *result) noexcept {
    return api::call(
        "ompx_wait_until_fetch", DIOMP_SITE,
        [&] { return api::describe_word(variable, type, cmp); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            return wait_for_word(running, variable, type, cmp, value, result);
        });
}

int ompx_test_until(const void *variable, ompx_type_t type, ompx_cmp_t cmp,
                    const void *value) noexcept {
    return test_word_slow_path("ompx_test_until", DIOMP_SITE, variable, type, cmp, value);
}

} // extern "C"
