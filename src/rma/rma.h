// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One-sided transfers, except those that the inline path of the API completes itself.
//
// The address space locates the remote side. Directly mapped memory is copied by the calling core
// and complete on return. Segments of other ranks are accessed by the conduit's put and get: a put
// returns when its source may be reused; a fence, or the put's event, completes it at the target.
// Registered private memory is accessed by cross-memory attach. Where the system forbids that, data
// goes through a bounce buffer in this rank's segment, which the target's message handler reads or
// writes. For ranks that are not mapped here, messages carry the bytes.
//
// Glossary: remote: neither this rank nor mapped here. event: the handle of a nonblocking transfer.
// continuation: a function called after completion of a transfer, by a polling thread.
#pragma once

#include "memory/memory.h"
#include "messaging/call.h"
#include "messaging/pooled_completion.h"
#include "rma/copy.h"
#include "rma/event.h"
#include "rma/internal/ack_window.h"
#include "rma/internal/box.h"
#include "rma/internal/direction.h"
#include "rma/internal/implicit_ops.h"
#include "rma/internal/message_copies.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>

namespace diomp::rma {

/// The path that a transfer took, for statistics and tests.
enum class path { self, direct, attach, message, conduit, device, peer_device, ipc, bounce };
inline constexpr std::size_t num_paths = 9;
[[nodiscard]] const char *name(path taken);

/// Called for a transfer that outlived its call, when this rank finds it complete. Called by any
/// polling thread; must not block.
using transfer_observer = std::function<void(direction dir, world_rank peer, std::size_t nbytes,
                                             std::chrono::steady_clock::time_point begin)>;

/// Completion of the local buffer: reusable once done. Null if it is reusable already.
using local_completion = std::shared_ptr<const transport::completion>;

struct options {
    world_rank self;
    int num_ranks = 1;
    std::size_t stream_threshold_bytes = auto_threshold;
    transfer_observer on_transfer_complete; ///< for the trace; empty: no trace
};

/// Any thread. Create before engine.start(). Ranks are valid, pointers not null unless nbytes is 0.
class transfers {
public:
    /// Called once with the outcome, in the call that took it or later by a polling thread.
    using continuation = std::function<void(status)>;

    transfers(memory::address_space &space, memory::segment &own, memory::directory &directory,
              messaging::engine &engine, messaging::call_service &calls, const options &options);
    ~transfers();

    /// Put blocks until the source may be reused, get until the data has arrived. Both return the
    /// path taken.
    result<path> put(world_rank peer, void *remote, const void *local, std::size_t nbytes);
    result<path> get(world_rank peer, const void *remote, void *local, std::size_t nbytes);
    /// Put or get with a remote side that is located already. A put does not change `local`.
    result<path> move_at(direction dir, world_rank peer, const memory::location &location,
                         void *local, std::size_t nbytes);
    result<path> put_box(world_rank peer, void *remote, const void *local, const box &shape);
    result<path> get_box(world_rank peer, const void *remote, void *local, const box &shape);
    /// Pointers address the first elements.
    result<path> put_section(world_rank peer, void *remote, const void *local,
                             const section &shape);
    result<path> get_section(world_rank peer, const void *remote, void *local,
                             const section &shape);
    /// Put or get of runs; `location` and `local` are the starts of the arrays. All runs are
    /// started before the call waits for the first.
    result<path> move_box_at(direction dir, world_rank peer, const memory::location &location,
                             void *local, const box_walk &walk);
    result<path> move_runs_at(direction dir, world_rank peer, const memory::location &location,
                              void *local, std::span<const run> runs);

