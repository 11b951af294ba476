// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// result<T>: a value, or an error with a code and the sentence for the user. Success costs one null
// pointer.
#pragma once

#include "diomp/status.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace diomp {

/// An error, written by the function that detects it. `remedy` says what the user can do.
struct error_detail {
    ompx_status code = OMPX_ERR_SYSTEM;
    std::string message;
    std::string remedy;
};

class [[nodiscard]] error {
public:
    error(ompx_status code, std::string message, std::string remedy = {})
        : detail_(std::make_unique<error_detail>(
              error_detail{code, std::move(message), std::move(remedy)})) {}

    [[nodiscard]] ompx_status code() const { return detail_->code; }
    [[nodiscard]] const std::string &message() const { return detail_->message; }
    [[nodiscard]] const std::string &remedy() const { return detail_->remedy; }

private:
    template <typename T>
    friend class result;
    error() = default; ///< no error: the state of a successful result

    std::unique_ptr<error_detail> detail_;
};

/// An error about a failed system call: "<what>: <strerror(errno_value)>".
error system_error(std::string what, int errno_value, std::string remedy = {});

template <typename T>
class [[nodiscard]] result {
public:
    result(T value) : value_(std::move(value)) {}
    result(error failure) : error_(std::move(failure)) {}

    [[nodiscard]] bool ok() const { return value_.has_value(); }
    explicit operator bool() const { return ok(); }
    [[nodiscard]] T &value() { return *value_; }
    [[nodiscard]] const T &value() const { return *value_; }
    [[nodiscard]] T &&take() { return std::move(*value_); }
    [[nodiscard]] const error &failure() const { return error_; }
    [[nodiscard]] error &&take_failure() { return std::move(error_); }

private:
    std::optional<T> value_;
    error error_;
};

template <>
class [[nodiscard]] result<void> {
public:
    result() = default;
    result(error failure) : error_(std::move(failure)) {}

    [[nodiscard]] bool ok() const { return error_.detail_ == nullptr; }
    explicit operator bool() const { return ok(); }
    [[nodiscard]] const error &failure() const { return error_; }
    [[nodiscard]] error &&take_failure() { return std::move(error_); }

private:
    error error_;
};

using status = result<void>;

} // namespace diomp

/// Returns the error from the calling function if there is one.
#define DIOMP_TRY(expression)                                                                      \
    do {                                                                                           \
        auto &&diomp_try_ = (expression);                                                          \
        if (!diomp_try_.ok()) {                                                                    \
            return diomp_try_.take_failure();                                                      \
        }                                                                                          \
    } while (false)
