// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A service started by diomp-run, on this host or through a remote shell: it ends when its standard
// input closes.
#pragma once

#include "base/result.h"
#include "base/secure/secret.h"
#include "base/unique_fd.h"

#include <string>

namespace diomp::deviced {

struct received_settings {
    unique_fd input;   ///< rest of standard input: closes when diomp-run ends
    std::string token; ///< DIOMP_TOKEN; the caller erases it
};
/// Reads settings from standard input into the environment: NAME=VALUE, each terminated by a zero
/// byte, and another zero byte after the last. The token is one of them, since it must not appear
/// on a command line. It is not stored in the environment, where overwritten values stay in memory.
result<received_settings> receive_settings();

/// The address of this host that the ssh client connected to; "" if SSH_CONNECTION is not set.
std::string ssh_server_address();

/// A descriptor that is readable when either descriptor is readable or closed; -1: not used.
result<unique_fd> combine_fds(int one, int other);

} // namespace diomp::deviced
