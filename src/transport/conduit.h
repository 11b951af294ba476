// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A conduit moves bytes and active messages between ranks.
//
// Glossary: segment: the slot of a rank in the arena. direct: the calling process can load and
// store the peer's segment; the layers above then copy by themselves and do not call put or get.
// put and get: transfers between memory of this process and the segment of a peer that is not
// direct. flush: completion of puts at their targets. private memory: memory of a peer outside its
// segment, which the peer has registered. active message: a handler number and at most
// max_message_bytes(peer) of payload; the handler runs at the target in the thread that makes
// progress there, must not block, and may send. AM long: an active message with a long payload
// (send_long).
//
// Order: messages of one thread to one peer are handled in order. Puts are ordered neither among
// themselves nor with messages: flush in between.
//
// To add a conduit: a folder beside shm/ with the same file names, a factory in
// transport/create.cpp, the contract tests (tests/conduit).
#pragma once

#include "base/function_ref.h"
#include "base/ids.h"
#include "base/result.h"
#include "transport/arena.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>

namespace diomp::transport {

using handler_id = std::uint16_t;

/// A message as its handler receives it. `payload` and `long_payload` are valid during the call
/// only.
struct message {
    world_rank source;
    handler_id handler = 0;
    std::span<const std::byte> payload;
    std::span<const std::byte> long_payload; ///< AM long only, else empty
};

using message_handler = function_ref<void(const message &)>;

/// What a conduit supports, fixed after creation. Upper layers select protocols by it at set-up and
/// emulate what is missing.
struct capabilities {
    const char *name = "";
    bool reaches_private_memory = false; ///< read_private / write_private work for direct peers
    bool has_atomics = false;            ///< atomic() works, for every rank of the job
};

/// Counts transfers in flight. A transfer that is not complete on return adds one to `pending` and
/// subtracts it on completion; the object must live until then. `failure` is the first OMPX_ERR_*
/// of one of them, or 0; it is set before `pending` is decremented.
struct completion {
    std::atomic<std::uint32_t> pending{0};
    std::atomic<int> failure{0};

    [[nodiscard]] bool is_done() const { return pending.load(std::memory_order_acquire) == 0; }
    void begin() { pending.fetch_add(1, std::memory_order_relaxed); }
    void end(int code = 0) {
        if (code != 0) {
            int none = 0;
            failure.compare_exchange_strong(none, code, std::memory_order_relaxed);
        }
        pending.fetch_sub(1, std::memory_order_release);
    }
};

/// Rows of equal length at constant strides in nested loops, on both sides. [level], innermost
/// first.
struct rows {
    std::size_t nbytes = 0; ///< per row; not 0
    std::span<const std::size_t> counts;
    std::span<const std::ptrdiff_t> remote_strides; ///< bytes
    std::span<const std::ptrdiff_t> local_strides;

    [[nodiscard]] std::size_t total_bytes() const {
        return std::accumulate(counts.begin(), counts.end(), nbytes, std::multiplies<>());
    }
};

/// Kinds of memory that networks distinguish.
enum class memory_kind : std::uint8_t { host, cuda, hip };
struct memory_kinds {
    memory_kind remote = memory_kind::host;
    memory_kind local = memory_kind::host;

    [[nodiscard]] bool are_host() const {
        return remote == memory_kind::host && local == memory_kind::host;
    }
};

/// A range of memory of one kind. The address is valid in the process that owns the memory.
struct memory_range {
    memory_kind kind = memory_kind::host;
    std::uint64_t address = 0;
    std::size_t nbytes = 0;

