// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Handlers of GASNet-EX active messages, and the encoding of their arguments.
#pragma once

#include "launch/gasnet/client.h"

#include <cstdint>

namespace diomp::transport::gasnet {

class iface;

enum : gex_AM_Index_t {
    put_handler = launch::gasnet::first_conduit_handler,
    put_ack_handler,
    get_handler,
    get_reply_handler,
    message_request_handler,
    long_handler,
    ack_handler,
    credit_handler,
    ping_handler,
    pong_handler,
    poll_request_handler,
};

/// 64-bit values in two arguments of 32 bits.
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

/// Registers the handlers, which act on `owner` from then on. One owner at a time; no message may
/// be in flight at unregister_handlers().
void register_handlers(gex_EP_t endpoint, iface &owner);
void unregister_handlers();

} // namespace diomp::transport::gasnet
