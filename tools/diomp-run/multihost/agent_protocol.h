// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The protocol between the diomp-run that the user has started (the head) and the diomp-run on each
// host (an agent): one TCP connection per host.
//
// The connection begins with the handshake of base/secure: the agent proves its index and the head
// proves that it belongs to this job, both with a secret that the agent has read from its standard
// input. Frames are encrypted and authenticated. A frame has a type byte and fields as
// packet_writer writes them, in host byte order: all hosts run the same program, hence have the
// same architecture.
//
//   head: setup   agent: ready   ... all are ready ...   head: go
//
// An agent sends `alive` as a heartbeat. The head does not: an agent detects the end of the head by
// TCP keepalive, and a head that the user has stopped (SIGSTOP) has not failed. Output and input
// have flow control: a sender with max_unacked_bytes unacknowledged bytes waits for an
// acknowledgement.
#pragma once

#include "core/options.h"
#include "core/rank_environment.h"
#include "launch/local/protocol.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace diomp::run {

inline constexpr std::uint32_t agent_protocol_version = 4;
inline constexpr std::size_t max_unacked_bytes = std::size_t{64} * 1024;

enum class frame_type : std::uint8_t {
    // Sent by the head.
    setup = 2,          ///< agent_setup
    go = 3,             ///< start the ranks
    end = 4,            ///< signal (u8), notify (u8): rank_terminator::end
    kill = 5,           ///< rank_terminator::kill
    signal = 6,         ///< number (u8)
    fence_done = 7,     ///< invalidate (u8)
    value = 8,          ///< owner (u32), key, found (u8), value
    output_ack = 9,     ///< bytes (u32)
    output_closed = 10, ///< which (u8): its reader has closed it
    input = 11,         ///< text for rank 0; empty at the end of the input
    show_stacks = 12,   ///< stack_collector::request
    poll = 13,          ///< report the state of the ranks; `polled` follows
    // Sent by an agent.
    ready = 21,        ///< the program was found
    start_failed = 22, ///< exit status (u8), message
    message = 23,      ///< a line for the user
    joined = 24,       ///< rank (u32), pid (u32)
    finalized = 25,    ///< rank (u32)
    exited = 26,       ///< rank (u32), pid (u32), code (u32), signal (u32), core dumped (u8),
                       ///< reason
    aborted = 27,      ///< rank (u32), pid (u32), code (u32)
    bad_rank = 28,     ///< rank (u32), pid (u32), what
    entries = 29,      ///< in the encoding of the local protocol; published since the last fence
    fence = 30,        ///< all ranks of the node are in the fence
    get = 31,          ///< owner (u32), key
    output = 32,       ///< rank (u32), which (u8), text
    input_ack = 33,    ///< bytes (u32); 0: rank 0 has closed its input
    done = 34,         ///< clean (u8): no process of the job is left on the host
    alive = 35,
    gave_up = 36,     ///< as `aborted`, after a timeout; all ranks print their stacks first
    stacks_done = 37, ///< the ranks of the host have printed their stacks, or will not
    polled = 38,      ///< reply to `poll`
    loss = 39,        ///< rank (u32), pid (u32), lost rank (u32) as in the local protocol
    closed = 40,      ///< rank (u32), pid (u32): the process is ending
};

using frame_writer = packet_writer;
using frame_reader = packet_reader;

/// The data that an agent reads from its standard input, which other users cannot read.
struct agent_bootstrap {
    int index = 0;
    std::string secret;          ///< the job's secret, from secure::secret::encode()
    double timeout_s = 0;        ///< silence after which the peer counts as lost
    std::string ignored_signals; ///< comma-separated numbers; see signal_dispositions.h
    std::vector<std::pair<std::string, std::string>> addresses; ///< numeric address, port
};
[[nodiscard]] std::string encode_bootstrap(const agent_bootstrap &bootstrap);
result<agent_bootstrap> decode_bootstrap(const std::string &text);
/// The last line of the bootstrap data.
inline constexpr std::string_view bootstrap_end = "end\n";

struct agent_setup {
    std::uint32_t world_size = 0;
    rank_block block; ///< its name as the user has written it
    binding bind = binding::automatic;
    bool verbose = false;
    std::string job_id;
    std::string directory;
    std::string search_path;
    std::string output_dir;
    std::vector<std::string> command;
    named_settings environment;
    std::vector<std::string> remote_devices; ///< [rank - first_rank], or empty
};
[[nodiscard]] std::string encode_setup(const agent_setup &setup);
/// Decodes a frame whose type byte has been read.
result<agent_setup> decode_setup(frame_reader &frame);

/// Encodes entries as frames of type `entries`.
[[nodiscard]] std::vector<std::string> entry_frames(const std::vector<launch::local::entry> &items);

/// Seconds between two heartbeats of an agent, and between two checks by the head.
[[nodiscard]] double heartbeat_interval(double timeout_s);

/// Makes a frame that consists of numbers.
template <typename... Number>
[[nodiscard]] std::string small_frame(frame_type type, Number... numbers) {
    frame_writer frame(type);
    (frame.number(numbers), ...);
    return frame.take();
}

} // namespace diomp::run