    [[nodiscard]] bool contains(const memory_range &inner) const {
        std::uint64_t const offset = inner.address - address;
        return inner.kind == kind && offset < nbytes && inner.nbytes <= nbytes - offset;
    }
};

/// Device memory that a network must register when it is created.
struct device_range {
    memory_range range;
    int device = 0; ///< device number of the vendor's library
};
/// Allocates the segments of this process's devices of these kinds; the memory stays until the
/// process ends. Called once; does not wait for other ranks.
using device_range_maker = std::function<std::vector<device_range>(std::span<const memory_kind>)>;

/// Makes a device context current in the calling thread while the result lives.
using device_context_binder = std::function<std::shared_ptr<void>()>;

/// Operations on a word of 4 or 8 bytes that networks execute correctly. UCX 1.13 also has AND, OR
/// and XOR, which its self transport gets wrong.
enum class atomic_op : std::uint8_t { add, exchange, compare_exchange };
struct atomic_call {
    atomic_op op;
    std::size_t nbytes;         ///< 4 or 8
    std::uint64_t operand;      ///< in the low bytes
    std::uint64_t expected = 0; ///< of compare_exchange
};

/// Handles an AM long on arrival, inside the conduit's progress: copies the data to its
/// destination. May take leaf locks; must not call the conduit.
using am_long_handler = std::function<void(const message &)>;

/// Returns the destination of an AM long whose first byte is about to arrive, or nullptr: any
/// buffer. Called under the rules of am_long_handler, with the message without its data. The
/// handler then finds the data at the destination and need not copy it.
using recv_buffer_callback =
    std::function<std::byte *(const message &incoming, std::size_t nbytes)>;

/// Called once per lost peer, with a sentence that names the peer's host and the outstanding
/// operations. Any thread; must not block.
using failure_handler = std::function<void(world_rank peer, std::string why)>;

/// What makes the condition of a wait true.
enum class wait_kind : std::uint8_t {
    store,  ///< a store by another rank of the node or another thread
    message ///< a message handler, or the progress of a network
};

/// All calls are thread-safe.
class conduit {
public:
    virtual ~conduit() = default;

    [[nodiscard]] virtual const capabilities &caps() const = 0;

    /// Address at which the peer's segment is mapped in this process; nullptr if it is not direct.
    /// Does not block.
    [[nodiscard]] virtual std::byte *direct_base(world_rank peer) const = 0;

    /// Starts to copy `nbytes` from `source` to an address in the peer's segment. For peers that
    /// are not direct; the caller has checked the range. Returns with `source_free` unchanged if
    /// the source can be reused already. May wait for space in the send queue, making progress; an
    /// error means that nothing was started.
    virtual status put(world_rank peer, std::uint64_t remote_address, const void *source,
                       std::size_t nbytes, completion &source_free);
    /// Starts to copy from an address in the peer's segment. `done` counts the arrival of the data.
    virtual status get(world_rank peer, std::uint64_t remote_address, void *destination,
                       std::size_t nbytes, completion &done);
    /// Whether the network can access this kind of memory of this process at any address.
    [[nodiscard]] virtual bool supports_memory_kind(memory_kind kind) const {
        return kind == memory_kind::host;
    }
    /// Whether the network can access this range. Some networks access device memory only in ranges
    /// that were registered at creation (conduit_options::make_device_ranges).
    [[nodiscard]] virtual bool supports_memory_range(const memory_range &own) const {
        return supports_memory_kind(own.kind);
    }
    /// Whether the network transfers between any memory that it can access in the two processes.
    [[nodiscard]] virtual bool supports_device_transfers() const { return false; }
    /// Whether put_device_memory and get_device_memory support this pair: a range of the peer that
    /// the peer's own conduit can access, and a local range.
    [[nodiscard]] virtual bool can_transfer(world_rank /*peer*/, const memory_range & /*remote*/,
                                            const memory_range &local) const {
        return supports_memory_range(local);
    }
    /// put and get with device memory on one side or both, between ranges for which can_transfer()
    /// is true; the remote address need not be in the segment. The conduit need not check that; a
    /// network that does returns OMPX_ERR_UNSUPPORTED.
    virtual status put_device_memory(world_rank peer, std::uint64_t remote_address,
                                     const void *source, std::size_t nbytes, memory_kinds kinds,
                                     completion &source_free);
    virtual status get_device_memory(world_rank peer, std::uint64_t remote_address,
                                     void *destination, std::size_t nbytes, memory_kinds kinds,
                                     completion &done);
    /// Registers a function that makes a device context current in the network's threads. Call
    /// before the first transfer of device memory. The first registration counts, until an empty
    /// function removes it.
    virtual void bind_device_context(const device_context_binder & /*binder*/) {}
    /// put and get of all rows at once; the addresses are those of the first row. The destinations
    /// of a put's rows do not overlap. false: nothing was started; for this peer and this row
    /// length, one put or get per row is at least as fast.
    virtual result<bool> put_rows(world_rank peer, std::uint64_t remote_address, const void *source,
                                  const rows &shape, completion &source_free);
    virtual result<bool> get_rows(world_rank peer, std::uint64_t remote_address, void *destination,
                                  const rows &shape, completion &done);
    /// Starts an atomic operation on an aligned word in the segment of any rank, including the
    /// caller's own. It is atomic with respect to all operations of the job through this call, and
    /// to no others. The old value is written to `result`, and `done` counts that. If `result` is
    /// nullptr, `done` is not used, and a flush of the target rank completes the operation as it
    /// does a put, except on the calling rank itself.
    virtual status atomic(world_rank peer, std::uint64_t remote_address, const atomic_call &call,
                          void *result, completion &done);
    /// Starts the completion of all puts that the calling process has started to `peer`, or to all
    /// peers: `done` counts until their bytes are visible at the target. Costs nothing if no put is
    /// in flight.
    virtual status flush(world_rank peer, completion &done);
    virtual status flush_all(completion &done);

