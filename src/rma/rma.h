// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One-sided transfers: everything that the api's inline path does not settle by itself.
//
// How a transfer goes: the address space says where the remote side is. Directly mapped memory is
// copied by the calling core, and is complete on return. Segments of other ranks go through the
// conduit's put and get: a put returns when its source may be reused, and fence, or the event of a
// put, completes it at the target. Registered private memory goes by cross-memory attach; where the
// system forbids that, through a bounce buffer in this rank's segment which the target's message
// handler copies from or to; and to ranks that are not mapped in messages that carry the bytes.
//
// Glossary: remote: neither this rank nor mapped here. event: a transfer that somebody waits for
// later. continuation: called when a transfer is complete, by whoever polls then.
#pragma once

#include "conduit/call.h"
#include "conduit/flight.h"
#include "memory/memory.h"
#include "rma/ack_window.h"
#include "rma/box.h"
#include "rma/copy.h"
#include "rma/direction.h"
#include "rma/event.h"
#include "rma/message_copies.h"
#include "rma/unnamed.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>

namespace diomp::rma {

/// The ways that a transfer can take, for statistics and tests.
enum class path { self, direct, attach, message, conduit, device, peer_device, ipc, bounce };
inline constexpr std::size_t num_paths = 9;
[[nodiscard]] const char *name(path way);

/// Told of a transfer that was under way after its call had returned, when this rank knows that it
/// is complete. Any thread that polls; must not block.
using flight_observer = std::function<void(direction way, world_rank peer, std::size_t nbytes,
                                           std::chrono::steady_clock::time_point begin)>;

/// Whether a transfer that has been started still uses its local side: not once the count is done.
/// Null: it does not.
using local_use = std::shared_ptr<const conduit::completion>;

struct options {
    world_rank self;
    int num_ranks = 1;
    std::size_t stream_threshold_bytes = learned_threshold;
    flight_observer on_flight; ///< for the trace; empty: nobody asks
};

/// Any thread. Create before engine.start(). Ranks are valid, pointers not null unless nbytes is 0.
class transfers {
public:
    /// Told the outcome once, on return of the call that took it or later in a polling thread.
    using continuation = std::function<void(status)>;

    transfers(memory::address_space &space, memory::segment &own, memory::directory &directory,
              conduit::engine &engine, conduit::call_service &calls, const options &options);
    ~transfers();

    /// Put blocks until the source may be reused, get until the bytes are here; the result is the
    /// path taken.
    result<path> put(world_rank peer, void *remote, const void *local, std::size_t nbytes);
    result<path> get(world_rank peer, const void *remote, void *local, std::size_t nbytes);
    /// The same for a remote side that has been located already. A put leaves `local` as it is.
    result<path> move_at(direction way, world_rank peer, const memory::place &place, void *local,
                         std::size_t nbytes);
    result<path> put_box(world_rank peer, void *remote, const void *local, const box &shape);
    result<path> get_box(world_rank peer, const void *remote, void *local, const box &shape);
    /// Pointers are to the first elements.
    result<path> put_section(world_rank peer, void *remote, const void *local,
                             const section &shape);
    result<path> get_section(world_rank peer, const void *remote, void *local,
                             const section &shape);
    /// As move_at; `place` and `local` are the arrays' beginnings. All runs are started before the
    /// first is waited for.
    result<path> move_box_at(direction way, world_rank peer, const memory::place &place,
                             void *local, const box_walk &walk);
    result<path> move_runs_at(direction way, world_rank peer, const memory::place &place,
                              void *local, std::span<const run> runs);

    /// Return at once where they can; *event is null if the transfer is complete. The local buffer
    /// belongs to the transfer until then. With a null `event` the next fence completes it.
    result<path> start_put(world_rank peer, void *remote, const void *local, std::size_t nbytes,
                           ompx_event_t *event);
    result<path> start_get(world_rank peer, const void *remote, void *local, std::size_t nbytes,
                           ompx_event_t *event);
    /// As move_at. `use`, if not null, gets to know about the local side.
    result<path> start_at(direction way, world_rank peer, const memory::place &place, void *local,
                          std::size_t nbytes, ompx_event_t *event, local_use *use = nullptr);
    /// Waits until these are over. What becomes of them is their events' and fences' to tell.
    status wait_for_local(std::span<const local_use> uses);
    /// Whoever looks at an event of theirs calls this first, one thread at a time: it completes the
    /// event if its transfer has arrived.
    void advance(ompx_event &event);
    /// If the call fails, `then` is never called.
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

    /// Completes everything that this rank has started, at all peers or at least at those given.
    status fence();
    status fence(std::span<const world_rank> peers);
    /// A fence has only to order memory: no rank is remote, and no device copies.
    [[nodiscard]] bool all_direct() const {
        return all_direct_ && !devices_copy_.load(std::memory_order_relaxed);
    }
    /// Completes the puts to one peer, and leaves the rest alone.
    status flush(world_rank peer);

    /// Whether no copy of a device is under way. Must not block. An error is about one of them.
    using idle_question = std::function<result<bool>()>;
    /// Fences wait for copies of devices too, and look at devices and network in one loop
    /// (DiOMP-Offloading 2025, hybrid polling). Create before engine.start().
    void ask_devices(idle_question are_idle) { devices_are_idle_ = std::move(are_idle); }
    /// Waits until there are none.
    status wait_for_devices();
    /// From now on such copies happen.
    void expect_device_copies() { devices_copy_.store(true, std::memory_order_relaxed); }

