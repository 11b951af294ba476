// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How an agent finds the head: by what it reads from standard input.
#pragma once

#include "agent_protocol.h"
#include "base/secure/handshake.h"
#include "base/unique_fd.h"

namespace diomp::run {

/// Reads standard input up to the end mark. Blocks.
result<agent_invitation> read_invitation();

struct head_connection {
    unique_fd socket; ///< non-blocking
    secure::session proven;
};
/// Tries all addresses at once; the first at which the head proves itself counts, and the others
/// learn nothing. Blocks for at most the invitation's time. Erases the invitation's secret.
result<head_connection> connect_to_head(agent_invitation &invitation);

/// How the ends of a connection of head and agent present themselves.
[[nodiscard]] secure::handshake_options handshake_of(const secure::party &self);

} // namespace diomp::run
