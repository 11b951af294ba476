// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What diomp-deviced is told when it starts.
#pragma once

#include "offload/remote/protocol.h"

#include <string>

namespace diomp::deviced {

struct command_line {
    std::string address = "127.0.0.1";
    int port = offload::remote::default_port;
    std::string devices = "1";
    std::string memory;
    std::string ignored_signals; ///< numbers with commas
    double greeting_timeout_s = 10;
    int most_sessions = 64;
    double least_kernel_time_s = 0;
    bool once = false;
    bool ends_with_parent = false;
    bool announces = false;
    bool attached = false;
};

/// Ends the program where the line is wrong or asks for help.
command_line parse_command_line(int argc, char **argv);

} // namespace diomp::deviced
