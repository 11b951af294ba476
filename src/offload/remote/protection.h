// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What protects the bytes of connections with device services after their handshakes.
#pragma once

#include "base/secure/handshake.h"

namespace diomp::offload::remote {

enum class channel {
    /// Between client and service or session: images, symbols, output. Sealed always, since it
    /// carries the secret of the world.
    control,
    data, ///< of the world: memory of client and devices, messages that start regions
};

/// The one place that says so. A connection has the stronger protection that its ends ask for.
[[nodiscard]] constexpr secure::protection protection_of(channel which) {
    return which == channel::control ? secure::protection::sealed : secure::protection::plain;
}

} // namespace diomp::offload::remote
