// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The channels of diomp.h: blocks of elements from one rank to another.
#ifndef DIOMP_CHANNEL_HPP
#define DIOMP_CHANNEL_HPP

#include "diomp.h"
#include "diomp/error.hpp"
#include "diomp/types.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <utility>

namespace diomp {
inline namespace v1 {

/// Owns one end of a channel. One thread at a time. The destructor completes the messages that were
/// sent.
class channel_end {
public:
    channel_end() noexcept = default;
    channel_end(int partner, int tag, ompx_channel_end_t end, std::size_t nbytes, int depth) {
        detail::check(ompx_channel_create(partner, tag, end, nbytes, depth, &handle_));
    }
    channel_end(channel_end &&other) noexcept
        : handle_(std::exchange(other.handle_, OMPX_CHANNEL_NONE)) {}
    channel_end &operator=(channel_end &&other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    channel_end(const channel_end &) = delete;
    channel_end &operator=(const channel_end &) = delete;
    ~channel_end() {
        if (handle_ != OMPX_CHANNEL_NONE && ompx_is_initialized() == 1) {
            ompx_channel_free(&handle_);
        }
    }

    /// Whether the next operation will not block. Makes progress.
    [[nodiscard]] bool test() const { return detail::check(ompx_channel_test(handle_)) == 1; }
    /// For functions of diomp.h; still owned.
    [[nodiscard]] ompx_channel_t get() const noexcept { return handle_; }

private:
    ompx_channel_t handle_ = OMPX_CHANNEL_NONE;
};

/// Sends blocks of `count` elements to a channel_receiver<T> of the same tag, count and depth.
template <transferable T>
class channel_sender : public channel_end {
public:
    /// Does not block; the first use waits for the partner.
    channel_sender(int partner, int tag, std::size_t count = 1, int depth = 2)
        : channel_end(partner, tag, OMPX_CHANNEL_SENDER, detail::bytes_of<T>("channel", count),
                      depth),
          count_(count) {}

    /// Blocks until there is a buffer; the elements may then be changed.
    void send(std::span<const T> elements) {
        detail::check(ompx_channel_send(get(), checked(elements)));
    }
    void send(const T &element) { send(std::span<const T>(&element, 1)); }
    /// false: there is no buffer now.
    [[nodiscard]] bool try_send(std::span<const T> elements) {
        int const status = ompx_channel_try_send(get(), checked(elements));
        return status != OMPX_ERR_BUSY && detail::check(status) == 0;
    }
    /// The buffer of the next block, to be written and then committed. Blocks until there is one.
    [[nodiscard]] std::span<T> acquire() {
        void *const buffer = ompx_channel_acquire(get());
        if (buffer == nullptr) {
            detail::fail_last();
        }
        return {static_cast<T *>(buffer), count_};
    }
    [[nodiscard]] std::optional<std::span<T>> try_acquire() {
        void *buffer = nullptr;
        int const status = ompx_channel_try_acquire(get(), &buffer);
        if (status == OMPX_ERR_BUSY) {
            return std::nullopt;
        }
        detail::check(status);
        return std::span<T>(static_cast<T *>(buffer), count_);
    }
    /// Sends the block that was acquired.
    void commit() { detail::check(ompx_channel_commit(get())); }

private:
    const T *checked(std::span<const T> elements) const {
        if (elements.size() != count_) {
            detail::fail(OMPX_ERR_ARG, "channel_sender: not as many elements as the channel has");
        }
        return elements.data();
    }

    std::size_t count_;
};

/// Receives blocks of `count` elements, where they have arrived.
template <transferable T>
class channel_receiver : public channel_end {
public:
    /// Does not block; the first use waits for the partner.
    channel_receiver(int partner, int tag, std::size_t count = 1, int depth = 2)
        : channel_end(partner, tag, OMPX_CHANNEL_RECEIVER, detail::bytes_of<T>("channel", count),
                      depth),
          count_(count) {}

    /// The next block, valid until release(); blocks until it has arrived.
    [[nodiscard]] std::span<T> receive() {
        void *const data = ompx_channel_receive(get());
        if (data == nullptr) {
            detail::fail_last();
        }
        return {static_cast<T *>(data), count_};
    }
    /// nullopt: none has arrived.
    [[nodiscard]] std::optional<std::span<T>> try_receive() {
        void *data = nullptr;
        int const status = ompx_channel_try_receive(get(), &data);
        if (status == OMPX_ERR_BUSY) {
            return std::nullopt;
        }
        detail::check(status);
        return std::span<T>(static_cast<T *>(data), count_);
    }
    /// Gives the oldest received block's buffer back to the sender.
    void release() { detail::check(ompx_channel_release(get())); }

private:
    std::size_t count_;
};

/// Blocks until one of the ends can be used without blocking; its index, or nullopt if all are
/// OMPX_CHANNEL_NONE.
inline std::optional<std::size_t> channel_wait_any(std::span<const ompx_channel_t> channels) {
    std::size_t index = OMPX_NO_INDEX;
    detail::check(ompx_channel_wait_any(channels.data(), channels.size(), &index));
    return index == OMPX_NO_INDEX ? std::nullopt : std::optional(index);
}

} // namespace v1
} // namespace diomp

#endif // DIOMP_CHANNEL_HPP
