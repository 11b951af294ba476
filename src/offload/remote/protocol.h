// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The protocol between a client and a device service (diomp-deviced).
//
// Glossary. Client: the process that runs `main` and uses the devices. Session: the process that a
// service starts for one device of one client. World: the client (rank 0) and its sessions, or in a
// job the clients (the ranks of the job) and the sessions of all of them: the ranks of a separate
// address space. Control connection: one TCP connection per session, for
// everything off the critical path: handshake, addresses of the world, device images, output,
// shutdown. Batch: operations of one queue that travel in one active message of the world. The
// critical path of a target region consists of batches, puts and gets only.
//
// A control connection begins with the handshake of base/secure (control.h), in which the client
// names the device that it requests. A control frame is a length (u32) and a packet
// (base/packet.h), sealed. Numbers are in host order, since both sides are little-endian 64-bit
// machines.
#pragma once

#include "base/packet.h"
#include "base/result.h"
#include "transport/types.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace diomp::offload::remote {

/// Must be raised whenever a frame or a batch changes; the handshake compares it.
inline constexpr std::uint32_t protocol_version = 16;
inline constexpr std::uint16_t default_port = 7653;
inline constexpr std::size_t max_frame_bytes = std::size_t{1} << 30;
inline constexpr std::uint32_t max_ranks = 1U << 16; ///< of a world

enum class frame : std::uint8_t {
    refused = 1,   ///< to the client: reason (text); then the connection is closed
    accepted = 2,  ///< to the client: device_description
    join = 3,      ///< to the session: join_frame
    entry = 4,     ///< both directions: owner (u32), key, value (texts) of the world's start-up
    fence = 5,     ///< to the client: all own entries sent; to the session: all entries sent
    load = 6,      ///< to the session: load_frame
    wanted = 7,    ///< to the client: the session needs the image
    image = 8,     ///< to the session: its bytes
    loaded = 9,    ///< to the client: a location per symbol
    failed = 10,   ///< to the client, reply to load: reason (text)
    output = 11,   ///< to the client: stream (u8: 1 or 2), bytes
    stop = 12,     ///< to the session: no more batches follow
    stopped = 13,  ///< to the client: all output has been sent; kernel_times
    ended = 14,    ///< to the client, by the service: why the session ended (text), and the
                   ///< address (u64) whose access crashed it if that is known
    allocate = 15, ///< to the session: bytes (u64); for devices whose memory is not the slot
    release = 16,  ///< to the session: address (u64)
    done = 17,     ///< to the client, reply to these, to segment and to group: an address (u64), 0
                   ///< if it failed; and when the runtime of regions has started (0)
    lost = 18,     ///< to the session: rank (u32) of another device that was lost, reason (text)
    segment = 19,  ///< to the session: bytes, preferred address (u64s); allocates the device's
                   ///< segment, which calls in regions reach, if it has a runtime of regions
    group = 20,    ///< to the session: a group of the host for calls in regions, encoded by
                   ///< libdiomp.so. Not 0: it is freed, and the session had a group for it
};

/// Description of a device. `machine`: EM_* of the images that it runs.
struct device_description {
    std::uint32_t num_devices = 0; ///< of the service
    std::uint32_t machine = 0;
    std::uint64_t memory_bytes = 0;
    std::uint32_t num_threads = 0;
    std::string host;
    transport::host_identity identity;
    std::string kind;                   ///< "cpu", or LLVM's plugin: "host", "cuda", "amdgpu"
    std::string name;                   ///< human-readable
    std::string architecture;           ///< of images for that machine: "sm_90", "gfx90a"; "": any
    std::uint64_t own_memory_bytes = 0; ///< outside the slot; 0: none, or unknown
    bool has_rdma_adapter = false;
    bool operator==(const device_description &) const = default;

