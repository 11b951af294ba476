// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arguments of the calls that put data with a signal.
#pragma once

#include "rma/signals.h"

namespace diomp::api {

/// Errors: OMPX_ERR_ARG for a null pointer or an unknown operation.
status check_signal(const rma::signal_update &change);

} // namespace diomp::api
