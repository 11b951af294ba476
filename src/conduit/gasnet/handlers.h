// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What happens when active messages of GASNet-EX arrive, and how their arguments are made.
#pragma once

#include "launch/gasnet/client.h"

#include <cstdint>

namespace diomp::conduit::gasnet {

class traffic;

enum : gex_AM_Index_t {
    put_handler = launch::gasnet::first_conduit_handler,
    put_answer_handler,
    get_handler,
    get_answer_handler,
    message_handler,
    bulk_handler,
    answer_handler,
    credit_handler,
    ping_handler,
    pong_handler,
    attend_handler,
};

/// 64 bits in two arguments.
inline gex_AM_Arg_t high(std::uint64_t value) {
    return static_cast<gex_AM_Arg_t>(static_cast<std::uint32_t>(value >> 32));
}
inline gex_AM_Arg_t low(std::uint64_t value) {
    return static_cast<gex_AM_Arg_t>(static_cast<std::uint32_t>(value));
}
inline std::uint64_t join(gex_AM_Arg_t upper, gex_AM_Arg_t lower) {
    return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(upper)) << 32) |
           static_cast<std::uint32_t>(lower);
}
inline std::uint64_t number_of(const void *object) {
    return reinterpret_cast<std::uintptr_t>(object);
}

/// Messages change that object from now on. One at a time; no message may be on its way when it is
/// forgotten.
void register_handlers(gex_EP_t endpoint, traffic &owner);
void forget_handlers();

} // namespace diomp::conduit::gasnet
