// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A conduit moves bytes and active messages between ranks.
//
// Glossary: segment: the slot of a rank in the window. direct: the calling process can load and
// store the peer's segment; the layers above then copy by themselves and never come here. put and
// get: transfers between memory of this process and the segment of a peer that is not direct.
// flush: completion of puts at their targets. private memory: memory of a peer outside its segment,
// which the peer has registered. active message: a handler number and at most
// max_message_bytes(peer) of payload; the handler runs at the target in whichever thread makes
// progress there, must not block, and may send.
//
// Order: messages of one thread to one peer are handled in order. Puts are ordered neither among
// themselves nor with messages: flush in between.
//
// To add a conduit: a folder beside shm/ with the same file names, a factory in conduit/create.cpp,
// the contract tests (tests/conduit).
#pragma once

#include "base/function_ref.h"
#include "base/ids.h"
#include "base/result.h"
#include "conduit/window.h"

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

namespace diomp::conduit {

using handler_id = std::uint16_t;

/// A message as its handler sees it; payload is valid during the call only.
struct message {
    world_rank source;
    handler_id handler = 0;
    std::span<const std::byte> payload;
    std::span<const std::byte> bulk; ///< of send_bulk, else empty
};

using message_sink = function_ref<void(const message &)>;

/// Abilities, fixed after creation. Upper layers select on them at set-up and emulate what is
/// missing.
struct capabilities {
    const char *name = "";
    bool reaches_private_memory = false; ///< read_private / write_private work for direct peers
    bool has_atomics = false;            ///< atomic() works, for every rank of the job
};

/// Counts transfers in flight. A transfer that is not complete on return adds one to `pending` and
/// takes it back when it is; the object must live until then. `failure` is the first OMPX_ERR_* of
/// one of them, or 0; it is set before `pending` goes down.
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

/// Rows of one length, evenly spaced in nested loops on both sides. [level], fastest first.
struct rows {
    std::size_t nbytes = 0; ///< of each; not 0
    std::span<const std::size_t> counts;
    std::span<const std::ptrdiff_t> remote_strides; ///< bytes
    std::span<const std::ptrdiff_t> local_strides;

    [[nodiscard]] std::size_t total_bytes() const {
        return std::accumulate(counts.begin(), counts.end(), nbytes, std::multiplies<>());
    }
};

/// In whose memory the ends of a transfer are, as networks tell them apart.
enum class memory_kind : std::uint8_t { host, cuda, hip };
struct memory_ends {
    memory_kind remote = memory_kind::host;
    memory_kind local = memory_kind::host;

    [[nodiscard]] bool are_host() const {
        return remote == memory_kind::host && local == memory_kind::host;
    }
};

/// Of one memory; the address is that of the process whose memory it is.
struct memory_range {
    memory_kind kind = memory_kind::host;
    std::uint64_t address = 0;
    std::size_t nbytes = 0;

    [[nodiscard]] bool holds(const memory_range &part) const {
        std::uint64_t const offset = part.address - address;
        return part.kind == kind && offset < nbytes && part.nbytes <= nbytes - offset;
    }
};

/// For a network that has to know memory of devices when it is made.
struct device_range {
    memory_range range;
    int device = 0; ///< its vendor's number
};
/// Makes memory for the segments of this process's devices of these kinds; it stays there until the
/// process ends. Waits for nobody. Once.
using device_range_maker = std::function<std::vector<device_range>(std::span<const memory_kind>)>;

/// Makes a device the calling thread's own while the result lives.
using device_scope = std::function<std::shared_ptr<void>()>;

/// What networks do with a word of 4 or 8 bytes, and do right: UCX 1.13 has AND, OR and XOR as
/// well, which its transport to the own process gets wrong.
enum class atomic_op : std::uint8_t { add, exchange, compare_exchange };
struct atomic_call {
    atomic_op op;
    std::size_t nbytes;         ///< 4 or 8
    std::uint64_t operand;      ///< its low bytes
    std::uint64_t expected = 0; ///< of compare_exchange
};

/// Takes messages of send_bulk as they arrive, inside the conduit's progress: it copies the data
/// where it belongs, may take leaf locks, and must not call the conduit.
using bulk_sink = std::function<void(const message &)>;

/// Where the data of a message of send_bulk shall go, whose first byte is about to come; nullptr:
/// anywhere. Called like a bulk_sink, with the message without its data. The sink then finds the
/// data there, and need not copy it.
using bulk_placer = std::function<std::byte *(const message &announced, std::size_t nbytes)>;

/// Told once per peer that is given up, with a sentence that names the peer's host and what was
/// outstanding. Any thread; must not block.
using failure_sink = std::function<void(world_rank peer, std::string why)>;

/// What brings about the condition of a wait.
enum class awaited : std::uint8_t {
    store,  ///< of another rank of the node or another thread
    message ///< its handler, or what a network does
};

/// All calls may come from any thread.
class conduit {
public:
    virtual ~conduit() = default;

