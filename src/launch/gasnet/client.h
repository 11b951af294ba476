// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// This process's one GASNet-EX client: its start, by GASNet's spawners or inside a job that another
// launcher has started. The launcher of this folder and the conduit share it.
#pragma once

#include "base/result.h"
#include "launch/launch.h"

#include <gasnetex.h>

namespace diomp::launch::gasnet {

/// Indices of handlers that the parts of DiOMP register, apart from each other.
inline constexpr gex_AM_Index_t first_launch_handler = GEX_AM_INDEX_BASE;
inline constexpr gex_AM_Index_t first_conduit_handler = GEX_AM_INDEX_BASE + 16;

/// Immutable once joined; any thread.
struct client {
    gex_Client_t handle{};
    gex_EP_t endpoint{};
    gex_TM_t team{};
    /// A descriptor that becomes readable when the network brings something; -1 if there is none
    /// to watch.
    int event_fd = -1;
};

/// "udp", "smp", ...: of this build.
[[nodiscard]] const char *conduit_name();

/// nullptr before the client has been joined.
[[nodiscard]] const client *joined_client();

/// Joins the job that GASNet's own spawner has started. Blocks until all ranks are there. With
/// smp it is here that the ranks are forked.
result<const client *> join_spawned();

/// Collective over the launcher's job: GASNet's ranks will be the launcher's. Blocks. An error
/// where GASNet's conduit cannot be started so; GASNet itself ends the process if its start fails.
result<const client *> join_through(launcher &starter);

/// What a call of GASNet's has returned.
[[nodiscard]] status checked(const char *call, int code);

/// This rank's part in the job is over, as is everybody's: at the end of the process it may wait
/// for the others.
void leave_in_order();

} // namespace diomp::launch::gasnet
