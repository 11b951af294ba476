// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The GASNet-EX client of this process. It is started by GASNet's spawners, or inside a job that
// another launcher has started. The launcher in this folder and the conduit share it.
#pragma once

#include "base/result.h"
#include "launch/launch.h"

#include <gasnetex.h>

namespace diomp::launch::gasnet {

/// First handler index of each module of DiOMP that registers handlers.
inline constexpr gex_AM_Index_t first_launch_handler = GEX_AM_INDEX_BASE;
inline constexpr gex_AM_Index_t first_conduit_handler = GEX_AM_INDEX_BASE + 16;

/// Immutable after joining. Any thread.
struct gasnet_client {
    gex_Client_t handle{};
    gex_EP_t endpoint{};
    gex_TM_t team{};
    /// A descriptor that becomes readable when data arrives; -1 if there is none.
    int event_fd = -1;
};

/// The GASNet conduit of this build: "udp", "smp", ...
[[nodiscard]] const char *conduit_name();

/// nullptr before the client has joined.
[[nodiscard]] const gasnet_client *joined_client();

/// Joins the job that GASNet's own spawner has started. Blocks until all ranks have joined. With
/// smp, this call forks the ranks.
result<const gasnet_client *> join_spawned();

/// Collective over the launcher's job: ranks of GASNet are ranks of the launcher. Blocks. An error
/// if the GASNet conduit does not support this; GASNet itself ends the process if its start fails.
result<const gasnet_client *> join_through(launcher &job_launcher);

/// Converts the return code of a GASNet call.
[[nodiscard]] status to_status(const char *call, int code);

/// Marks the job as finished on all ranks: at the end of the process this rank may wait for the
/// others.
void mark_finalized();

} // namespace diomp::launch::gasnet
