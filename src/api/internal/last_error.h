// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is kept of the errors of calls.
#pragma once

#include "base/result.h"

#include <string>

namespace diomp::api {

/// Receives all errors of calls. Any thread.
using error_observer = void (*)(const char *function, const std::string &arguments,
                                const error &failure);
void observe_errors(error_observer observer);
/// For fail(): passes the error to the observer, and keeps it for the calling thread's
/// ompx_last_error(). `text`: with the names of rank and function.
void record_error(const char *function, const std::string &arguments, const error &failure,
                  const std::string &text);

} // namespace diomp::api