    [[nodiscard]] virtual const capabilities &abilities() const = 0;

    /// Where the peer's segment is mapped in this process, nullptr if it is not direct. Does not
    /// block.
    [[nodiscard]] virtual std::byte *direct_base(world_rank peer) const = 0;

    /// Starts to copy `nbytes` from `source` to an address in the peer's segment. Peers that are
    /// not direct only; the range has been checked. Returns with `source_free` unchanged if the
    /// source may be reused already. May wait for room in the send queue, making progress; an error
    /// means that nothing was started.
    virtual status put(world_rank peer, std::uint64_t remote_address, const void *source,
                       std::size_t nbytes, completion &source_free);
    /// Starts to copy from an address in the peer's segment. `done` counts the arrival.
    virtual status get(world_rank peer, std::uint64_t remote_address, void *destination,
                       std::size_t nbytes, completion &done);
    /// Whether the network itself reads and writes such memory of this process, wherever it lies.
    [[nodiscard]] virtual bool reaches(memory_kind kind) const { return kind == memory_kind::host; }
    /// Whether it does so in this range: some networks do where they were told of the memory when
    /// they were made (conduit_options::make_device_ranges).
    [[nodiscard]] virtual bool reaches_range(const memory_range &own) const {
        return reaches(own.kind);
    }
    /// Whether it joins all memory that both processes reach.
    [[nodiscard]] virtual bool works_between() const { return false; }
    /// Whether there are put_between and get_between for this range of the peer, which its own
    /// conduit reaches, and this local one.
    [[nodiscard]] virtual bool joins(world_rank /*peer*/, const memory_range & /*remote*/,
                                     const memory_range &local) const {
        return reaches_range(local);
    }
    /// As put and get with memory of devices at one end or both, within ranges that are joined; the
    /// remote address need not be in the segment. Whether they are need not be checked; a network
    /// that does gives OMPX_ERR_UNSUPPORTED.
    virtual status put_between(world_rank peer, std::uint64_t remote_address, const void *source,
                               std::size_t nbytes, memory_ends ends, completion &source_free);
    virtual status get_between(world_rank peer, std::uint64_t remote_address, void *destination,
                               std::size_t nbytes, memory_ends ends, completion &done);
    /// Before this process's memory of devices is at an end of a transfer: what their vendor's
    /// library wants in every thread that the network works in. The first one counts, until an
    /// empty one withdraws it.
    virtual void work_in(const device_scope & /*scope*/) {}
    /// The same of all rows at once; the addresses are those of the first one. The places of a
    /// put's rows do not overlap. false: nothing was started, since for this peer and rows of this
    /// length there is no better way than one put or get for each.
    virtual result<bool> put_rows(world_rank peer, std::uint64_t remote_address, const void *source,
                                  const rows &shape, completion &source_free);
    virtual result<bool> get_rows(world_rank peer, std::uint64_t remote_address, void *destination,
                                  const rows &shape, completion &done);
    /// Starts an operation on an aligned word in the segment of any rank, also the calling one's,
    /// that is atomic against all others of the job that go this way, and against nothing else. The
    /// old value goes to `result`, and `done` counts that. With nullptr it counts nothing, and a
    /// flush of that rank covers the operation as it does a put; but not the calling rank's.
    virtual status atomic(world_rank peer, std::uint64_t remote_address, const atomic_call &call,
                          void *result, completion &done);
    /// Starts the completion of all puts that the calling process has started towards `peer`, or to
    /// all peers: `done` counts until their bytes are visible there. Costs nothing where nothing is
    /// in flight.
    virtual status flush(world_rank peer, completion &done);
    virtual status flush_all(completion &done);

