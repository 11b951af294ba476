// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How an agent finds the head: by what it reads from standard input.
#pragma once

#include "agent_protocol.h"

namespace diomp::run {

/// Reads standard input up to the end mark. Blocks.
result<agent_invitation> read_invitation();
/// Tries all addresses at once; the first that shows the head's half of the secret gets ours, in
/// `hello`. Blocks for at most the invitation's time. A non-blocking socket.
result<unique_fd> connect_to_head(const agent_invitation &invitation);

/// `size` random bytes as text.
result<std::string> make_secret(std::size_t size);
/// Takes the same time wherever the difference is.
[[nodiscard]] bool same_secret(std::string_view a, std::string_view b);

} // namespace diomp::run
