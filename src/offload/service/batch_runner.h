// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs the operations of batches.
#pragma once

#include "offload/remote/world.h"
#include "offload/service/kernel_runner.h"
#include "offload/service/output.h"
#include "offload/service/session_transfers.h"
#include "offload/service/target.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace diomp::offload::service {

class region_runtime;

/// Copies that their batches have started; the reply to these follows when they are complete.
struct running_copies {
    remote::operation what = remote::operation::copy; ///< copy or pull
    world_rank other{0};
    std::vector<std::uint64_t> batches;
    std::unique_ptr<started_copies> copies; ///< null: they are complete
    [[nodiscard]] bool are_complete() const {
        return copies == nullptr || (copies->are_flushed && copies->completion.is_done());
    }
};

/// State of a queue's operations since its last reply. One thread at a time.
struct queue_results {
    std::string failure; ///< later operations are skipped; "": none
    std::string gets;    ///< bytes of gets for the next reply
    std::string call;    ///< the parts of a call so far
    longest_kernel longest;
    zero_copy_transfers zero_copy; ///< in flight
    std::vector<running_copies> copies;
};

/// Any thread.
class batch_runner {
public:
    /// `client`: the rank that receives the replies.
    batch_runner(target &device, output &printed, kernel_runner &kernels,
                 session_transfers &transfers, world_rank client)
        : device_(device), printed_(printed), kernels_(kernels), transfers_(transfers),
          client_(client) {}

    /// Replies contain errors of its calls. Call before the first batch.
    void use_runtime(region_runtime &runtime) { runtime_ = &runtime; }
    /// Runs an operation that is neither finish nor wait, and whose parameters `packet` has next.
    /// False: the rest of the packet cannot be parsed.
    bool run(queue_results &results, remote::operation what, packet_reader &packet,
             std::size_t thread);
    /// Runs begin_copy or begin_pull, whose parameters `packet` has next.
    void start_copy(remote::world &ranks, queue_results &results, remote::operation what,
                    packet_reader &packet, std::uint64_t batch);
    /// Which copies finish_copies() replies to: those that are complete, or all, which it waits
    /// for. Those to one device that are started between two calls complete together.
    enum class copies_until : bool { complete, all };
    void finish_copies(remote::world &ranks, queue_results &results, copies_until until);
    /// Waits for zero-copy transfers.
    void finish_zero_copy(queue_results &results);
    /// Replies to a batch: runs operation::finish.
    void reply(remote::world &ranks, std::uint64_t queue, std::uint64_t batch,
               queue_results &results);

private:
    void reply_to_copies(remote::world &ranks, std::span<const std::uint64_t> batches,
                         const status &done);
    status get(queue_results &results, std::uint64_t address, std::size_t nbytes);
    /// Makes the call whose parts have arrived.
    status call(queue_results &results);

    target &device_;
    output &printed_;
    kernel_runner &kernels_;
    session_transfers &transfers_;
    world_rank const client_;
    region_runtime *runtime_ = nullptr; ///< null: regions make no calls
};

} // namespace diomp::offload::service
