// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Data of a connection that waits to be written.
#pragma once

#include "transport/tcp/coalescer.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <span>
#include <sys/uio.h>
#include <vector>

namespace diomp::transport::tcp {

/// Bytes to write, in order: copies of small frames, and data where its owner has it.
class send_items {
public:
    [[nodiscard]] bool empty() const { return items_.empty(); }
    [[nodiscard]] std::size_t size() const { return items_.size(); }
    [[nodiscard]] std::size_t copied_bytes() const { return copied_bytes_; }
    [[nodiscard]] std::span<const std::byte> front() const {
        return {items_.front().data, items_.front().left};
    }
    /// Describes the first items and returns their number; adds their size to `nbytes`.
    [[nodiscard]] std::size_t describe(std::span<iovec> iovecs, std::size_t &nbytes) const;

    void push_copy(std::vector<std::byte> &&copy);
    void push(const void *data, std::size_t nbytes, completion *source_free) {
        items_.push_back({{}, static_cast<const std::byte *>(data), nbytes, source_free});
    }
    /// Moves the items of `others` after these.
    void append(send_items &others);
    /// Removes `nbytes` that have been written. `spare` keeps the largest buffer of a copy.
    void consume(std::size_t nbytes, std::vector<std::byte> &spare);
    /// Removes all items of a connection that has failed; their sources are free.
    void discard();

private:
    struct item {
        std::vector<std::byte> copy; ///< empty: `data` is the caller's
        const std::byte *data = nullptr;
        std::size_t left = 0;
        completion *source_free = nullptr;
    };
    std::deque<item> items_;
    std::size_t copied_bytes_ = 0;
};

/// Queued frames. Small ones are coalesced in one buffer; large data is not copied. Guarded by its
/// owner's lock, except functions that say otherwise.
class send_queue {
public:
    /// Data up to this size is copied when it is sent. The limit for puts is larger: most puts are
    /// followed by a flush, and a copy costs less than a packet of its own for the flush.
    static constexpr std::size_t max_copied_bytes = 8 * 1024;
    static constexpr std::size_t max_copied_put_bytes = 64 * 1024;
    static constexpr bool is_copied(kind what, std::size_t nbytes) {
        return nbytes <= (what == kind::put ? max_copied_put_bytes : max_copied_bytes);
    }

    /// Appends a frame with copies of its header part and data.
    void append(const frame &head, std::span<const std::byte> front = {},
                const void *data = nullptr, std::size_t nbytes = 0) {
        coalesced_.append(&head, sizeof(head));
        coalesced_.append(front.data(), front.size());
        coalesced_.append(data, nbytes);
    }
    /// Appends a put with a copy of its data, merged with the last put if they are adjacent.
    void append_put(const frame &head, const void *data) {
        coalesced_.append_put(head, data, max_copied_put_bytes);
    }
    void append_puts(const coalescer &puts) { coalesced_.append(puts); }
    /// Appends data that stays in use until `source_free` is done.
    void append_uncopied(const void *data, std::size_t nbytes, completion *source_free);
    /// Moves all data to the end of `to`. Later frames are coalesced in `next_buffer`, which is
    /// empty and keeps its memory if it is not needed.
    void move_to(send_items &to, std::vector<std::byte> &next_buffer);
    void discard();
    [[nodiscard]] bool empty() const { return items_.empty() && coalesced_.empty(); }

    /// True if enough data waits to be sent at once, after a copy of `nbytes`.
    [[nodiscard]] bool should_transmit(std::size_t nbytes) const {
        return coalesced_.size() >=
               (nbytes > max_copied_bytes ? transmit_threshold_before_flush : transmit_threshold);
    }
    /// True if so many copied bytes wait that coalesced puts are to be sent at once.
    [[nodiscard]] bool is_long() const { return copied_bytes() >= transmit_threshold; }

    /// Makes changes visible to has_data() and visible_bytes(); returns has_data(). Data that may
    /// not be written yet does not count.
    bool publish(bool may_write) {
        bool const has_any = may_write && !empty();
        visible_bytes_.store(copied_bytes(), std::memory_order_relaxed);
        has_data_.store(has_any, std::memory_order_release);
        return has_any;
    }
    /// Any thread.
    [[nodiscard]] bool has_data() const { return has_data_.load(std::memory_order_acquire); }
    /// Any thread: copied_bytes().
    [[nodiscard]] std::size_t visible_bytes() const {
        return visible_bytes_.load(std::memory_order_relaxed);
    }

private:
    static constexpr std::size_t transmit_threshold = 16 * 1024;
    /// After a large put: its flush may follow, and is sent along with it.
    static constexpr std::size_t transmit_threshold_before_flush = 256 * 1024;

    [[nodiscard]] std::size_t copied_bytes() const {
        return items_.copied_bytes() + coalesced_.size();
    }
    void end_coalescing(std::vector<std::byte> &&next_buffer);

    send_items items_;
    coalescer coalesced_; ///< after items_
    std::atomic<bool> has_data_{false};
    std::atomic<std::size_t> visible_bytes_{0};
};

} // namespace diomp::transport::tcp
