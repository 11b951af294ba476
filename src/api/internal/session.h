// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The session of a remote device that this process is; see offload/session_table.h.
#pragma once

#include "offload/session_table.h"

namespace diomp::runtime {
class runtime;
}

namespace diomp::api {

/// Null: this process is no session. Written once, before the runtime starts.
extern const diomp_session *g_session;

/// Makes the session's GPU device 0 of the runtime. Call before the first region.
void use_gpu_of_session(runtime::runtime &running);

} // namespace diomp::api