    /// Copies to or from registered private memory of a direct peer, in place of the peer's help.
    /// Blocks until the bytes have arrived. OMPX_ERR_UNSUPPORTED if the system forbids it or the
    /// peer is not direct: the caller falls back to messages.
    virtual status write_private(world_rank peer, std::uint64_t remote_address, const void *source,
                                 std::size_t nbytes) = 0;
    virtual status read_private(world_rank peer, std::uint64_t remote_address, void *destination,
                                std::size_t nbytes) = 0;

    /// Payload of one active message to this peer, the same in both directions. At least 240.
    [[nodiscard]] virtual std::size_t max_message_bytes(world_rank peer) const = 0;
    /// Queues a message; messages of one thread to one peer arrive in order. false: the queue is
    /// full, make progress and try again. Never blocks. The payload may be reused on return.
    [[nodiscard]] virtual bool try_send(world_rank peer, handler_id handler,
                                        std::span<const std::byte> payload) = 0;

    /// Starts to send a message with data behind its payload (at most 128 bytes of that), which
    /// goes to the peer's bulk_sink; in no order with anything else. `source_free` counts until the
    /// data may be reused. false: nothing was started, since the queue is full or this way does not
    /// exist for such a size or peer. Never blocks.
    virtual result<bool> send_bulk(world_rank peer, handler_id handler,
                                   std::span<const std::byte> payload,
                                   std::span<const std::byte> data, completion &source_free);
    /// Data up to this size can go to this peer by send_bulk, if not now then later; the same on
    /// both sides. 0: nobody knows before.
    [[nodiscard]] virtual std::size_t sure_bulk_bytes(world_rank /*peer*/) const { return 0; }
    /// Starts a put and behind it a message whose handler runs when the put's bytes are there, in
    /// no order with anything else; that it has run is how the caller knows, no flush asks for
    /// these bytes. `source_free` as in put. false: nothing was started, since the queue is full or
    /// this way does not exist for such a size or peer. Never blocks.
    virtual result<bool> put_with_message(world_rank peer, std::uint64_t remote_address,
                                          std::span<const std::byte> source, handler_id handler,
                                          std::span<const std::byte> payload,
                                          completion &source_free);
    /// Before the first transfer; empty ones at the end. Conduits that cannot choose where data
    /// goes do not ask the placer.
    virtual void receive_bulk_with(const bulk_sink & /*sink*/, const bulk_placer & /*placer*/) {}
    /// Data that is on its way to this place, which the placer has given, goes elsewhere from now
    /// on. Not from a sink or placer.
    virtual void divert_bulk(const std::byte * /*place*/) {}

    /// Hands waiting messages to the sink; returns how many. 0 at once if another thread is doing
    /// it.
    virtual int poll(message_sink sink) = 0;

