// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Data that the interfaces of networks share.
//
// Glossary: segment: the slot of a rank in the arena. direct: the calling process can load and
// store the peer's segment; the layers above then copy by themselves and do not call a network.
// put and get: transfers between memory of this process and the segment of a peer that is not
// direct. flush: completion of puts at their targets. private memory: memory of a peer outside its
// segment, which the peer has registered. active message: a handler number and a payload; the
// handler runs at the target in the thread that makes progress there, must not block, and may send.
// AM long: an active message with a long payload.
//
// Order: messages of one thread to one peer are handled in order. Puts are ordered neither among
// themselves nor with messages: flush in between.
#pragma once

#include "base/assert.h"
#include "base/function_ref.h"
#include "base/ids.h"
#include "base/result.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace diomp::transport {

using handler_id = std::uint16_t;

inline constexpr const char *unknown_network = "-";

/// What tells hosts apart. Neither part has spaces.
struct host_identity {
    std::string node; ///< launch::node_identity()
    /// A hash of the inode of the network namespace and of the interfaces with addresses: their
    /// names, hardware addresses and addresses. Unknown without such an interface.
    std::string network = unknown_network;

    /// Whether each address leads to the same interface from both: on one node, and between
    /// containers with a boot id, hence a node, of their own, and the network of their host.
    [[nodiscard]] bool shares_interfaces_with(const host_identity &other) const;
    bool operator==(const host_identity &) const = default;
};

/// A message as its handler receives it. `payload` and `long_payload` are valid during the call
/// only.
struct message {
    world_rank source;
    handler_id handler = 0;
    std::span<const std::byte> payload;
    std::span<const std::byte> long_payload; ///< AM long only, else empty
};

using message_handler = function_ref<void(const message &)>;

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
        [[maybe_unused]] auto const before = pending.fetch_sub(1, std::memory_order_release);
        DIOMP_ASSERT(before > 0, "a transfer ends once, after its begin");
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
    store,   ///< a store by another rank of the node or another thread
    message, ///< a message handler, the progress of a network, or what only a poll finds
    handler, ///< a message handler or a completion of this rank, and nothing else
};

} // namespace diomp::transport
