// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Detach events of OpenMP tasks that are fulfilled by the completion of transfers.
#pragma once

#include "base/result.h"
#include "diomp/types.h"

#include <cstdint>
#include <functional>

namespace diomp::runtime {
class runtime;
}

namespace diomp::api {

/// A continuation that fulfils a task's event, on the thread that observes the completion. A
/// transfer that fails after its call has returned has no caller to report to: it ends the job.
std::function<void(status)> fulfil_later(const char *function, std::uintptr_t task);

/// Fulfils a task's event when the operation of `given` is complete; takes ownership of `given`.
/// Null: the operation is complete already. Blocks only without a progress thread.
void fulfil_after(runtime::runtime &running, ompx_event *given, const char *function,
                  std::uintptr_t task);

} // namespace diomp::api
