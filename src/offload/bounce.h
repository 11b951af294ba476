// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transfers between an accelerator and memory that its queues do not reach, through host memory:
// between devices of this process that do not reach each other; to and from host memory of other
// nodes; and, with the owner's help, device memory of other ranks that cannot be opened here (other
// nodes, no device IPC). All of it in pieces, so that the device and the network work side by side.
//
// Memory of another rank's accelerator: the asker puts a piece into a buffer in its own host
// segment and names it to the owner, whose bounce thread fetches it and copies it to the device;
// the other way round for gets. Several pieces are under way at a time.
#pragma once

#include "base/function_ref.h"
#include "conduit/call.h"
#include "offload/accelerators.h"
#include "offload/segment_table.h"
#include "rma/rma.h"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace diomp::offload {

class variables;

/// Any thread. Create before engine.start(); destroy after it has stopped.
class bounce {
public:
    bounce(const segment_table &own, const variables &told, memory::address_space &space,
           memory::segment &host, conduit::engine &engine, conduit::call_service &calls,
           rma::transfers &transfers, world_rank self);
    ~bounce();
    bounce(const bounce &) = delete;
    bounce &operator=(const bounce &) = delete;

    /// Starts a copy by a queue of `by` and waits for it; messages are served meanwhile.
    status copy(const accelerator &by, void *dst, const void *src, std::size_t nbytes);

    /// Waits for what has been started in the stream pool of `by`; messages are served meanwhile.
    status wait_for(const accelerator &by, const device::ticket &of);

    /// Moves nbytes between host memory and wherever: the piece at `host`, `done` bytes after the
    /// beginning. The host memory may be reused on return.
    using piece_function =
        function_ref<status(std::byte *host, std::size_t done, std::size_t nbytes)>;
    /// Gives all of the source in pieces to `take`, while the next piece comes from the device.
    status out_of(const accelerator &from, const std::byte *src, std::size_t nbytes,
                  piece_function take);
    /// Fills the destination with the pieces of `give`, while the last one goes to the device.
    status into(const accelerator &to, std::byte *dst, std::size_t nbytes, piece_function give);

    /// Between [address, address + nbytes) of `owner`'s device, as the owner sees it, in the
    /// segment or in a variable that the owner has told of, and `local`. Blocks until the bytes are
    /// there.
    status ask_owner(rma::direction way, world_rank owner, int device, std::uint64_t address,
                     const end &local, std::size_t nbytes);

    // Boxes, as runs between the arrays at `there` (or at the device and address) and `here`; each
    // blocks until all of them are complete. In bounce_runs.cpp.
    /// By queues of `by`, side by side.
    status copy_runs(rma::direction way, const accelerator &by, std::byte *there, std::byte *here,
                     std::span<const rma::run> runs);
    /// Runs between the remote array and packed data at `host`.
    using packed_function = function_ref<status(std::byte *host, std::span<const rma::run> packed)>;
    /// Between an accelerator and wherever `move` puts or gets what is packed.
    status through_host(rma::direction way, const end &here, std::span<const rma::run> runs,
                        packed_function move);
    status ask_owner(rma::direction way, world_rank owner, int device, std::uint64_t address,
                     const end &local, std::span<const rma::run> runs);

private:
    struct request {
        conduit::request_header header;
        std::uint64_t address = 0; ///< on the device, as its owner sees it
        std::uint64_t staging = 0; ///< in the asker's slot, as everybody names it
        std::uint32_t nbytes = 0;
        std::uint32_t num_runs = 0; ///< 0: one; else their list stands before the data
        std::int32_t device = 0;
        rma::direction way = rma::direction::put;
    };
    struct answer {
        std::int32_t failure = 0;
    };
    struct job {
        world_rank asker;
        request asked;
    };
    struct lane;  ///< pinned memory for two pieces, while somebody uses it
    struct going; ///< a job whose copy to the device is under way

    /// As a put from `local` to host memory, or a get from there. Blocks.
    status copy_end(rma::direction way, const end &local, std::byte *host, std::size_t nbytes);
    result<lane> take_lane(const accelerator &of);

    /// As a put of runs from `local` to a piece, or a get from there.
    status copy_end_runs(rma::direction way, const end &local, std::byte *piece_begin,
                         std::span<const rma::run> runs);

    // The asker's side.
    std::byte *staging();
    /// Pinned for the device of `local`. Under asking_.
    result<std::byte *> staging_for(const end &local);
    void pin_staging_for(device::backend &copier);
    status wait_for_owner(world_rank owner, const conduit::call_service::open_call &call,
                          std::size_t nbytes);

    // The owner's side.
    void on_request(const conduit::message &incoming);
    void serve(); ///< body of the bounce thread
    /// Where a request begins, and the bytes from there to the end of what it lies in.
    struct found {
        std::byte *address = nullptr;
        std::uint64_t left = 0;
        const accelerator *on = nullptr;
    };
    [[nodiscard]] std::optional<found> find(const request &asked) const;
    /// nullopt: it is over.
    result<std::optional<going>> carry_out(const job &what);
    status carry_out_runs(const job &what, const found &array);
    void answer_job(const job &what, status outcome);

    const segment_table &own_;
    const variables &variables_;
    memory::address_space &space_;
    memory::segment &host_;
    conduit::engine &engine_;
    conduit::call_service &calls_;
    rma::transfers &transfers_;
    world_rank self_;
    conduit::handler_id request_handler_;

    std::mutex asking_;            ///< held for the length of ask_owner; never taken in handlers
    std::byte *staging_ = nullptr; ///< under asking_
    /// What keeps it pinned; empty where that was refused. Under asking_.
    std::map<const device::backend *, device::pinned_memory> staging_pins_;

    std::mutex pinned_mutex_; ///< leaf lock over free_
    std::vector<std::pair<const device::backend *, device::pinned_memory>> free_;

    std::mutex jobs_mutex_; ///< leaf lock over the rest
    std::condition_variable jobs_changed_;
    std::deque<job> jobs_;
    bool stopping_ = false;
    std::thread thread_;
};

} // namespace diomp::offload
