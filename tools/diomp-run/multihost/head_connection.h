// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How an agent connects to the head: with the data that it reads from standard input.
#pragma once

#include "agent_protocol.h"
#include "base/secure/handshake.h"
#include "base/unique_fd.h"

namespace diomp::run {

/// Reads standard input up to the end mark. Blocks.
result<agent_bootstrap> read_bootstrap();

struct head_connection {
    unique_fd socket; ///< in non-blocking mode
    secure::session_keys proven;
};
/// Connects to all addresses at once and takes the first connection whose handshake authenticates
/// the head. A peer that fails the handshake learns nothing about the secret. Blocks for at most
/// `bootstrap.timeout_s`. Erases the secret in `bootstrap`.
result<head_connection> connect_to_head(agent_bootstrap &bootstrap);

/// Returns the handshake options for a connection between head and agent.
[[nodiscard]] secure::handshake_options launch_handshake(const secure::party &self);

} // namespace diomp::run
