// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Large transfers of one queue that the client runs, between the program's memory and the slot of
// the queue's device.
#pragma once

#include "base/result.h"
#include "offload/remote/queue_recorder.h"
#include "transport/types.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace diomp::offload::remote {

class client;
class remote_device;

/// Puts start at once; gets start when the operations before them are complete. Those with memory
/// that the client shares are copies, and complete then. One thread at a time; nothing blocks.
class network_transfers {
public:
    network_transfers(client &owner, remote_device &on, queue_recorder &recorder)
        : owner_(owner), device_(on), recorder_(recorder) {}

    status put(std::uint64_t address, const void *source, std::size_t nbytes);
    /// `batch`: number of the queue's batch that the get belongs to.
    void add_get(void *destination, std::uint64_t address, std::size_t nbytes, std::uint64_t batch);
    [[nodiscard]] bool has_gets() const { return !gets_.empty(); }
    /// Whether there are gets of this batch or earlier ones.
    [[nodiscard]] bool has_gets_up_to(std::uint64_t batch) const {
        return has_gets() && gets_.front().batch <= batch;
    }
    /// Memory of the slot, freed by reset(). Errors: OMPX_ERR_NOMEM.
    result<std::uint64_t> allocate_stage(std::size_t nbytes);
    [[nodiscard]] bool has_stages() const { return !stages_.empty(); }
    /// There have been no transfers since reset().
    [[nodiscard]] bool is_empty() const { return !puts_ && gets_.empty() && stages_.empty(); }

    /// Whether puts have been started that must be complete before later operations.
    [[nodiscard]] bool has_unordered_puts() const { return has_unordered_puts_; }
    /// Completes puts() also at the target. Call if has_unordered_puts().
    status flush_puts();
    /// The puts are complete.
    void mark_ordered() { has_unordered_puts_ = false; }
    /// Completion of the puts; null: there were none.
    [[nodiscard]] std::shared_ptr<const transport::completion> puts() const { return puts_; }
    [[nodiscard]] bool are_puts_done() const { return !puts_ || puts_->is_done(); }
    /// Call when the puts are done: returns their error.
    status check_puts();

    /// Starts the gets, once; returns whether they are complete.
    result<bool> advance_gets();
    /// Forgets all transfers, also those in flight.
    void reset();

private:
    struct get {
        void *destination;
        std::uint64_t address;
        std::size_t nbytes;
        std::uint64_t batch;
    };

    client &owner_;
    remote_device &device_;
    queue_recorder &recorder_;
    std::shared_ptr<transport::completion> puts_;
    bool has_unordered_puts_ = false;
    std::vector<get> gets_;
    std::shared_ptr<transport::completion> gets_completion_;
    /// Completions of abandoned transfers: the conduit may still count there.
    std::vector<std::shared_ptr<transport::completion>> abandoned_;
    std::vector<std::uint64_t> stages_; ///< addresses
};

} // namespace diomp::offload::remote