    /// Nonblocking put and get; for peers that are not remote the call does the whole transfer.
    /// *event is null if the transfer is complete on return. The local buffer belongs to the
    /// transfer until completion. With a null `event` the next fence completes it.
    result<path> start_put(world_rank peer, void *remote, const void *local, std::size_t nbytes,
                           ompx_event_t *event);
    result<path> start_get(world_rank peer, const void *remote, void *local, std::size_t nbytes,
                           ompx_event_t *event);
    /// Nonblocking move_at. `local_done`, if not null, receives the completion of the local buffer.
    result<path> start_at(direction dir, world_rank peer, const memory::location &location,
                          void *local, std::size_t nbytes, ompx_event_t *event,
                          local_completion *local_done = nullptr);
    /// Waits until these are done. Failures are reported by the transfers' events and fences.
    status wait_for_local_completion(std::span<const local_completion> completions);
    /// Completes the event if its transfer has arrived. To be called before each test of an event,
    /// by one thread at a time.
    void advance(ompx_event &event);
    /// Put and get with a continuation. If the call fails, `then` is never called.
    result<path> put_then(world_rank peer, void *remote, const void *local, std::size_t nbytes,
                          continuation then);
    result<path> get_then(world_rank peer, const void *remote, void *local, std::size_t nbytes,
                          continuation then);

    /// `signal` is 8-byte aligned at `peer`. The data is visible there before the signal. Blocks
    /// until the source may be reused.
    result<path> put_signal(world_rank peer, void *remote, const void *local, std::size_t nbytes,
                            std::uint64_t *signal, std::uint64_t value, ompx_signal_op_t op);

    /// `result` may be null: then the call need not wait for the peer.
    status atomic_fetch(world_rank peer, void *target, const void *operand, void *result,
                        ompx_type_t type, ompx_op_t op);
    status compare_swap(world_rank peer, void *target, const void *expected, const void *desired,
                        void *result, ompx_type_t type);

    /// Completes all operations of this rank, at all peers or at least at those given.
    status fence();
    status fence(std::span<const world_rank> peers);
    /// Whether a fence only has to order memory: no rank is remote, and there are no device copies.
    [[nodiscard]] bool all_direct() const {
        return all_direct_ && !has_device_copies_.load(std::memory_order_relaxed);
    }
    /// Completes the puts to one peer, and no other operations.
    status flush(world_rank peer);

    /// Whether no device copy is in flight. Must not block. An error is the failure of such a copy.
    using idle_query = std::function<result<bool>()>;
    /// Fences also wait for device copies, and poll devices and network in one loop
    /// (DiOMP-Offloading 2025, hybrid polling). Call before engine.start().
    void set_device_idle_query(idle_query query) { device_idle_query_ = std::move(query); }
    /// Waits until no device copy is in flight.
    status wait_for_devices();
    /// Announces that there may be device copies from now on.
    void enable_device_copies() { has_device_copies_.store(true, std::memory_order_relaxed); }

    [[nodiscard]] std::size_t stream_threshold() const { return options_.stream_threshold_bytes; }

private:
    enum class request_kind : std::uint32_t { put, get, fetch, compare_swap };
    struct rpc_request;
    struct rpc_reply;
    struct signal_header;
    struct acknowledgement;

    [[nodiscard]] bool is_remote(world_rank peer) const {
        return !all_direct_ && engine_.transport().direct_base(peer) == nullptr;
    }

    // transfers.cpp: mapped memory, and memory of mapped ranks
    result<path> move(direction dir, world_rank peer, const void *remote, void *local,
                      std::size_t nbytes);
    result<path> move_private(direction dir, world_rank peer, std::uint64_t remote, void *local,
                              std::size_t nbytes);
    template <typename Shape>
    result<path> move_shape(direction dir, world_rank peer, const void *remote, void *local,
                            const Shape &shape);
    result<memory::location> locate_atomic(world_rank peer, void *target, std::size_t size);

