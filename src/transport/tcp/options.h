// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>

namespace diomp::transport::tcp {

struct options {
    std::string interfaces;            ///< separated by commas; empty: all
    std::size_t send_buffer_bytes = 0; ///< 0: default
    std::string congestion = "auto";   ///< or an algorithm of the system
    int max_connections = 0;           ///< sockets to peers; 0: by the limit of descriptors
};

} // namespace diomp::transport::tcp
