// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The batch that a queue collects: its operations since the last reply.
#pragma once

#include "base/ids.h"
#include "offload/remote/device_memory.h"
#include "offload/remote/protocol.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace diomp::offload::remote {

/// Encodes operations into messages, and records what they need of the reply. A long batch is
/// several messages with consecutive numbers. One thread at a time.
class batch_builder {
public:
    /// What the operations include; each value includes those before it.
    enum class content {
        none,
        transfers, ///< small transfers, or puts of the client
        session,   ///< launches or waits: puts of the client must not overtake them
        copies,    ///< transfers and calls by the session: never deferred
    };
    static constexpr std::size_t get_bytes = 17;
    static constexpr std::size_t wait_bytes = 17;
    static constexpr std::size_t zero_copy_bytes = 25;
    static constexpr std::size_t max_copy_bytes = 64;
    static constexpr std::size_t call_bytes = 1;
    static constexpr std::size_t call_part_header_bytes = 1 + 4;
    static constexpr std::size_t max_release_bytes = 8 + device_memory::max_ranges * 16;

    explicit batch_builder(std::uint64_t queue) : queue_(queue) {}

    [[nodiscard]] std::uint64_t queue() const { return queue_; }
    /// Number of the next message.
    [[nodiscard]] std::uint64_t batch() const { return batch_; }
    /// Encoded size of the operations that have not been sent.
    [[nodiscard]] std::size_t pending_bytes() const { return pending_.size(); }

    // These append an operation. The caller has checked that a message has space for it.
    void put(std::uint64_t address, const void *source, std::size_t nbytes);
    /// The reply contains the bytes.
    void get(void *destination, std::uint64_t address, std::size_t nbytes);
    /// operation::copy to, or operation::pull from another rank.
    void copy(operation op, world_rank other, std::uint64_t destination, std::uint64_t source,
              std::size_t nbytes);
    /// A put (fetch) or get (deliver) that the session runs.
    void zero_copy(operation op, const zero_copy_transfer &what);
    /// `encoded`: launch_arguments.
    void launch(std::string_view encoded, std::uint64_t kernel);
    void wait(std::uint64_t queue, std::uint64_t batch);
    void release_pages(std::span<const device_memory::range> ranges);
    /// operation::call_part.
    void call_part(std::string_view bytes);
    /// operation::call; the reply contains its outcome.
    void call(std::span<char, call_outcome_bytes> outcome);

    /// Records work that is not encoded here.
    void include(content what) { content_ = std::max(content_, what); }
    [[nodiscard]] bool includes(content what) const { return content_ >= what; }
    /// Whether a reply is needed: operations have been sent since the last one, or are pending.
    [[nodiscard]] bool needs_reply() const { return is_partly_sent_ || pending_.size() > 0; }
    /// Whether OpenMP need not wait for the operations, if it need not for their kernels.
    [[nodiscard]] bool can_defer() const {
        return includes(content::transfers) && !includes(content::copies) && gets_.empty();
    }
    [[nodiscard]] std::span<const std::uint64_t> kernels() const { return kernels_; }
    [[nodiscard]] bool overlaps_pending_put(std::uint64_t address, std::size_t nbytes) const;

    /// The message with the pending operations; `last` requests a reply. Begins the next one.
    [[nodiscard]] std::string take_message(bool last);
    /// The last message of a deferred batch, which requests a reply now and then. Begins the next
    /// batch.
    [[nodiscard]] std::string take_deferred();

    /// Bytes of gets that the reply contains.
    [[nodiscard]] std::size_t num_reply_bytes() const { return num_reply_bytes_; }
    /// Copies bytes of a reply to the destinations of the gets.
    void finish_gets(std::string_view bytes) const;
    /// Discards all operations. Returns the number of the batch, which is not used again, since
    /// events may refer to it; 0 if the batch had no operations.
    std::uint64_t discard();

private:
    struct range {
        std::uint64_t begin;
        std::uint64_t end;
    };
    struct pending_get {
        void *destination;
        std::size_t nbytes;
    };

    std::uint64_t const queue_;
    std::uint64_t batch_ = 1;
    packet_writer pending_;
    std::vector<range> put_ranges_; ///< of pending_
    content content_ = content::none;
    std::vector<std::uint64_t> kernels_; ///< launched
    std::vector<pending_get> gets_;
    std::size_t num_reply_bytes_ = 0;
    bool is_partly_sent_ = false;
    int num_unacknowledged_ = 0; ///< deferred batches since a reply was requested
};

} // namespace diomp::offload::remote
