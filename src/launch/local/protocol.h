// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The protocol between a rank and diomp-run, over one SOCK_SEQPACKET pair per rank.
//
// diomp-run puts `rank_info` into the socket before it starts the rank, so joining does not wait.
// Values that a rank puts are sent with its next fence. When all ranks of the job are in the fence,
// the rank's diomp-run sends it all values that ranks of its own node have put since the last one,
// then `fence_done`. Costs:
//   values of the own node   are sent with the fence; reading one is a look-up in the rank. A fence
//                            of n ranks per node with v values each sends n v entries to each
//                            rank: for the tens of ranks of a node less than one request each.
//   values of other nodes    cost nothing until a `get`. The first `get` on a node costs a packet
//                            to its diomp-run, a round trip over TCP to the user's diomp-run and
//                            a packet back; a `get` of another rank of the node only the two
//                            packets (some 10 us), a repeated one a look-up: the rank caches it.
// A packet is one type byte and its fields; both sides run on one machine, so numbers are in host
// order.
#pragma once

#include "base/packet.h"
#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace diomp::launch::local {

/// Changes whenever a packet changes: the runtime and diomp-run may come from different builds.
inline constexpr std::uint32_t protocol_version = 5;
/// First field of `rank_info`, which distinguishes the socket from another file with its number.
inline constexpr std::uint64_t protocol_magic = 0x68636e75616c6f69;
/// Largest packet. Well under the kernel's default socket buffer (208 KiB), which a packet must
/// fit.
inline constexpr std::size_t max_packet_bytes = std::size_t{64} * 1024;
/// Longest key and value together that put() accepts.
inline constexpr std::size_t max_entry_bytes = std::size_t{32} * 1024;

/// Up to this number of ranks of a node, fences deliver the values of all of them to all of them,
/// since most are read. Above it they deliver those of rank 0, and ranks request the others: a
/// node of thousands of ranks would spend its time on copies of values that no rank reads.
inline constexpr int max_delivered_ranks = 256;
[[nodiscard]] constexpr bool is_delivered(int owner, int ranks_of_node) {
    return owner == 0 || ranks_of_node <= max_delivered_ranks;
}

/// Environment of a rank. All but the last are for the runtime, which removes them after joining so
/// that children of the rank do not try to join; DIOMP_RANK stays for users' scripts.
inline constexpr const char *fd_variable = "DIOMP_LAUNCH_FD";
inline constexpr const char *rank_variable = "DIOMP_LAUNCH_RANK";
inline constexpr const char *size_variable = "DIOMP_LAUNCH_SIZE";
inline constexpr const char *job_variable = "DIOMP_LAUNCH_JOB";
/// Only in jobs on several hosts: the job and the number of the node in it. Distinguishes processes
/// of different nodes that run on one machine.
inline constexpr const char *node_variable = "DIOMP_LAUNCH_NODE";
inline constexpr const char *user_rank_variable = "DIOMP_RANK";

enum class packet_type : std::uint8_t {
    rank_info = 1,  ///< to the rank: rank_info_packet, with two descriptors as SCM_RIGHTS: one
                    ///< that reports the end of the job, one that requests stacks, by
                    ///< each byte, and by its end of file before the end of the job
    hello = 2,      ///< to diomp-run: pid (u32)
    entries = 3,    ///< both ways: entry*, each owner (u32), key, value
    fence = 4,      ///< to diomp-run: no fields
    fence_done = 5, ///< to the rank: invalidate (u8); 1: values of other nodes may have changed
    finalize = 6,   ///< to diomp-run: no fields
    abort = 7,      ///< to diomp-run: code (u32), message
    get = 8,        ///< to diomp-run: owner (u32), key; the owner is a rank of another node, or
                    ///< its values are not delivered (is_delivered)
    value = 9,      ///< to the rank, reply to get: found (u8), value
    // To diomp-run:
    give_up = 10,      ///< abort after a timeout: all ranks are to print their stacks first
    stacks_ready = 11, ///< the rank can print its stacks; no fields
    stacks_shown = 12, ///< the rank has printed its stacks; no fields
    loss = 13,         ///< a peer is lost: rank (u32), or unknown_peer
};

inline constexpr std::uint32_t unknown_peer = 0xffffffff;

struct rank_info_packet {
    std::uint32_t version = protocol_version;
    std::uint32_t rank = 0;
    std::uint32_t size = 1;
    /// Ranks of this node: node_size of them from node_first on.
    std::uint32_t node_first = 0;
    std::uint32_t node_size = 1;
    std::string job_id;
    std::string host;
};

struct entry {
    std::uint32_t owner = 0;
    std::string key;
    std::string value;
    bool operator==(const entry &) const = default;
};

/// Bytes that an entry takes in a packet.
[[nodiscard]] std::size_t encoded_size(const entry &item);

[[nodiscard]] std::string encode_rank_info(const rank_info_packet &rank_info);
/// An error if the packet is not one of diomp-run or has another version.
result<rank_info_packet> decode_rank_info(std::string_view bytes);

/// Packs entries into as few `entries` packets as fit.
[[nodiscard]] std::vector<std::string> encode_entries(const std::vector<entry> &items);
/// Appends the entries of a packet whose type has been read; an error if it is malformed.
status decode_entries(packet_reader &packet, std::vector<entry> &into);

} // namespace diomp::launch::local
