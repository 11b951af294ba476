// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The exception type, and the conversion of a status into an exception. The inline namespace keeps
// these names distinct from names in the runtime.
#ifndef DIOMP_ERROR_HPP
#define DIOMP_ERROR_HPP

#include "diomp.h"

#include <cstddef>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <string>

namespace diomp {
inline namespace v1 {

/// Thrown if a call fails; what() is the text of ompx_last_error().
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
    std::fprintf(stderr, "diomp: rank %d: %s: %s\n", ompx_rank_num(), ompx_status_string(status),
                 text.c_str());
    ompx_abort(1);
#endif
}

/// Throws an error with the text of this thread's last failed call.
[[noreturn]] inline void fail_last(int status = ompx_last_error_status()) {
    const char *const text = ompx_last_error();
    fail(status, *text != '\0' ? text : ompx_status_string(status));
}

/// The bytes of `count` elements; throws OMPX_ERR_ARG if there are too many for a size.
template <typename T>
std::size_t bytes_of(const char *function, std::size_t count) {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) {
        fail(OMPX_ERR_ARG,
             std::string(function) + ": the number of elements overflows a size in bytes");
    }
    return count * sizeof(T);
}

/// Returns a status that is not negative; throws an error for others.
inline int check(int status) {
    if (status < 0) [[unlikely]] {
        fail_last(status);
    }
    return status;
}

} // namespace detail

/// Chooses for the calling thread what an error does, until the object is destroyed: with
/// OMPX_ERRORS_RETURN, functions throw. Destroy in the thread and in the reverse order of
/// construction.
class errors_guard {
public:
    explicit errors_guard(ompx_errors_t mode = OMPX_ERRORS_RETURN)
        : before_(detail::check(ompx_set_errors(mode, OMPX_SCOPE_THREAD))) {}
    ~errors_guard() { ompx_set_errors(static_cast<ompx_errors_t>(before_), OMPX_SCOPE_THREAD); }
    errors_guard(const errors_guard &) = delete;
    errors_guard &operator=(const errors_guard &) = delete;

private:
    int before_;
};

/// This process's rank in the world, and the number of ranks. Any thread; do not block.
[[nodiscard]] inline int this_rank() { return detail::check(ompx_rank_num()); }
[[nodiscard]] inline int num_ranks() { return detail::check(ompx_num_ranks()); }

} // namespace v1
} // namespace diomp

#endif // DIOMP_ERROR_HPP