    // remote.cpp: memory of remote ranks
    status begin_remote(direction dir, world_rank peer, const memory::location &location,
                        void *local, std::size_t nbytes, transport::completion &count);
    /// Waits for a transfer of begin_remote. `location` and `nbytes` are for the error.
    status wait_for_remote(direction dir, world_rank peer, const memory::location &location,
                           std::size_t nbytes, messaging::pooled_completion &pooled_completion);
    result<path> move_remote(direction dir, world_rank peer, const memory::location &location,
                             void *local, std::size_t nbytes);
    /// False: nothing was started; each run is to be moved separately.
    result<bool> begin_box_remote(direction dir, world_rank peer, const memory::location &location,
                                  std::byte *local, const box_walk &walk,
                                  transport::completion &count);
    result<path> move_box_remote(direction dir, world_rank peer, const memory::location &location,
                                 std::byte *local, const box_walk &walk);
    result<path> start(direction dir, world_rank peer, const void *remote, void *local,
                       std::size_t nbytes, ompx_event_t *event);
    result<path> start_implicit(direction dir, world_rank peer, const memory::location &location,
                                void *local, std::size_t nbytes, local_completion *local_done);
    /// Starts the flush of a put into the same count, which also receives failures.
    void flush_into(world_rank peer, transport::completion &count);
    result<path> move_then(direction dir, world_rank peer, const void *remote, void *local,
                           std::size_t nbytes, continuation then);
    status refused(world_rank peer, const memory::location &location, std::size_t nbytes);
    status wait_for_acks();

    // signal.cpp: put with signal, and acknowledgements of operations by message
    result<path> put_signal_remote(world_rank peer, const memory::location &data, const void *local,
                                   std::size_t nbytes, std::uint64_t signal, std::uint64_t value,
                                   ompx_op_t op);
    /// False: the conduit cannot send a message after this put, and nothing was started.
    result<bool> put_with_signal(world_rank peer, const memory::location &data, const void *local,
                                 std::size_t nbytes, const signal_header &signal);
    result<path> put_then_signal(world_rank peer, const memory::location &data, const void *local,
                                 std::size_t nbytes, const signal_header &signal);
    result<std::uint64_t> open_ack();
    void acknowledge(world_rank requester, std::uint64_t number, int failure);
    void on_signal(const transport::message &incoming);
    void on_acknowledgement(const transport::message &incoming);

    // network_atomics.cpp: atomics by the network, on segments of all ranks
    [[nodiscard]] bool uses_network_atomics(const memory::location &target) const {
        return target.in_segment && engine_.transport().caps().has_atomics;
    }
    result<std::uint64_t> run_network_atomic(world_rank peer, const memory::location &target,
                                             const transport::atomic_call &call);
    status atomic_by_network(world_rank peer, const memory::location &target, const void *operand,
                             void *result, ompx_type_t type, ompx_op_t op, std::size_t size);
    status compare_swap_by_network(world_rank peer, const memory::location &target,
                                   const void *expected, const void *desired, void *result,
                                   std::size_t size);
    result<path> put_signal_by_network(world_rank peer, const memory::location &data,
                                       const void *local, std::size_t nbytes,
                                       const memory::location &signal, std::uint64_t value,
                                       ompx_op_t op);

    // messages.cpp: operations executed by the target
    status move_by_messages(direction dir, world_rank peer, std::uint64_t remote, void *local,
                            std::size_t nbytes);
    status atomic_by_message(request_kind what, world_rank peer, const memory::location &target,
                             const void *operand, const void *desired, void *result,
                             ompx_type_t type, ompx_op_t op, std::size_t size);
    void on_request(const transport::message &incoming);
    void finish_request(world_rank requester, const rpc_request &request, const rpc_reply &reply);
    [[nodiscard]] std::byte *bounce_of(world_rank requester, const rpc_request &request) const;
    std::byte *bounce_buffer();

    memory::address_space &space_;
    memory::segment &own_;
    memory::directory &directory_;
    messaging::engine &engine_;
    messaging::call_service &calls_;
    options options_;
    bool all_direct_ = true;
    idle_query device_idle_query_;
    std::atomic<bool> has_device_copies_{false};
    transport::handler_id request_handler_;
    transport::handler_id signal_handler_;
    transport::handler_id acknowledgement_handler_;
    message_copies copies_;
    ack_window acks_;
    implicit_ops implicit_;
    std::atomic<bool> attach_forbidden_{false};
    std::mutex bounce_mutex_; ///< held during a transfer by messages; not taken in handlers
    std::byte *bounce_ = nullptr;
    std::uint64_t bounce_offset_ = 0;
};

} // namespace diomp::rma
