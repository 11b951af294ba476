// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The session of a remote device that this process is; see offload/session_table.h.
#pragma once

#include "base/result.h"
#include "diomp/types.h"
#include "offload/session_table.h"

namespace diomp::device_coll {
struct session_call;
}
namespace diomp::runtime {
class runtime;
}

namespace diomp::api {

/// Null: this process is no session. Written once, before the runtime starts.
extern const diomp_session *g_session;

/// Groups of the host, in the calls of regions. Call before there are groups.
void use_groups_of_host(runtime::runtime &running);
/// The session's group for a call of the host, which is created in the first calls. May block.
result<ompx_group_t> group_for_call(runtime::runtime &running,
                                    const device_coll::session_call &call);
/// Frees a group of session_call::group, if there is one. Collective; blocks.
status free_group_for(runtime::runtime &running, std::uint64_t group);

/// Makes the session's GPU device 0 of the runtime. Call before the first region.
void use_gpu_of_session(runtime::runtime &running);

} // namespace diomp::api