    [[nodiscard]] std::size_t stream_threshold() const { return options_.stream_threshold_bytes; }

private:
    enum class verb : std::uint32_t { put, get, fetch, compare_swap }; ///< of a request
    struct request;
    struct answer;
    struct signal_header;
    struct acknowledgement;

    [[nodiscard]] bool is_remote(world_rank peer) const {
        return !all_direct_ && engine_.transport().direct_base(peer) == nullptr;
    }

    // transfers.cpp: memory that is mapped, or of ranks that are
    result<path> move(direction way, world_rank peer, const void *remote, void *local,
                      std::size_t nbytes);
    result<path> move_private(direction way, world_rank peer, std::uint64_t remote, void *local,
                              std::size_t nbytes);
    template <typename Shape>
    result<path> move_shape(direction way, world_rank peer, const void *remote, void *local,
                            const Shape &shape);
    result<memory::place> locate_atomic(world_rank peer, void *target, std::size_t size);

    // remote.cpp: memory of remote ranks
    status begin_remote(direction way, world_rank peer, const memory::place &place, void *local,
                        std::size_t nbytes, conduit::completion &count);
    /// Waits for what begin_remote began. `place` and `nbytes` are for the error.
    status end_remote(direction way, world_rank peer, const memory::place &place,
                      std::size_t nbytes, conduit::flight &flight);
    result<path> move_remote(direction way, world_rank peer, const memory::place &place,
                             void *local, std::size_t nbytes);
    /// False: nothing was started; each run is to be moved by itself.
    result<bool> begin_box_remote(direction way, world_rank peer, const memory::place &place,
                                  std::byte *local, const box_walk &walk,
                                  conduit::completion &count);
    result<path> move_box_remote(direction way, world_rank peer, const memory::place &place,
                                 std::byte *local, const box_walk &walk);
    result<path> start(direction way, world_rank peer, const void *remote, void *local,
                       std::size_t nbytes, ompx_event_t *event);
    result<path> start_unnamed(direction way, world_rank peer, const memory::place &place,
                               void *local, std::size_t nbytes, local_use *use);
    /// Asks for the completion of a put at its target; failures count as the transfer's.
    void flush_into(world_rank peer, conduit::completion &count);
    result<path> move_then(direction way, world_rank peer, const void *remote, void *local,
                           std::size_t nbytes, continuation then);
    status refused(world_rank peer, const memory::place &place, std::size_t nbytes);
    status wait_for_acks();

    // signal.cpp: put with signal, and what else goes by messages that nobody waits for
    result<path> put_signal_remote(world_rank peer, const memory::place &data, const void *local,
                                   std::size_t nbytes, std::uint64_t signal, std::uint64_t value,
                                   ompx_op_t op);
    /// False: the conduit does not send a message behind this put, and nothing was started.
    result<bool> put_with_signal(world_rank peer, const memory::place &data, const void *local,
                                 std::size_t nbytes, const signal_header &signal);
    result<path> put_then_signal(world_rank peer, const memory::place &data, const void *local,
                                 std::size_t nbytes, const signal_header &signal);
    result<std::uint64_t> open_ack();
    void acknowledge(world_rank asker, std::uint64_t number, int failure);
    void on_signal(const conduit::message &incoming);
    void on_acknowledgement(const conduit::message &incoming);

    // network_atomics.cpp: where the network does them, of all ranks' segments
    [[nodiscard]] bool goes_by_network(const memory::place &target) const {
        return target.in_segment && engine_.transport().abilities().has_atomics;
    }
    result<std::uint64_t> ask_network(world_rank peer, const memory::place &target,
                                      const conduit::atomic_call &call);
    status atomic_by_network(world_rank peer, const memory::place &target, const void *operand,
                             void *result, ompx_type_t type, ompx_op_t op, std::size_t size);
    status compare_swap_by_network(world_rank peer, const memory::place &target,
                                   const void *expected, const void *desired, void *result,
                                   std::size_t size);
    result<path> put_signal_by_network(world_rank peer, const memory::place &data,
                                       const void *local, std::size_t nbytes,
                                       const memory::place &signal, std::uint64_t value,
                                       ompx_op_t op);

    // messages.cpp: the target's help
    status move_by_messages(direction way, world_rank peer, std::uint64_t remote, void *local,
                            std::size_t nbytes);
    status atomic_by_message(verb what, world_rank peer, const memory::place &target,
                             const void *operand, const void *desired, void *result,
                             ompx_type_t type, ompx_op_t op, std::size_t size);
    void on_request(const conduit::message &incoming);
    void finish_request(world_rank asker, const request &asked, const answer &told);
    [[nodiscard]] std::byte *bounce_of(world_rank asker, const request &asked) const;
    std::byte *bounce_buffer();

    memory::address_space &space_;
    memory::segment &own_;
    memory::directory &directory_;
    conduit::engine &engine_;
    conduit::call_service &calls_;
    options options_;
    bool all_direct_ = true;
    idle_question devices_are_idle_;
    std::atomic<bool> devices_copy_{false};
    conduit::handler_id request_handler_;
    conduit::handler_id signal_handler_;
    conduit::handler_id acknowledgement_handler_;
    message_copies copies_;
    ack_window acks_;
    unnamed_transfers unnamed_;
    std::atomic<bool> attach_forbidden_{false};
    std::mutex
        bounce_mutex_; ///< held for the length of a transfer by messages; never taken in handlers
    std::byte *bounce_ = nullptr;
    std::uint64_t bounce_offset_ = 0;
};

} // namespace diomp::rma
