// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Channels: messages of one size from one rank to another, through buffers in the receiver's
// segment.
//
// A buffer holds a message and, in its last 8 bytes, the arrival word: the low 24 bits of the
// message's number from 1 and the bytes that were sent. Each buffer has its own word, so messages
// may arrive in any order. The receiver tells the sender how many messages it has released in the
// credit word, in the sender's segment. Peers that are not mapped here get data and arrival word by
// put with signal, and credits by a signal; elsewhere both are stores.
//
// Glossary: end: a rank's side of a channel. buffer: memory of one message. credit: the right to
// overwrite a buffer. partner: the rank of the other end.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "diomp/types.h"
#include "rma/path.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

namespace diomp::memory {
class address_space;
class segment;
} // namespace diomp::memory
namespace diomp::messaging {
class engine;
}
namespace diomp::rma {
class transfers;
}

namespace diomp::channels {

/// The modules that channels use; they outlive all ends.
struct channel_context {
    messaging::engine &engine;
    rma::transfers &transfers;
    memory::address_space &space;
    memory::segment &own;
    world_rank self;
};

/// Names the channels between two ranks that have a tag and a direction.
struct channel_key {
    world_rank partner;
    std::uint64_t tag = 0;
    ompx_channel_end_t end = OMPX_CHANNEL_SENDER; ///< of the rank whose key it is
    auto operator<=>(const channel_key &) const = default;
};

/// Equal at both ends.
struct channel_shape {
    std::size_t nbytes = 0; ///< of the largest message
    std::uint32_t depth = 1;
    auto operator<=>(const channel_shape &) const = default;

    /// Bytes from one buffer to the next: the arrival word is in the same cache line as a short
    /// message.
    [[nodiscard]] std::size_t stride() const { return (nbytes + 8 + 63) & ~std::size_t{63}; }
    [[nodiscard]] std::size_t word_offset() const { return stride() - 8; }
};

/// What both kinds of ends have. connect() and close_partner() may be called by any thread, all
/// other functions by one thread at a time.
class channel_end {
public:
    channel_end(const channel_context &context, const channel_key &key, const channel_shape &shape,
                std::byte *memory)
        : context_(context), key_(key), shape_(shape), memory_(memory) {}
    virtual ~channel_end() = default;
    channel_end(const channel_end &) = delete;
    channel_end &operator=(const channel_end &) = delete;

    [[nodiscard]] const channel_key &key() const { return key_; }
    [[nodiscard]] const channel_shape &shape() const { return shape_; }
    /// This end's memory in the own segment.
    [[nodiscard]] std::byte *memory() const { return memory_; }
    /// Whether stores of the partner make this end ready, not messages.
    [[nodiscard]] bool is_direct() const { return direct_ != nullptr; }
    [[nodiscard]] bool is_connected() const {
        return state_.load(std::memory_order_acquire) == state::connected;
    }

    /// The partner has created its end, whose memory is at `address` in its segment.
    void connect(const channel_shape &shape, std::uint64_t address);
    /// The partner has freed its end: it makes no further access.
    void close_partner() { is_partner_closed_.store(true, std::memory_order_release); }
    [[nodiscard]] bool is_partner_closed() const {
        return is_partner_closed_.load(std::memory_order_acquire);
    }

    /// Whether the next operation returns without waiting, maybe with an error.
    [[nodiscard]] bool is_ready() {
        return can_proceed() || state_.load(std::memory_order_relaxed) == state::mismatched ||
               is_partner_closed();
    }
    /// Blocks until the next operation can proceed. OMPX_ERR_MISMATCH, OMPX_ERR_STATE.
    status wait();
    /// The outcome for an end that is_ready(): OMPX_ERR_MISMATCH, OMPX_ERR_STATE, or none.
    status check();
    /// What wait() waits for.
    [[nodiscard]] virtual std::string describe_wait() const = 0;

protected:
    enum class state : std::uint8_t { unmatched, connected, mismatched };

    /// Whether there is a buffer or a message.
    [[nodiscard]] virtual bool can_proceed() = 0;
    [[nodiscard]] std::string name() const; ///< "the channel to rank 1 (tag 3, 2 x 64 bytes)"
    [[nodiscard]] std::size_t buffer_offset(std::uint64_t number) const {
        return static_cast<std::size_t>(number % shape_.depth) * shape_.stride();
    }
    [[nodiscard]] std::string describe_unmatched() const;

    const channel_context &context_;
    channel_key key_;
    channel_shape shape_;
    std::byte *memory_;
    std::byte *direct_ = nullptr; ///< the partner's memory, loadable here; set before connected
    std::uint64_t address_ = 0;   ///< the partner's memory, in its address space
    channel_shape partner_shape_;
    std::atomic<state> state_{state::unmatched};
    std::atomic<bool> is_partner_closed_{false};
};

/// The own memory is the credit word, and after its cache line a buffer for acquire() where the
/// receiver is not mapped.
class sender_end final : public channel_end {
public:
    using channel_end::channel_end;
    static constexpr std::size_t staging_offset = 64;

    /// Sends nbytes, up to those of the shape. Call after wait(), or when is_ready() and check().
    result<rma::path> send(const void *data, std::size_t nbytes);
    /// The buffer of the next message. Call as send(). OMPX_ERR_STATE before a commit.
    result<void *> acquire();
    result<rma::path> commit();
    [[nodiscard]] bool has_acquired() const { return has_acquired_; }
    [[nodiscard]] std::string describe_wait() const override;

private:
    [[nodiscard]] bool can_proceed() override;
    result<rma::path> put(const void *data, std::size_t nbytes);

    std::uint64_t num_sent_ = 0;
    std::uint64_t num_released_ = 0; ///< the credit word, as last read
    bool has_acquired_ = false;
};

/// The own memory is depth buffers of stride() bytes; their arrival words are 0 at first.
class receiver_end final : public channel_end {
public:
    using channel_end::channel_end;

    struct arrived_message {
        std::byte *data;
        std::size_t nbytes;
    };
    /// Call after wait(), or when is_ready() and check().
    arrived_message receive();
    /// OMPX_ERR_STATE if no message is to be released.
    status release();
    [[nodiscard]] std::string describe_wait() const override;

private:
    [[nodiscard]] bool can_proceed() override;
    [[nodiscard]] const std::uint64_t *word_of(std::uint64_t number) const {
        return reinterpret_cast<const std::uint64_t *>(memory_ + buffer_offset(number) +
                                                       shape_.word_offset());
    }

    std::uint64_t num_received_ = 0;
    std::uint64_t num_released_ = 0;
};

} // namespace diomp::channels
