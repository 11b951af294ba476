// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Command line of diomp-deviced.
#pragma once

#include "offload/remote/protocol.h"
#include "offload/service/server.h"

#include <string>

namespace diomp::deviced {

struct command_line {
    std::string address = "127.0.0.1";
    int port = offload::remote::default_port;
    std::string devices = "1";
    std::string memory;
    std::string ignored_signals;             ///< numbers, separated by commas
    offload::service::server_options server; ///< without devices
    bool ends_with_parent = false;
    bool prints_port = false;
    bool attached = false;
};

/// Exits if the command line is invalid or requests help.
command_line parse_command_line(int argc, char **argv);

} // namespace diomp::deviced
