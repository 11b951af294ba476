// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "channels/channel_registry.h"

#include "memory/segment.h"
#include "messaging/engine.h"
#include "rma/rma.h"
#include "transport/conduit.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace diomp::channels {
namespace {

ompx_channel_end_t opposite(ompx_channel_end_t end) {
    return end == OMPX_CHANNEL_SENDER ? OMPX_CHANNEL_RECEIVER : OMPX_CHANNEL_SENDER;
}

error invalid_handle() {
    return {OMPX_ERR_ARG, "not an end of a channel, or freed already",
            "pass what ompx_channel_create() has stored"};
}

std::unique_ptr<channel_end> make_end(const channel_context &context, const channel_key &key,
                                      const channel_shape &shape, std::byte *memory) {
    if (key.end == OMPX_CHANNEL_SENDER) {
        return std::make_unique<sender_end>(context, key, shape, memory);
    }
    return std::make_unique<receiver_end>(context, key, shape, memory);
}

} // namespace

channel_registry::channel_registry(const channel_context &context)
    : context_(context),
      handler_(context.engine.add_handler([this](const transport::message &incoming) {
          channel_message message;
          std::memcpy(&message, incoming.payload.data(), sizeof(message));
          handle(incoming.source, message);
      })) {}

channel_registry::~channel_registry() = default;

result<std::byte *> channel_registry::allocate(const channel_key &key, const channel_shape &shape) {
    bool const is_mapped = context_.engine.transport().direct_base(key.partner) != nullptr;
    std::size_t nbytes = sender_end::staging_offset + (is_mapped ? 0 : shape.nbytes);
    if (key.end == OMPX_CHANNEL_RECEIVER &&
        __builtin_mul_overflow(std::size_t{shape.depth}, shape.stride(), &nbytes)) {
        nbytes = std::numeric_limits<std::size_t>::max();
    }
    auto offset = context_.own.allocate_local(nbytes, 64);
    DIOMP_TRY(offset);
    std::byte *const memory = context_.own.base() + offset.value();
    std::size_t const num_words = key.end == OMPX_CHANNEL_RECEIVER ? shape.depth : 1;
    for (std::size_t i = 0; i < num_words; ++i) {
        std::byte *const word = key.end == OMPX_CHANNEL_RECEIVER
                                    ? memory + i * shape.stride() + shape.word_offset()
                                    : memory;
        *reinterpret_cast<std::uint64_t *>(word) = 0;
    }
    return memory;
}

status channel_registry::check_space(std::span<const wanted_end> ends) {
    release_closed();
    std::vector<std::byte *> found;
    status outcome;
    for (wanted_end const &each : ends) {
        auto memory = allocate(each.key, each.shape);
        if (!memory) {
            outcome = memory.take_failure();
            break;
        }
        found.push_back(memory.value());
    }
    for (std::byte *const each : found) {
        context_.own.release(static_cast<std::uint64_t>(each - context_.own.base()));
    }
    return outcome;
}

result<std::unique_ptr<channel_end>> channel_registry::create(const channel_key &key,
                                                              const channel_shape &shape) {
    release_closed();
    auto memory = allocate(key, shape);
    DIOMP_TRY(memory);
    auto made = make_end(context_, key, shape, memory.value());
    channel_message message{
        action::create, key.end,      0,
        key.tag,        shape.nbytes, reinterpret_cast<std::uint64_t>(memory.value()),
        shape.depth};
    {
        std::lock_guard const guard(mutex_);
        message.id = ids_[made.get()] = next_id_++;
        auto const early = early_.find(key);
        if (early != early_.end()) {
            match(*made, early->second.front());
            early->second.pop_front();
            if (early->second.empty()) {
                early_.erase(early);
            }
        } else {
            unmatched_[key].push_back(made.get());
        }
    }
    send(key.partner, message);
    return made;
}

/// The caller holds the mutex.
void channel_registry::match(channel_end &end, const channel_message &message) {
    matched_[{end.key().partner, message.id}] = &end;
    end.connect({message.nbytes, message.depth}, message.address);
    if (message.is_closed != 0) {
        end.close_partner();
    }
}

void channel_registry::send(world_rank partner, const channel_message &message) {
    if (partner == context_.self) {
        handle(partner, message);
    } else {
        context_.engine.send(partner, handler_, message);
    }
}

void channel_registry::handle(world_rank source, const channel_message &message) {
    {
        std::lock_guard const guard(mutex_);
        if (message.what == action::close) {
            on_close(source, message.id);
        } else {
            channel_key const key{source, message.tag, opposite(message.end)};
            auto const waiting = unmatched_.find(key);
            if (waiting == unmatched_.end()) {
                early_[key].push_back(message);
                return;
            }
            match(*waiting->second.front(), message);
            waiting->second.pop_front();
            if (waiting->second.empty()) {
                unmatched_.erase(waiting);
            }
        }
    }
    context_.engine.wake_waiters();
}

/// The caller holds the mutex.
void channel_registry::on_close(world_rank source, std::uint64_t id) {
    if (auto const found = matched_.find({source, id}); found != matched_.end()) {
        found->second->close_partner();
        matched_.erase(found);
        return;
    }
    for (auto &[key, messages] : early_) {
        for (channel_message &each : messages) {
            if (key.partner == source && each.id == id) {
                each.is_closed = 1;
            }
        }
    }
}

status channel_registry::close(std::unique_ptr<channel_end> end) {
    world_rank const partner = end->key().partner;
    status completed;
    if (end->is_connected() && !end->is_direct()) {
        completed = context_.transfers.fence({&partner, 1});
    }
    channel_message message{.what = action::close, .end = end->key().end};
    {
        std::lock_guard const guard(mutex_);
        auto const id = ids_.find(end.get());
        message.id = id->second;
        ids_.erase(id);
        closed_.push_back(std::move(end));
    }
    send(partner, message);
    release_closed();
    return completed;
}

void channel_registry::release_closed() {
    std::vector<std::unique_ptr<channel_end>> unused;
    {
        std::lock_guard const guard(mutex_);
        auto const first = std::partition(closed_.begin(), closed_.end(), [](const auto &each) {
            return !each->is_partner_closed();
        });
        unused.assign(std::make_move_iterator(first), std::make_move_iterator(closed_.end()));
        closed_.erase(first, closed_.end());
    }
    for (auto const &each : unused) {
        context_.own.release(static_cast<std::uint64_t>(each->memory() - context_.own.base()));
    }
}

result<ompx_channel_t> channel_registry::publish(std::unique_ptr<channel_end> end) {
    auto handle = table_.insert(std::move(end));
    if (!handle) {
        DIOMP_TRY(close(std::move(end)));
        return error(
            OMPX_ERR_NOMEM,
            fmt::format("this rank has {} ends of channels already", decltype(table_)::max_objects),
            "free ends that are no longer used");
    }
    return *handle;
}

result<channel_end *> channel_registry::find(ompx_channel_t handle) const {
    channel_end *const found = table_.find(handle);
    if (found == nullptr) {
        return invalid_handle();
    }
    return found;
}

result<std::unique_ptr<channel_end>> channel_registry::remove(ompx_channel_t handle) {
    auto removed = table_.remove(handle);
    if (!removed) {
        return invalid_handle();
    }
    return removed;
}

} // namespace diomp::channels
