// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/queue.h"

#include "offload/remote/session_control.h"
#include "transport/conduit.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <sched.h>
#include <span>
#include <utility>

namespace diomp::offload::remote {
template <typename Ready>
status queue::wait_until(Ready ready, const char *what) {
    std::optional<error> failure;
    auto const is_over = [&] {
        if (device_.session().has_failed()) {
            failure.emplace(OMPX_ERR_PEER, device_.session().failure());
            return true;
        }
        std::lock_guard const guard(mutex_);
        auto outcome = ready();
        if (!outcome) {
            failure.emplace(outcome.take_failure());
            return true;
        }
        return outcome.value();
    };
    DIOMP_TRY(owner_.ranks().engine().wait_for_network(
        is_over, [&] { return fmt::format("{} {}", what, device_.label()); }));
    if (failure) {
        return std::move(*failure);
    }
    return {};
}

void queue::transmit(bool last) {
    if (last) {
        replies_.expect(operations_.batch());
    }
    send(operations_.take_message(last));
}

void queue::send(const std::string &message) {
    owner_.ranks().send(device_.rank(), world::batch_handler, message);
    recorder_.sent(message.size());
}

status queue::reserve_space(std::size_t nbytes, std::unique_lock<std::mutex> &lock) {
    std::size_t const max_bytes =
        owner_.ranks().conduit().max_message_bytes(device_.rank()) - batch_header_bytes - 1;
    if (operations_.pending_bytes() + nbytes <= max_bytes) {
        return {};
    }
    if (transfers_.has_unordered_puts()) {
        // Pending operations may depend on puts that are still in flight.
        DIOMP_TRY(transfers_.flush_puts());
        lock.unlock();
        DIOMP_TRY(wait_until([&] { return result<bool>(transfers_.are_puts_done()); },
                             "waiting for puts to"));
        lock.lock();
        DIOMP_TRY(transfers_.check_puts());
        transfers_.mark_ordered();
    }
    transmit(false);
    return {};
}

status queue::launch(const launch_arguments &arguments) {
    std::unique_lock lock(mutex_);
    DIOMP_TRY(order_after_deferred(lock));
    packet_writer encoded;
    append(encoded, arguments);
    DIOMP_TRY(reserve_space(encoded.size(), lock));
    operations_.launch(encoded.take(), arguments.kernel);
    return {};
}

event queue::record() {
    std::lock_guard const guard(mutex_);
    return {this, operations_.includes(content::transfers) ? operations_.batch() : 0,
            operations_.queue()};
}

result<bool> queue::send_up_to(std::uint64_t batch) {
    std::shared_ptr<const transport::completion> puts;
    bool has_gets = false;
    {
        std::lock_guard const guard(mutex_);
        has_gets = transfers_.has_gets_up_to(batch);
    }
    if (has_gets) {
        DIOMP_TRY(synchronize(batch));
        return false;
    }
    {
        std::lock_guard const guard(mutex_);
        if (operations_.batch() > batch || (phase_ != phase::batching && expects_reply_)) {
            return !replies_.has_completed(batch);
        }
        if (phase_ == phase::batching && transfers_.has_unordered_puts()) {
            DIOMP_TRY(transfers_.flush_puts());
        }
        puts = transfers_.puts();
    }
    DIOMP_TRY(wait_until([&] { return result<bool>(puts == nullptr || puts->is_done()); },
                         "waiting for puts to"));
    std::lock_guard const guard(mutex_);
    if (replies_.has_completed(batch) || (phase_ != phase::batching && !expects_reply_)) {
        return false; // there were only large puts, and they are complete
    }
    if (phase_ == phase::batching && operations_.batch() <= batch) {
        DIOMP_TRY(transfers_.check_puts());
        transmit(false);
    }
    return true;
}

status queue::wait_for(const event &earlier) {
    if (earlier.owner == nullptr || earlier.owner == this ||
        earlier.owner->replies_.has_completed(earlier.batch)) {
        return {};
    }
    auto is_sent = earlier.owner->send_up_to(earlier.batch);
    DIOMP_TRY(is_sent);
    if (!is_sent.value()) {
        return {};
    }
    std::unique_lock lock(mutex_);
    DIOMP_TRY(reserve_space(batch_builder::wait_bytes, lock));
    operations_.wait(earlier.number, earlier.batch);
    return {};
}

void queue::handle_reply(const batch_reply &reply) {
    if (reply.kernel != 0) {
        device_.deferred().record_time(reply.kernel, std::chrono::microseconds(reply.kernel_us));
    }
    bool const was_deferred = device_.deferred().complete(this, reply.batch);
    if (was_deferred) {
        replies_.complete_up_to(reply.batch);
    }
    if (replies_.accept(reply)) {
        return;
    }
    if (was_deferred && reply.failed) { // otherwise the batch was abandoned
        device_.session().fail(
            fmt::format("{} (in a target region that no call waited for)", reply.rest));
    }
}

status queue::consume_reply() {
    std::string const bytes = replies_.take();
    auto decoded = decode_reply(bytes);
    DIOMP_TRY(decoded);
    batch_reply const &reply = decoded.value();
    output_bytes_ = {reply.output_bytes[0], reply.output_bytes[1]};
    if (!reply.call_error.empty()) {
        device_.session().add_call_error(reply.call_error);
    }
    auto const kernels = operations_.kernels();
    recorder_.replied(bytes.size(), kernels.empty() ? 0 : kernels.front());
    if (reply.failed) {
        return error(OMPX_ERR_PEER, fmt::format("{}: {}", device_.label(), reply.rest));
    }
    // This batch was ordered after the deferred work of other queues.
    for (event const &each : device_.deferred().complete_up_to(ordered_generation_)) {
        each.owner->replies_.complete_up_to(each.batch);
    }
    if (reply.rest.size() != operations_.num_reply_bytes()) {
        return error(OMPX_ERR_SYSTEM,
                     fmt::format("{} replied with {} bytes instead of {}", device_.label(),
                                 reply.rest.size(), operations_.num_reply_bytes()));
    }
    operations_.finish_gets(reply.rest);
    return {};
}

void queue::reset() {
    transfers_.reset();
    recorder_.abandon();
    phase_ = phase::batching;
    // Work deferred before this batch is complete, since the batch was ordered after it.
    replies_.complete_up_to(operations_.discard());
}

result<bool> queue::advance(bool may_defer) {
    if (failure_) {
        error found = std::move(*failure_);
        failure_.reset();
        return found;
    }
    if (phase_ == phase::batching) {
        if (may_defer && operations_.can_defer() && transfers_.is_empty() &&
            device_.deferred().can_defer(operations_.kernels())) {
            device_.deferred().add({this, operations_.batch(), operations_.queue()});
            send(operations_.take_deferred());
            return true;
        }
        if (transfers_.has_unordered_puts()) {
            DIOMP_TRY(transfers_.flush_puts());
        }
        expects_reply_ = operations_.needs_reply();
        phase_ = phase::putting;
    }
    if (phase_ == phase::putting) {
        if (!transfers_.are_puts_done()) {
            return false;
        }
        DIOMP_TRY(transfers_.check_puts());
        if (expects_reply_) {
            transmit(true);
        }
        phase_ = expects_reply_ ? phase::running : phase::getting;
    }
    if (phase_ == phase::running) {
        if (!replies_.has_expected()) {
            return false;
        }
        DIOMP_TRY(consume_reply());
        phase_ = phase::printing;
    }
    if (phase_ == phase::printing) {
        if (!device_.output().has_written(output_bytes_)) {
            return false;
        }
        phase_ = phase::getting;
    }
    auto has_gotten = transfers_.advance_gets();
    if (has_gotten && has_gotten.value()) {
        recorder_.finished_all();
        reset();
    }
    return has_gotten;
}

status queue::synchronize(std::uint64_t up_to) {
    auto const begin = recorder_.now();
    status outcome =
        wait_until([&] { return replies_.has_completed(up_to) ? result<bool>(true) : advance(); },
                   "waiting for");
    if (!outcome) {
        {
            std::lock_guard const guard(mutex_);
            reset();
            if (up_to != all_batches) {
                error const &why = outcome.failure();
                failure_.emplace(why.code(), why.message(), why.remedy());
            }
        }
        if (std::string why = device_.session().explain_loss(); !why.empty()) {
            return error(OMPX_ERR_PEER, std::move(why));
        }
    }
    if (up_to == all_batches) {
        recorder_.waited(begin);
    }
    return outcome;
}

// After a negative result OpenMP's scheduler retries, which takes longer than a small region.
result<bool> queue::test(std::chrono::microseconds polling_time) {
    auto const until = std::chrono::steady_clock::now() + polling_time;
    for (;;) {
        if (device_.session().has_failed()) {
            return error(OMPX_ERR_PEER, device_.session().failure());
        }
        {
            std::lock_guard const guard(mutex_);
            auto outcome = advance(true);
            if (!outcome) {
                reset();
            }
            if (!outcome || outcome.value() || std::chrono::steady_clock::now() >= until) {
                return outcome;
            }
        }
        ::sched_yield();
        owner_.ranks().engine().poll();
    }
}

status queue::order_after_deferred(std::unique_lock<std::mutex> &lock, bool include_own,
                                   bool is_get) {
    if (!is_get && transfers_.has_gets()) {
        lock.unlock();
        DIOMP_TRY(synchronize());
        lock.lock();
    }
    std::uint64_t const now = device_.deferred().generation();
    if (ordered_generation_ == now && !include_own) {
        return {};
    }
    for (event const &each : device_.deferred().pending()) {
        if (each.owner != this || include_own) {
            DIOMP_TRY(reserve_space(batch_builder::wait_bytes, lock));
            operations_.wait(each.number, each.batch);
        }
    }
    ordered_generation_ = now;
    return {};
}

status queue::order_after_all_deferred() {
    std::unique_lock lock(mutex_);
    return order_after_deferred(lock, true);
}

status queue::release_pages(const std::optional<device_memory::range> &freed) {
    std::unique_lock lock(mutex_);
    auto const append = [&](std::span<const device_memory::range> ranges) {
        operations_.release_pages(ranges);
        device_.deferred().add({this, operations_.batch(), operations_.queue()});
    };
    for (bool is_appended = false; !is_appended;) {
        DIOMP_TRY(order_after_deferred(lock, true));
        DIOMP_TRY(reserve_space(batch_builder::max_release_bytes, lock));
        if (freed) {
            append({&*freed, 1});
            break;
        }
        device_.slot().release_idle([&](std::span<const device_memory::range> ranges) {
            if (device_.deferred().generation() != ordered_generation_) {
                return false; // work deferred in the meantime may still use them
            }
            append(ranges);
            return is_appended = true;
        });
    }
    send(operations_.take_deferred());
    return {};
}

} // namespace diomp::offload::remote
