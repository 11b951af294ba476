// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// GPI-2 in this process: started once, connected to every other rank, never stopped.
//
// Never, since gaspi_proc_term waits for peers without a limit. Its threads sleep until the process
// ends. Ranks of GASPI are ranks of the world.
#pragma once

#include "launch/launch.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace diomp::launch::gaspi {

/// Who uses what of GPI-2. One queue is the launcher's, the others are the conduit's.
inline constexpr std::uint8_t num_queues = 16;
inline constexpr std::uint8_t launcher_queue = 15;
/// Entries of a queue, of GPI-2's own default.
inline constexpr std::size_t queue_entries = 1024;
enum class segment : std::uint8_t {
    board,  ///< the launcher's
    window, ///< the rank's slot
    work,   ///< the conduit's own memory
    anywhere,
};

/// Notifications of a segment, for a job of this size: the conduit has two per rank.
[[nodiscard]] constexpr std::uint32_t num_notifications(int size) {
    return 2 * static_cast<std::uint32_t>(size) + 256;
}

/// Collective over a job that another launcher has started: agrees on hosts and free ports, starts
/// GPI-2 and connects all ranks. Nothing if it runs already.
status start(launcher &launcher);

/// The same under gaspi_run, by its variables.
status start_by_environment(int rank, int size);

/// Memory of this rank that all others may read, zeros at first.
[[nodiscard]] std::span<std::byte> board();

/// False if the rank's process has ended. Does not return while that is stopped.
[[nodiscard]] bool is_alive(int rank);
/// Ends the rank's process.
void kill(int rank) noexcept;

/// Makes memory of this rank a segment that others reach, and waits until theirs are known here.
/// Collective. Networks that pin memory pin all of it.
status share(segment which, void *memory, std::size_t nbytes);

/// "<doing>: <GPI-2's word for the code>".
error gaspi_error(const std::string &doing, int code, std::string remedy = {});

} // namespace diomp::launch::gaspi
