// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Put with signal. Short data for remote ranks travels in messages, which are handled in order; the
// last one carries the signal, so there is no round trip. Long data needs none either where the
// conduit sends a message after a put. Elsewhere the put is flushed, and the signal follows by
// message. In all cases the call returns when the source may be reused, and a fence waits for the
// acknowledgement.
#pragma once

#include "base/function_ref.h"
#include "base/result.h"
#include "diomp/types.h"
#include "memory/location.h"
#include "rma/path.h"

#include <cstddef>
#include <cstdint>
#include <memory>

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
class box_transfers;
class box_walk;
class remote_transfers;

/// A change of an 8-byte word at the target, aligned to its size.
struct signal_update {
    std::uint64_t *signal = nullptr;
    std::uint64_t value = 0;
    ompx_signal_op_t op = OMPX_SIGNAL_SET;
};

/// Any thread. Create before engine.start().
class signals {
public:
    signals(memory::address_space &space, const memory::segment &own,
            const memory::directory &directory, messaging::engine &engine, acknowledgements &acks,
            blocking_transfers &blocking, box_transfers &boxes, remote_transfers &remote,
            atomics &atomics);

    /// `signal` is 8-byte aligned at `peer`. The data is visible there before the signal.
    result<path> put(world_rank peer, void *remote, const void *local, std::size_t nbytes,
                     std::uint64_t *signal, std::uint64_t value, ompx_signal_op_t op) {
        return put_bytes(peer, remote, local, nbytes, {signal, value, op}, nullptr);
    }
    /// `local` belongs to the transfer until *event is complete; null on return if it is already.
    /// With a null `event` the next fence completes it.
    result<path> start_put(world_rank peer, void *remote, const void *local, std::size_t nbytes,
                           const signal_update &update, ompx_event_t *event) {
        completion_request wanted{event};
        return put_bytes(peer, remote, local, nbytes, update, &wanted);
    }
    /// A box or section; pointers as for box_transfers::put.
    result<path> put_box(world_rank peer, void *remote, const void *local, const box_walk &walk,
                         const signal_update &update) {
        return put_runs(peer, remote, local, walk, update, nullptr);
    }
    result<path> start_box(world_rank peer, void *remote, const void *local, const box_walk &walk,
                           const signal_update &update, ompx_event_t *event) {
        completion_request wanted{event};
        return put_runs(peer, remote, local, walk, update, &wanted);
    }

private:
    struct signal_header;
    /// The target's side of a call, located.
    struct destination {
        world_rank peer;
        memory::location data;
        memory::location signal;
    };
    /// A call that returns before the source may be reused.
    struct completion_request {
        ompx_event_t *event; ///< null: the next fence
    };
    /// Starts the data of a call, counted by its argument; see remote_transfers::begin.
    using data_start = function_ref<status(transport::completion &)>;

    /// `later` is null for calls that return when the source may be reused.
    result<path> put_bytes(world_rank peer, void *remote, const void *local, std::size_t nbytes,
                           const signal_update &update, completion_request *later);
    result<path> put_runs(world_rank peer, void *remote, const void *local, const box_walk &walk,
                          const signal_update &update, completion_request *later);
    /// The signal after data that this core or a flush has completed.
    status update_here(const destination &to, path taken, const signal_update &update);

    result<path> put_remote(const destination &to, const void *local, std::size_t nbytes,
                            const signal_update &update, completion_request *later);
    void send_in_messages(const destination &to, const void *local, std::size_t nbytes,
                          signal_header head);
    /// False: the conduit cannot send a message after this put, and nothing was started.
    result<bool> put_with_message(const destination &to, const void *local, std::size_t nbytes,
                                  const signal_header &signal, completion_request *later);
    result<path> put_then_message(const destination &to, std::size_t nbytes,
                                  const signal_header &signal, completion_request *later,
                                  data_start start);
    /// Returns when the source may be reused; the signal follows.
    status put_and_wait(const destination &to, std::size_t nbytes, const signal_header &signal,
                        data_start start);
    /// Sends the signal when `arrived` is done, or closes its number after a failure, which the
    /// next fence reports unless the event does.
    void send_after(const std::shared_ptr<transport::completion> &arrived, world_rank peer,
                    const signal_header &signal, bool fence_reports);
    /// Keeps the count alive, and closes the number if the peer is lost.
    void close_if_lost(const std::shared_ptr<transport::completion> &count, world_rank peer,
                       std::uint64_t number);
    static signal_header header_of(std::uint64_t number, const destination &to,
                                   const signal_update &update);
    static void give_event(const completion_request *later, function_ref<ompx_event_t()> make);
    void on_signal(const transport::message &incoming);

    memory::address_space &space_;
    const memory::segment &own_;
    const memory::directory &directory_;
    messaging::engine &engine_;
    acknowledgements &acks_;
    blocking_transfers &blocking_;
    box_transfers &boxes_;
    remote_transfers &remote_;
    atomics &atomics_;
    transport::handler_id handler_;
};

} // namespace diomp::rma