    /// Copies to or from registered private memory of a direct peer without the peer's help. Blocks
    /// until the bytes have arrived. OMPX_ERR_UNSUPPORTED if the system forbids it or the peer is
    /// not direct: the caller falls back to messages.
    virtual status write_private(world_rank peer, std::uint64_t remote_address, const void *source,
                                 std::size_t nbytes) = 0;
    virtual status read_private(world_rank peer, std::uint64_t remote_address, void *destination,
                                std::size_t nbytes) = 0;

    /// Maximum payload of an active message to this peer, equal in both directions. At least 240.
    [[nodiscard]] virtual std::size_t max_message_bytes(world_rank peer) const = 0;
    /// Queues a message; messages of one thread to one peer arrive in order. false: the queue is
    /// full; make progress and retry. Never blocks. The payload can be reused on return.
    [[nodiscard]] virtual bool try_send(world_rank peer, handler_id handler,
                                        std::span<const std::byte> payload) = 0;

    /// Starts to send an AM long: a payload of at most 128 bytes, followed by data. It goes to the
    /// peer's am_long_handler, unordered with all other operations. `source_free` counts until the
    /// data can be reused. false: nothing was started, because the queue is full or the conduit
    /// does not support this size or peer. Never blocks.
    virtual result<bool> send_long(world_rank peer, handler_id handler,
                                   std::span<const std::byte> payload,
                                   std::span<const std::byte> data, completion &source_free);
    /// Data up to this size can always be sent to this peer by send_long, at once or after a retry;
    /// equal on both sides. 0: no size is guaranteed.
    [[nodiscard]] virtual std::size_t max_am_long(world_rank /*peer*/) const { return 0; }
    /// Starts a put, followed by a message whose handler runs when the bytes are visible at the
    /// target, unordered with all other operations. The run of the handler is the only sign of
    /// completion; no flush covers these bytes. `source_free` as in put. false: nothing was
    /// started, because the queue is full or the conduit does not support this size or peer. Never
    /// blocks.
    virtual result<bool> put_with_message(world_rank peer, std::uint64_t remote_address,
                                          std::span<const std::byte> source, handler_id handler,
                                          std::span<const std::byte> payload,
                                          completion &source_free);
    /// Sets the handler of AM longs and the callback that chooses their buffers. Call before the
    /// first transfer, and with empty functions at the end. Conduits that cannot choose the buffer
    /// do not call `find_buffer`.
    virtual void set_am_long_handler(const am_long_handler & /*handle*/,
                                     const recv_buffer_callback & /*find_buffer*/) {}
    /// Revokes a buffer that the callback has returned: data still in transit goes to another
    /// buffer. Must not be called from the handler or the callback.
    virtual void revoke_recv_buffer(const std::byte * /*buffer*/) {}

    /// Calls the handler for each waiting message; returns their number. 0 at once if another
    /// thread is doing so.
    virtual int poll(message_handler handle) = 0;

