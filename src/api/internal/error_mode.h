// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether errors of public functions end the job or are returned.
#pragma once

#include "config/settings.h"

namespace diomp::api {

/// The mode of threads that have not chosen one; at start-up that of DIOMP_ERRORS.
void set_library_errors(error_policy policy);
/// What an error of the calling thread's call does.
[[nodiscard]] error_policy errors_in_effect();

} // namespace diomp::api
