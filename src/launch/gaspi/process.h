// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// GPI-2 in this process: started once, connected to every other rank, never stopped.
//
// It is not stopped since gaspi_proc_term waits for peers without a time limit. Its threads sleep
// until the process ends. Ranks of GASPI are ranks of the world.
#pragma once

#include "launch/launch.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace diomp::launch::gaspi {

/// Resources of GPI-2. One queue belongs to the launcher, the others to the conduit.
inline constexpr std::uint8_t num_queues = 16;
inline constexpr std::uint8_t launcher_queue = 15;
/// Entries per queue, GPI-2's default.
inline constexpr std::size_t queue_entries = 1024;
enum class segment : std::uint8_t {
    kv_area, ///< of the launcher
    arena,   ///< the slot of the rank
    work,    ///< memory of the conduit
    anywhere,
};

/// Notifications per segment for a job of this size; the conduit uses two per rank.
[[nodiscard]] constexpr std::uint32_t num_notifications(int size) {
    return 2 * static_cast<std::uint32_t>(size) + 256;
}

/// Starts GPI-2 in a job of another launcher: selects addresses and free ports and connects all
/// ranks. Collective. Does nothing if GPI-2 runs already.
status start(launcher &launcher);

/// Starts GPI-2 under gaspi_run, by its variables. Collective.
status start_by_environment(int rank, int size);

/// Memory of this rank that all others may read, zeros at first.
[[nodiscard]] std::span<std::byte> kv_area();

/// False if the rank's process has ended. Blocks while that process is stopped.
[[nodiscard]] bool is_alive(int rank);
/// Ends the rank's process.
void kill(int rank) noexcept;

/// Registers memory of this rank as a segment for all ranks, and waits for the registrations of the
/// others. Collective. Networks that pin memory pin all of it.
status register_segment(segment which, void *memory, std::size_t nbytes);

/// An error with the text "<operation>: <GPI-2's description of the code>".
error gaspi_error(const std::string &operation, int code, std::string remedy = {});

} // namespace diomp::launch::gaspi
