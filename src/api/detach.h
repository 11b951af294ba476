// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Detach events of OpenMP tasks, which transfers fulfil.
#pragma once

#include "runtime/runtime.h"

#include <cstdint>

namespace diomp::api {

/// Fulfils the event of a task when its transfer is complete, on whichever thread finds out. A
/// transfer that fails after its call has returned has nobody to tell: it ends the job.
rma::transfers::continuation fulfil_later(const char *function, std::uintptr_t task);

/// The same for an operation in flight, whose event is taken over; null: it is complete.
void fulfil_after(runtime::runtime &running, ompx_event *given, const char *function,
                  std::uintptr_t task);

} // namespace diomp::api