    /// Changes whenever a sleeper is woken. Read it before looking for a reason not to sleep.
    [[nodiscard]] virtual std::uint32_t activity() const = 0;
    /// Sleeps until activity() differs from `seen` or the time is over. May return early.
    virtual void sleep(std::uint32_t seen, std::chrono::microseconds limit) = 0;
    /// Ends sleep() of this rank's threads.
    virtual void wake() = 0;
    /// Between these two the calling thread promises to poll, so that senders need not wake a
    /// sleeper. end_polling returns true if messages are waiting that nobody was woken for.
    virtual void begin_polling() = 0;
    [[nodiscard]] virtual bool end_polling() = 0;
    /// As sleep(), of a thread that waits for an operation and does not poll meanwhile. Asks
    /// ready() first; true, at once, if that was true. With `awaited::message` the sleep ends also
    /// when a network has something for this rank, with `awaited::store` when another rank calls
    /// wake_for_store(). May end late, after `limit`, when the rank itself is woken.
    virtual bool nap(awaited what, std::uint32_t seen, std::chrono::microseconds limit,
                     function_ref<bool()> ready);
    /// Ends nap(): another thread of this rank has done something that may have been waited for.
    virtual void wake_napping() {}
    /// Threads of this node that sleep until another rank has stored something. A rank that has
    /// written memory which another rank may wait for looks at it after its store, and calls
    /// wake_for_store() if there are any. No fence stands between: that would cost more than all
    /// the rest. So the writer may miss a thread that begins to sleep at this very moment, which
    /// then sleeps until its limit.
    [[nodiscard]] virtual const std::atomic<std::uint32_t> &store_sleepers() const;
    /// Ends nap() of the peer's threads if they sleep until there is a store.
    virtual void wake_for_store(world_rank /*peer*/) {}

    /// Before the first transfer. Conduits that cannot lose a peer ignore it.
    virtual void report_failures_to(const failure_sink & /*sink*/) {}
    /// How this peer is reached and why so, for diomp-info: "shm", "ucx (tcp, active messages):
    /// ...".
    [[nodiscard]] virtual std::string describe_path(world_rank peer) const = 0;
    /// What this process waits for at its peers, each with its host, as the end of a sentence about
    /// a wait that is long: "rank 1 on hostb: 1 get(s) of 8 bytes". "" if there is nothing.
    [[nodiscard]] virtual std::string describe_outstanding() const { return {}; }
    /// Collective over the job, once, when no thread starts anything any more: what was sent has
    /// arrived everywhere, so that ranks may end in any order. Blocks.
    virtual status close() { return {}; }
    /// The process ends while other threads may still be in calls: from here on no thread is inside
    /// the library of a network's vendor, whose destructors are about to run, or gets into it.
    /// Calls of other threads may never return. Blocks for a moment.
    virtual void freeze() {}
};

/// Bytes of control area per rank that the window must have for the conduit in use.
std::size_t control_bytes_per_rank();

struct conduit_options {
    std::string network = "auto"; ///< between nodes where the conduit is "auto"; as in create()
    bool cross_memory_attach = true;
    double dead_peer_timeout_s = 30; ///< a peer that answers nothing for so long is given up
    int ucx_workers = 0;             ///< threads that inject side by side; 0: chosen from the cores
    std::string tcp_interfaces;      ///< with commas between; empty: all
    std::size_t tcp_send_buffer_bytes = 0; ///< 0: chosen here
    std::string tcp_congestion = "auto";   ///< or one of the system's algorithms
    int num_network_peers = 0;             ///< ranks that the network reaches; create() sets it
    bool encrypts = false;                 ///< an error of create() for a network that cannot
    std::string network_rma = "auto";      ///< auto, rdma, messages
    std::string device_memory = "auto";    ///< auto, on, off: see conduit::reaches
    device_range_maker make_device_ranges; ///< empty: there are none
    bool native_atomics = false;           ///< an error of create() where there are none
};

/// Collective over the job. `window` must outlive the conduit. Names: "auto" (shm for ranks of this
/// node, options.network for others if there are any), "shm", and "ucx", "gasnet", "gaspi" and
/// "tcp" (for every rank but the caller's own). options.network: "auto", or the latter four.
result<std::unique_ptr<conduit>> create(const std::string &name, launch::launcher &launcher,
                                        const window &window, const conduit_options &options);

} // namespace diomp::conduit
