// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "api/internal/last_error.h"

#include "base/per_thread.h"
#include "diomp/process.h"

#include <atomic>

namespace diomp::api {
namespace {

struct last_error {
    std::string text;
    int status = OMPX_SUCCESS;
};

std::atomic<error_observer> g_observer{nullptr};

} // namespace

void observe_errors(error_observer observer) { g_observer.store(observer); }

void record_error(const char *function, const std::string &arguments, const error &failure,
                  const std::string &text) {
    if (error_observer const observer = g_observer.load(std::memory_order_relaxed)) {
        observer(function, arguments, failure);
    }
    per_thread<last_error>::get() = {text, failure.code()};
}

} // namespace diomp::api

extern "C" {

const char *ompx_last_error(void) noexcept {
    return diomp::per_thread<diomp::api::last_error>::get().text.c_str();
}

int ompx_last_error_status(void) noexcept {
    return diomp::per_thread<diomp::api::last_error>::get().status;
}

} // extern "C"