    /// Changes whenever a sleeping thread is woken. Read it before looking for work.
    [[nodiscard]] virtual std::uint32_t activity() const = 0;
    /// Sleeps until activity() differs from `seen` or the time is over. May return early.
    virtual void sleep(std::uint32_t seen, std::chrono::microseconds limit) = 0;
    /// Ends sleep() of this rank's threads.
    virtual void wake() = 0;
    /// Between these two calls the calling thread polls, so that senders need not wake a sleeping
    /// thread. end_polling returns true if messages are waiting for which no thread was woken.
    virtual void begin_polling() = 0;
    [[nodiscard]] virtual bool end_polling() = 0;
    /// Sleeps like sleep(), in a thread that waits for an operation and does not poll meanwhile.
    /// Calls ready() first; returns true at once if ready() does. With wait_kind::message the sleep
    /// also ends when a network has work for this rank, with wait_kind::store when another rank
    /// calls wake_for_store(). wake() of this rank may fail to end it; then it lasts until `limit`.
    virtual bool idle_wait(wait_kind what, std::uint32_t seen, std::chrono::microseconds limit,
                           function_ref<bool()> ready);
    /// Ends idle_wait(): another thread of this rank has done something that a thread may wait for.
    virtual void wake_idle_waiters() {}
    /// Number of threads of this node that sleep until another rank stores something. A rank that
    /// has written memory which another rank may wait for reads the number after its store, and
    /// calls wake_for_store() if it is not 0. There is no fence between the store and the load: it
    /// would cost more than the rest of the operation. So the writer may miss a thread that begins
    /// to sleep at that moment, which then sleeps until its limit.
    [[nodiscard]] virtual const std::atomic<std::uint32_t> &store_sleepers() const;
    /// Ends idle_wait() of the peer's threads that wait for a store.
    virtual void wake_for_store(world_rank /*peer*/) {}

    /// Call before the first transfer. Conduits that cannot lose a peer ignore it.
    virtual void report_failures_to(const failure_handler & /*handle*/) {}
    /// The path to this peer and the reason for its choice, for diomp-info: "shm", "ucx (tcp,
    /// active messages): ...".
    [[nodiscard]] virtual std::string describe_path(world_rank peer) const = 0;
    /// Operations outstanding at each peer, with its host, as the end of a sentence about a long
    /// wait: "rank 1 on hostb: 1 get(s) of 8 bytes". "" if there are none.
    [[nodiscard]] virtual std::string describe_outstanding() const { return {}; }
    /// Collective over the job. Call once, when no thread starts operations any more: all data sent
    /// has then arrived, so that ranks may end in any order. Blocks.
    virtual status close() { return {}; }
    /// Called when the process ends while other threads may still be in calls. After it no thread
    /// is inside the library of a network's vendor, whose destructors are about to run, and none
    /// enters it. Calls of other threads may never return. Blocks for a moment.
    virtual void freeze() {}
};

/// Bytes of control area per rank that the arena must have for the conduits of this build.
std::size_t control_bytes_per_rank();

struct conduit_options {
    std::string network = "auto"; ///< between nodes if the conduit is "auto"; names as in create()
    bool cross_memory_attach = true;
    double dead_peer_timeout_s = 30; ///< a peer that does not respond for this time is lost
    /// threads that inject concurrently; 0: from the number of cores
    int ucx_workers = 0;
    std::string tcp_interfaces;            ///< separated by commas; empty: all
    std::size_t tcp_send_buffer_bytes = 0; ///< 0: default
    std::string tcp_congestion = "auto";   ///< or an algorithm of the system
    int num_network_peers = 0;             ///< peers reached through the network; set by create()
    bool encrypts = false;                 ///< create() fails if the network cannot encrypt
    std::string network_rma = "auto";      ///< auto, rdma, messages
    std::string device_memory = "auto";    ///< auto, on, off: see supports_memory_kind()
    device_range_maker make_device_ranges; ///< empty: no device memory
    bool native_atomics = false;           ///< create() fails if the conduit has none
};

/// Collective over the job. `arena` must outlive the conduit. Names: "auto" (shm for ranks of this
/// node, options.network for others if there are any), "shm", and "ucx", "gasnet", "gaspi" and
/// "tcp" (for every rank but the caller's own). options.network: "auto", or one of the latter four.
result<std::unique_ptr<conduit>> create(const std::string &name, launch::launcher &launcher,
                                        const arena &arena, const conduit_options &options);

} // namespace diomp::transport
