// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>

namespace diomp::transport::tcp {

struct options {
    std::string interfaces;            ///< separated by commas; empty: all
    std::size_t send_buffer_bytes = 0; ///< 0: default
    std::string congestion = "auto";   ///< or an algorithm of the system
};

} // namespace diomp::transport::tcp