    /// Whether the session's slot is the device's memory. Otherwise the slot holds stage buffers,
    /// and the device's own allocator provides the memory.
    [[nodiscard]] bool has_memory_in_slot() const { return kind == "cpu"; }
    /// Whether it is a GPU, in whose regions calls work by its own runtime.
    [[nodiscard]] bool is_gpu() const { return kind == "cuda" || kind == "amdgpu"; }
};

/// Rank of a session in the world, and properties of that world.
struct join_frame {
    std::uint32_t rank = 0;
    std::uint32_t size = 0;
    std::uint32_t num_clients = 1; ///< the ranks below
    std::uint32_t client = 0;      ///< rank of the session's client
    std::string conduit;
    bool is_on_one_host = false; ///< the whole world: no port is open to other hosts
    bool encrypts_data = false;  ///< between all ranks of the world
    std::uint32_t node_size = 0; ///< world_options::node_size
    /// Whether regions can make calls: all clients have a device of the session's index, all of
    /// them processors or all of them GPUs. The session starts the runtime then, with these values
    /// of DIOMP_TIMEOUT and, for GPUs, DIOMP_DEVICE_SEGMENT_SIZE.
    bool has_runtime = false;
    std::string timeout = "0";
    std::uint64_t segment_bytes = 0;
    bool operator==(const join_frame &) const = default;
};

/// Identifies an image: its size and a 128-bit hash of its bytes.
struct image_id {
    std::uint64_t nbytes = 0;
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    auto operator<=>(const image_id &) const = default;
};
[[nodiscard]] image_id identify(std::string_view image);
[[nodiscard]] std::string to_string(const image_id &id);

/// A kernel or a variable of an image.
struct symbol {
    std::string name;
    std::uint64_t nbytes = 0;
    bool operator==(const symbol &) const = default;
};

struct load_frame {
    image_id image;
    std::vector<symbol> symbols;
};

/// Address of a symbol on the device.
struct location {
    std::uint64_t address = 0; ///< 0: not defined
    bool is_variable = false;  ///< all of the symbol's bytes are writable
    bool operator==(const location &) const = default;
};

/// Number of calls of a kernel in a session, and their times.
struct kernel_time {
    std::string name;
    std::uint64_t calls = 0;
    std::uint64_t total_ns = 0;
    std::uint64_t longest_ns = 0;
    bool operator==(const kernel_time &) const = default;
};

[[nodiscard]] std::string encode(const device_description &description);
[[nodiscard]] std::string encode(const join_frame &join);
[[nodiscard]] std::string encode(const load_frame &load);
[[nodiscard]] std::string encode(std::span<const location> locations);
/// Encodes the frame `stopped`.
[[nodiscard]] std::string encode(std::span<const kernel_time> times);
/// The decoders expect a packet whose type has been read. Errors: OMPX_ERR_ARG.
result<device_description> decode_device_description(packet_reader &packet);
/// On success, the rank is that of a session, and the size is valid for a world.
result<join_frame> decode_join(packet_reader &packet);
result<load_frame> decode_load(packet_reader &packet);
/// `count`: the number of symbols.
result<std::vector<location>> decode_loaded(packet_reader &packet, std::size_t count);
result<std::vector<kernel_time>> decode_stopped(packet_reader &packet);

/// The operations of a batch. Addresses are device addresses.
enum class operation : std::uint8_t {
    put = 1,           ///< address (u64), bytes (text)
    get = 2,           ///< address, size (u64 each): the reply contains the bytes
    copy = 3,          ///< destination rank (u32), destination, source, size (u64 each)
    launch = 4,        ///< launch_arguments
    wait = 5,          ///< queue, batch (u64 each) of the same device; later operations wait for it
    finish = 6,        ///< the last operation of its batch: requests a reply
    release_pages = 7, ///< number (u32) of ranges of the slot, address and size (u64 each) of each
    // For network-accessible device memory that is not the slot: zero_copy_transfer.
    fetch = 8,   ///< from the client's memory
    deliver = 9, ///< to the client's memory
    pull = 10,   ///< like copy, to this device: source rank, destination, source, size
    // A call of the host that the session's runtime makes. Its encoding is that of libdiomp.so.
    call_part = 11, ///< bytes (text): the next ones of the call
    call = 12,      ///< the reply contains its outcome: call_outcome_bytes
    // Like copy and pull, but in no order with other copies: the last operation of its batch, which
    // is replied to when the copy is complete. One reply may be for several batches: it has the
    // numbers (u64 each) of all of them.
    begin_copy = 13,
    begin_pull = 14,
};
/// The queue of batches that end with begin_copy or begin_pull.
inline constexpr std::uint64_t started_queue = ~std::uint64_t{0};
inline void append_operation(packet_writer &to, operation what) {
    to.number(static_cast<std::uint8_t>(what));
}
/// Header of a batch, before its operations: queue, batch (u64 each).
inline constexpr std::size_t batch_header_bytes = 16;
inline constexpr std::size_t put_header_bytes = 1 + 8 + 4;

