// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the diomp-run that the user has started (the head) and the one on each host (an agent) say
// to each other over one TCP connection per host.
//
// The connection begins with the handshake of base/secure: the agent proves that it is the agent of
// this index and the head that it is the head of this job, by a secret that the agent has read from
// its standard input. A frame is sealed; it has a type byte and fields as packet_writer writes
// them, in host order: both ends must be of one architecture anyway, since they start the same
// program.
//
//   head: setup   agent: ready   ... all are ready ...   head: go
//
// An agent sends `alive` regularly. The head does not: an agent notices its end by the connection,
// which the kernels keep under watch, and a head that the user has stopped is not gone.
// Output and input have windows: whoever has sent window_bytes waits for word that they are used.
#pragma once

#include "launch/local/protocol.h"
#include "options.h"
#include "rank_environment.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace diomp::run {

inline constexpr std::uint32_t agent_protocol_version = 4;
inline constexpr std::size_t window_bytes = std::size_t{64} * 1024;

enum class frame_type : std::uint8_t {
    // From the head.
    setup = 2,          ///< agent_setup
    go = 3,             ///< start the ranks
    end = 4,            ///< signal (u8), tell (u8): node::end
    kill = 5,           ///< node::kill
    signal = 6,         ///< number (u8)
    fence_done = 7,     ///< forget (u8)
    value = 8,          ///< owner (u32), key, found (u8), value
    output_taken = 9,   ///< bytes (u32)
    output_closed = 10, ///< which (u8): nobody reads it any more
    input = 11,         ///< text for rank 0; no text: the end
    show_stacks = 12,   ///< node::ask_stacks
    look = 13,          ///< report what has happened at the ranks; `looked` follows
    // From an agent.
    ready = 21,        ///< the program is there
    start_failed = 22, ///< exit status (u8), message
    message = 23,      ///< a line for the user
    joined = 24,       ///< rank (u32), pid (u32)
    finalized = 25,    ///< rank (u32)
    exited = 26,       ///< rank (u32), pid (u32), code (u32), signal (u32), core dumped (u8),
                       ///< reason
    aborted = 27,      ///< rank (u32), pid (u32), code (u32)
    bad_rank = 28,     ///< rank (u32), pid (u32), what
    entries = 29,      ///< as the local protocol has them; the ranks' since the last fence
    fence = 30,        ///< all ranks of the node are in the fence
    get = 31,          ///< owner (u32), key
    output = 32,       ///< rank (u32), which (u8), text
    input_taken = 33,  ///< bytes (u32); 0: rank 0 reads no more
    done = 34,         ///< clean (u8): no process of the job is left here
    alive = 35,
    gave_up = 36,     ///< as aborted; all ranks of the job are to show their stacks
    stacks_over = 37, ///< every rank of the host has shown its stacks, or will not
    looked = 38,      ///< answers look
    loss = 39,        ///< rank (u32), pid (u32), lost rank (u32) as in the local protocol
    closed = 40,      ///< rank (u32), pid (u32): its process is ending
};

using frame_writer = packet_writer;
using frame_reader = packet_reader;

/// What an agent reads from its standard input, where nobody else can see it.
struct agent_invitation {
    int index = 0;
    std::string secret;          ///< of the job, secure::secret::encode()
    double timeout_s = 0;        ///< silence after which the other end counts as gone
    std::string ignored_signals; ///< numbers with commas; see signal_dispositions.h
    std::vector<std::pair<std::string, std::string>> addresses; ///< numeric address, port
};
[[nodiscard]] std::string encode_invitation(const agent_invitation &invitation);
result<agent_invitation> decode_invitation(const std::string &text);
/// The line that ends an invitation.
inline constexpr std::string_view invitation_end = "end\n";

struct agent_setup {
    std::uint32_t world_size = 0;
    std::uint32_t first_rank = 0;
    std::uint32_t ranks = 0;
    binding bind = binding::automatic;
    bool verbose = false;
    std::string job_id;
    std::string host; ///< as the user calls it
    std::string directory;
    std::string search_path;
    std::string output_dir;
    std::vector<std::string> command;
    named_settings environment;
    std::vector<std::string> remote_devices; ///< of each rank, or none at all
};
[[nodiscard]] std::string encode_setup(const agent_setup &setup);
/// The type has been read.
result<agent_setup> decode_setup(frame_reader &frame);

/// Entries in frames.
[[nodiscard]] std::vector<std::string> entry_frames(const std::vector<launch::local::entry> &items);

/// How often an agent says that it is alive, and the head looks whether all have.
[[nodiscard]] double heartbeat_interval(double timeout_s);

/// A frame with numbers only.
template <typename... Number>
[[nodiscard]] std::string small_frame(frame_type type, Number... numbers) {
    frame_writer frame(type);
    (frame.number(numbers), ...);
    return frame.take();
}

} // namespace diomp::run
