// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a rank and diomp-run say to each other over one SOCK_SEQPACKET pair per rank.
//
// diomp-run puts `welcome` into the socket before it starts the rank, so joining waits for nobody.
// Values that a rank puts travel with its next fence; when all ranks of the job are in the fence,
// the rank's diomp-run sends it all values that ranks of its own node have put since the last one,
// then `fence_done`. What each costs:
//   values of the own node   come with the fence; reading one is a look-up in the rank. A fence
//                            of n ranks per node with v values each brings n v entries to each
//                            rank: for the tens of ranks of a node less than one question each.
//   values of other nodes    nothing until somebody asks. The first `get` on a node costs a packet
//                            to its diomp-run, a round trip over TCP to the user's diomp-run and
//                            back; the next rank of the node only the two packets (some 10 us),
//                            the same rank a look-up. A rank holds what it has asked for.
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
inline constexpr std::uint32_t protocol_version = 4;
/// First field of `welcome`; tells our socket from any other that has the same number.
inline constexpr std::uint64_t protocol_magic = 0x68636e75616c6f69;
/// Largest packet. Well under the kernel's default socket buffer (208 KiB), which a packet must
/// fit.
inline constexpr std::size_t max_packet_bytes = std::size_t{64} * 1024;
/// Longest key and value together that put() accepts.
inline constexpr std::size_t max_entry_bytes = std::size_t{32} * 1024;

/// Environment of a rank. All but the last are for the runtime, which removes them when it has
/// joined so that the rank's own children do not try to; DIOMP_RANK stays for users' scripts.
inline constexpr const char *fd_variable = "DIOMP_LAUNCH_FD";
inline constexpr const char *rank_variable = "DIOMP_LAUNCH_RANK";
inline constexpr const char *size_variable = "DIOMP_LAUNCH_SIZE";
inline constexpr const char *job_variable = "DIOMP_LAUNCH_JOB";
/// Only in jobs on several hosts: the job and the node's number in it. Tells processes of one node
/// from those of another where both run on one machine.
inline constexpr const char *node_variable = "DIOMP_LAUNCH_NODE";
inline constexpr const char *user_rank_variable = "DIOMP_RANK";

enum class packet_type : std::uint8_t {
    welcome = 1,    ///< to the rank: welcome_packet, with two descriptors as SCM_RIGHTS: of
                    ///< the watch, and of what tells ranks to show their stacks
    hello = 2,      ///< to diomp-run: pid (u32)
    entries = 3,    ///< both ways: entry*, each owner (u32), key, value
    fence = 4,      ///< to diomp-run: no fields
    fence_done = 5, ///< to the rank: forget (u8); 1: values got from other nodes may have changed
    finalize = 6,   ///< to diomp-run: no fields
    abort = 7,      ///< to diomp-run: code (u32), message
    get = 8,        ///< to diomp-run: owner (u32), key; the owner is a rank of another node
    value = 9,      ///< to the rank, answers get: found (u8), value
    // To diomp-run:
    give_up = 10,      ///< as abort, after a wait in vain: all ranks are to show their stacks
    stacks_ready = 11, ///< the rank will show its stacks when asked; no fields
    stacks_shown = 12, ///< it has; no fields
    loss = 13,         ///< a peer is lost: rank (u32), or unknown_peer
};

inline constexpr std::uint32_t unknown_peer = 0xffffffff;

struct welcome_packet {
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

[[nodiscard]] std::string encode_welcome(const welcome_packet &welcome);
/// An error says what differs: not a launcher's packet, or another version.
result<welcome_packet> decode_welcome(std::string_view bytes);

/// Packs entries into as few `entries` packets as fit.
[[nodiscard]] std::vector<std::string> encode_entries(const std::vector<entry> &items);
/// Appends the entries of a packet whose type has been read; an error if it is malformed.
status decode_entries(packet_reader &packet, std::vector<entry> &into);

} // namespace diomp::launch::local
