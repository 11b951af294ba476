// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "channels/channel_end.h"

#include "memory/memory.h"
#include "messaging/engine.h"
#include "rma/blocking_transfers.h"
#include "rma/copy.h"
#include "rma/rma.h"
#include "rma/signals.h"

#include <fmt/format.h>

namespace diomp::channels {
namespace {

// A buffer is reused after `depth` messages, so the number's low bits identify the message.
constexpr int number_bits = 24;
constexpr std::uint64_t number_mask = (std::uint64_t{1} << number_bits) - 1;
static_assert(OMPX_CHANNEL_MAX_DEPTH < number_mask);

std::uint64_t arrival_word(std::uint64_t number, std::size_t nbytes) {
    return static_cast<std::uint64_t>(nbytes) << number_bits | ((number + 1) & number_mask);
}

/// User's tags have 32 bits; the runtime's own channels have larger ones.
std::string tag_text(std::uint64_t tag) {
    return tag <= UINT32_MAX ? fmt::format("tag {}", static_cast<std::int32_t>(tag))
                             : std::string("of a grid");
}

} // namespace

std::string channel_end::name() const {
    return fmt::format("the channel {} rank {} ({}, {} x {} bytes)",
                       key_.end == OMPX_CHANNEL_SENDER ? "to" : "from", key_.partner.value(),
                       tag_text(key_.tag), shape_.depth, shape_.nbytes);
}

std::string channel_end::describe_unmatched() const {
    return fmt::format("waiting for rank {} to create its end of {}", key_.partner.value(), name());
}

void channel_end::connect(const channel_shape &shape, std::uint64_t address) {
    partner_shape_ = shape;
    address_ = address;
    direct_ = context_.space.location_at(key_.partner, address).direct;
    state_.store(shape == shape_ ? state::connected : state::mismatched, std::memory_order_release);
}

status channel_end::wait() {
    auto const ready = [this] { return is_ready(); };
    auto const waiting = [this] { return describe_wait(); };
    // An unmatched end becomes ready by a message.
    DIOMP_TRY(is_connected() && is_direct() ? context_.engine.wait(ready, waiting)
                                            : context_.engine.wait_for_message(ready, waiting));
    return check();
}

status channel_end::check() {
    if (state_.load(std::memory_order_acquire) == state::mismatched) {
        return error(OMPX_ERR_MISMATCH,
                     fmt::format("rank {} has created its end of {} with {} x {} bytes",
                                 key_.partner.value(), name(), partner_shape_.depth,
                                 partner_shape_.nbytes),
                     "pass the same size and depth at both ends, or different tags for different "
                     "channels");
    }
    // Messages that were sent before the partner freed its end are still received.
    if (can_proceed() && (key_.end == OMPX_CHANNEL_RECEIVER || !is_partner_closed())) {
        return {};
    }
    return error(OMPX_ERR_STATE,
                 fmt::format("rank {} has freed its end of {}", key_.partner.value(), name()),
                 key_.end == OMPX_CHANNEL_SENDER ? "free the receiving end after its last message"
                                                 : "receive as many messages as the partner sends");
}

bool sender_end::can_proceed() {
    if (!is_connected()) {
        return false;
    }
    if (num_sent_ - num_released_ >= shape_.depth) {
        num_released_ =
            __atomic_load_n(reinterpret_cast<std::uint64_t *>(memory_), __ATOMIC_ACQUIRE);
    }
    return num_sent_ - num_released_ < shape_.depth;
}

std::string sender_end::describe_wait() const {
    return is_connected() ? fmt::format("waiting for rank {} to release message {} of {}",
                                        key_.partner.value(), num_released_ + 1, name())
                          : describe_unmatched();
}

result<rma::path> sender_end::put(const void *data, std::size_t nbytes) {
    std::size_t const offset = buffer_offset(num_sent_);
    std::uint64_t const word = arrival_word(num_sent_, nbytes);
    if (direct_ == nullptr) {
        auto sent = context_.transfers.signals().put(
            key_.partner, reinterpret_cast<void *>(address_ + offset), data, nbytes,
            reinterpret_cast<std::uint64_t *>(address_ + offset + shape_.word_offset()), word,
            OMPX_SIGNAL_SET);
        DIOMP_TRY(sent);
        ++num_sent_;
        return sent.value();
    }
    std::byte *const buffer = direct_ + offset;
    if (data != buffer) {
        rma::copy_bytes(buffer, data, nbytes, context_.transfers.blocking().stream_threshold());
    }
    __atomic_store_n(reinterpret_cast<std::uint64_t *>(buffer + shape_.word_offset()), word,
                     __ATOMIC_RELEASE);
    context_.engine.wake_for_store(key_.partner);
    ++num_sent_;
    return key_.partner == context_.self ? rma::path::self : rma::path::direct;
}

result<rma::path> sender_end::send(const void *data, std::size_t nbytes) {
    if (has_acquired_) {
        return error(OMPX_ERR_STATE, fmt::format("a buffer of {} is acquired", name()),
                     "commit it first");
    }
    return put(data, nbytes);
}

result<void *> sender_end::acquire() {
    if (has_acquired_) {
        return error(OMPX_ERR_STATE, fmt::format("a buffer of {} is acquired already", name()),
                     "commit it first");
    }
    has_acquired_ = true;
    return static_cast<void *>(direct_ == nullptr ? memory_ + staging_offset
                                                  : direct_ + buffer_offset(num_sent_));
}

result<rma::path> sender_end::commit() {
    if (!has_acquired_) {
        return error(OMPX_ERR_STATE, fmt::format("no buffer of {} is acquired", name()),
                     "acquire a buffer, write the message to it, then commit it");
    }
    if (is_partner_closed()) {
        return check().take_failure();
    }
    auto sent =
        put(direct_ == nullptr ? memory_ + staging_offset : direct_ + buffer_offset(num_sent_),
            shape_.nbytes);
    has_acquired_ = !sent;
    return sent;
}

bool receiver_end::can_proceed() {
    // After depth messages that have not been released, the next buffer is still in use.
    return is_connected() && num_received_ - num_released_ < shape_.depth &&
           ((__atomic_load_n(word_of(num_received_), __ATOMIC_ACQUIRE) ^ (num_received_ + 1)) &
            number_mask) == 0;
}

std::string receiver_end::describe_wait() const {
    if (!is_connected()) {
        return describe_unmatched();
    }
    return num_received_ - num_released_ == shape_.depth
               ? fmt::format("waiting for message {} of {}, but none of its {} buffers is released",
                             num_received_ + 1, name(), shape_.depth)
               : fmt::format("waiting for message {} of {}", num_received_ + 1, name());
}

receiver_end::arrived_message receiver_end::receive() {
    std::uint64_t const word = __atomic_load_n(word_of(num_received_), __ATOMIC_RELAXED);
    return {memory_ + buffer_offset(num_received_++),
            static_cast<std::size_t>(word >> number_bits)};
}

status receiver_end::release() {
    if (num_released_ == num_received_) {
        return error(OMPX_ERR_STATE, fmt::format("no message of {} is held", name()),
                     "release each message once, after it was received");
    }
    if (direct_ == nullptr) {
        DIOMP_TRY(context_.transfers.signals().put(key_.partner, nullptr, nullptr, 0,
                                                   reinterpret_cast<std::uint64_t *>(address_), 1,
                                                   OMPX_SIGNAL_ADD));
        ++num_released_;
        return {};
    }
    __atomic_store_n(reinterpret_cast<std::uint64_t *>(direct_), ++num_released_, __ATOMIC_RELEASE);
    context_.engine.wake_for_store(key_.partner);
    return {};
}

} // namespace diomp::channels