/// Launch parameters of a kernel. CPU devices use the arguments only.
struct launch_arguments {
    std::uint64_t kernel = 0;
    std::uint32_t version = 0; ///< of LLVM's KernelArgsTy
    std::uint32_t num_teams[3] = {0, 0, 0};
    std::uint32_t thread_limit[3] = {0, 0, 0};
    std::uint64_t trip_count = 0;
    std::uint32_t dynamic_memory_bytes = 0;
    std::string_view arguments; ///< 8 bytes each
};
void append(packet_writer &to, const launch_arguments &launch);
launch_arguments decode_launch(packet_reader &from);

/// A transfer between memory of another rank and memory of the device.
struct zero_copy_transfer {
    std::uint64_t address = 0;      ///< on the device
    std::uint64_t peer_address = 0; ///< in the other rank
    std::uint64_t nbytes = 0;
};
void append(packet_writer &to, const zero_copy_transfer &what);
zero_copy_transfer decode_zero_copy(packet_reader &from);

/// Request from the session of a copy's source to the session of its target, whose memory is not
/// the slot: fetch these bytes. The reply is the ticket (u64), followed by the reason of a failure.
struct peer_copy {
    std::uint64_t ticket = 0;
    zero_copy_transfer transfer; ///< from the target's point of view
    transport::memory_kind source_memory = transport::memory_kind::host;
};
[[nodiscard]] std::string encode(const peer_copy &copy);
result<peer_copy> decode_peer_copy(std::string_view bytes);

/// An error of a call that a region has made.
struct call_error {
    std::int32_t code = 0;
    std::string function;
    std::string arguments;
    std::string message;
    std::string remedy;
    bool operator==(const call_error &) const = default;
};
[[nodiscard]] std::string encode(const call_error &of);
result<call_error> decode_call_error(std::string_view bytes);

/// Outcome of operation::call: an encoded call_error (text), empty for success, padded to this
/// size.
inline constexpr std::size_t call_outcome_bytes = 1024;
inline constexpr std::size_t max_call_part_bytes = 2048;
[[nodiscard]] std::string encode_call_outcome(const std::optional<call_error> &of);
result<std::optional<call_error>> decode_call_outcome(std::string_view bytes);

/// Reply to operation::finish: queue, batch (u64 each), failed (u8), bytes of standard output and
/// of standard error that the session has sent so far (u64 each), the kernel that took longest and
/// its time in microseconds (u64 each), an error of a call in a region (text: an encoded
/// call_error, or empty), then the bytes of the gets, or the reason of the failure.
struct batch_reply {
    std::uint64_t queue = 0;
    std::uint64_t batch = 0;
    bool failed = false;
    std::uint64_t output_bytes[2] = {0, 0};
    std::uint64_t kernel = 0; ///< 0: none was launched
    std::uint64_t kernel_us = 0;
    std::string_view call_error;
    std::string_view rest;
};
inline constexpr std::size_t reply_header_bytes = 53;
[[nodiscard]] std::string encode(const batch_reply &reply);
result<batch_reply> decode_reply(std::string_view bytes);

} // namespace diomp::offload::remote
