// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The exception, and the one place where a status becomes one. The inline namespace keeps these
// names apart from those inside the runtime.
#ifndef DIOMP_ERROR_HPP
#define DIOMP_ERROR_HPP

#include "diomp.h"

#include <cstdio>
#include <stdexcept>
#include <string>

namespace diomp {
inline namespace v0 {

class error : public std::runtime_error {
public:
    error(int status, const std::string &text) : std::runtime_error(text), status_(status) {}
    [[nodiscard]] ompx_status status() const noexcept { return static_cast<ompx_status>(status_); }

private:
    int status_;
};

namespace detail {

[[noreturn]] inline void fail(int status, const std::string &text) {
#if defined(__cpp_exceptions)
    throw error(status, text);
#else
    std::fprintf(stderr, "diomp: rank %d: %s: %s\n", ompx_get_rank_num(),
                 ompx_status_string(status), text.c_str());
    ompx_abort(1);
#endif
}

/// The text of the call that has just failed on this thread.
[[noreturn]] inline void fail_last(int status) {
    const char *const text = ompx_last_error();
    fail(status, *text != '\0' ? text : ompx_status_string(status));
}

/// Passes on what is not negative.
inline int check(int status) {
    if (status < 0) [[unlikely]] {
        fail_last(status);
    }
    return status;
}

} // namespace detail

/// This process in the world, and the number of processes.
[[nodiscard]] inline int this_rank() { return detail::check(ompx_get_rank_num()); }
[[nodiscard]] inline int num_ranks() { return detail::check(ompx_get_num_ranks()); }

} // namespace v0
} // namespace diomp

#endif // DIOMP_ERROR_HPP
