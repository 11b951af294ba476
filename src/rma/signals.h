// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Put with signal. Short data for remote ranks travels in messages, which are handled in order; the
// last one carries the signal, so there is no round trip. Long data needs none either where the
// conduit sends a message after a put. Elsewhere the put is flushed, and the signal follows by
// message. In all cases the call returns when the source may be reused, and a fence waits for the
// acknowledgement.
#pragma once

#include "base/result.h"
#include "diomp/types.h"
#include "memory/location.h"
#include "rma/path.h"

#include <cstddef>
#include <cstdint>

namespace diomp::memory {
class address_space;
class directory;
class segment;
} // namespace diomp::memory

namespace diomp::messaging {
class engine;
}

namespace diomp::rma {

class acknowledgements;
class atomics;
class blocking_transfers;
class remote_transfers;

/// Any thread. Create before engine.start().
class signals {
public:
    signals(memory::address_space &space, const memory::segment &own,
            const memory::directory &directory, messaging::engine &engine, acknowledgements &acks,
            blocking_transfers &blocking, remote_transfers &remote, atomics &atomics);

    /// `signal` is 8-byte aligned at `peer`. The data is visible there before the signal.
    result<path> put(world_rank peer, void *remote, const void *local, std::size_t nbytes,
                     std::uint64_t *signal, std::uint64_t value, ompx_signal_op_t op);

private:
    struct signal_header;

    result<path> put_remote(world_rank peer, const memory::location &data, const void *local,
                            std::size_t nbytes, std::uint64_t signal, std::uint64_t value,
                            ompx_op_t op);
    /// False: the conduit cannot send a message after this put, and nothing was started.
    result<bool> put_with_message(world_rank peer, const memory::location &data, const void *local,
                                  std::size_t nbytes, const signal_header &signal);
    result<path> put_then_message(world_rank peer, const memory::location &data, const void *local,
                                  std::size_t nbytes, const signal_header &signal);
    void on_signal(const transport::message &incoming);

    memory::address_space &space_;
    const memory::segment &own_;
    const memory::directory &directory_;
    messaging::engine &engine_;
    acknowledgements &acks_;
    blocking_transfers &blocking_;
    remote_transfers &remote_;
    atomics &atomics_;
    transport::handler_id handler_;
};

} // namespace diomp::rma
