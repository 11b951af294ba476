// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <sched.h>

namespace diomp::offload::remote {
namespace {

constexpr std::chrono::microseconds test_spin_time{10};

} // namespace

queue::time_point queue::now() const {
    return owner_.observer() == nullptr ? time_point{} : std::chrono::steady_clock::now();
}

void queue::record_in_message(client_observer::direction which, std::size_t nbytes,
                              time_point begin) {
    if (client_observer *const observer = owner_.observer()) {
        observer->moved(device_.index(), which, client_observer::carrier::message, nbytes, begin,
                        now());
    }
}

void queue::record_started(client_observer::direction which, client_observer::carrier by,
                           std::size_t nbytes) {
    if (owner_.observer() != nullptr) {
        transfers_in_flight_.push_back({which, by, nbytes, now()});
    }
}

void queue::record_finished(bool all) {
    if (transfers_in_flight_.empty()) {
        return;
    }
    auto const end = now();
    std::erase_if(transfers_in_flight_, [&](const transfer &each) {
        bool const is_complete = all || (each.which == client_observer::direction::to_device &&
                                         each.by == client_observer::carrier::network);
        if (is_complete) {
            owner_.observer()->moved(device_.index(), each.which, each.by, each.nbytes, each.begin,
                                     end);
        }
        return is_complete;
    });
}

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

status queue::check_puts() {
    if (put_completion_ && put_completion_->failure.load(std::memory_order_relaxed) != 0) {
        return error(OMPX_ERR_PEER, device_.session().has_failed()
                                        ? device_.session().failure()
                                        : fmt::format("a transfer to {} failed", device_.label()));
    }
    record_finished(false);
    return {};
}

void queue::transmit(bool last) {
    if (last) {
        append_operation(pending_operations_, operation::finish);
        num_unacknowledged_ = 0;
        std::lock_guard const guard(reply_mutex_);
        awaited_batch_ = batch_;
        has_reply_.store(false, std::memory_order_relaxed);
    }
    packet_writer packet;
    packet.number(number_);
    packet.number(batch_);
    packet.bytes(std::exchange(pending_operations_, {}).take());
    std::string const bytes = packet.take();
    owner_.ranks().engine().send(device_.rank(), world::batch_handler,
                                 std::as_bytes(std::span(bytes)));
    if (client_observer *const observer = owner_.observer()) {
        observer->sent(device_.index(), bytes.size());
        transmitted_at_ = now();
    }
    put_ranges_.clear();
    has_transmitted_ = true;
    ++batch_;
}

status queue::reserve_space(std::size_t nbytes, std::unique_lock<std::mutex> &lock) {
    std::size_t const max_bytes =
        owner_.ranks().conduit().max_message_bytes(device_.rank()) - batch_header_bytes - 1;
    if (pending_operations_.size() + nbytes <= max_bytes) {
        return {};
    }
    if (has_large_puts_) {
        // Pending operations may depend on puts that are still in flight.
        DIOMP_TRY(owner_.ranks().conduit().flush(device_.rank(), *put_completion_));
        lock.unlock();
        DIOMP_TRY(wait_until([&] { return result<bool>(put_completion_->is_done()); },
                             "waiting for puts to"));
        lock.lock();
        DIOMP_TRY(check_puts());
        has_large_puts_ = false;
    }
    transmit(false);
    return {};
}

status queue::append_wait(const event &earlier, std::unique_lock<std::mutex> &lock) {
    DIOMP_TRY(reserve_space(17, lock));
    append_operation(pending_operations_, operation::wait);
    pending_operations_.number(earlier.owner->number_);
    pending_operations_.number(earlier.batch);
    has_work_ = true;
    has_session_work_ = true;
    return {};
}

status queue::launch(const launch_arguments &arguments) {
    std::unique_lock lock(mutex_);
    DIOMP_TRY(order_after_deferred(lock));
    packet_writer encoded;
    append(encoded, arguments);
    DIOMP_TRY(reserve_space(encoded.size(), lock));
    pending_operations_.bytes(encoded.take());
    kernels_.push_back(arguments.kernel);
    has_work_ = true;
    has_session_work_ = true;
    return {};
}

event queue::record() {
    std::lock_guard const guard(mutex_);
    return {this, has_work_ ? batch_ : 0};
}

result<bool> queue::send_up_to(std::uint64_t batch) {
    std::shared_ptr<transport::completion> in_flight;
    {
        std::lock_guard const guard(mutex_);
        if (batch_ > batch || phase_ > phase::putting ||
            (phase_ == phase::putting && expects_reply_)) {
            return !has_completed(batch);
        }
        if (phase_ == phase::batching && has_large_puts_) {
            DIOMP_TRY(owner_.ranks().conduit().flush(device_.rank(), *put_completion_));
        }
        in_flight = put_completion_;
    }
    DIOMP_TRY(wait_until([&] { return result<bool>(in_flight == nullptr || in_flight->is_done()); },
                         "waiting for puts to"));
    std::lock_guard const guard(mutex_);
    if (has_completed(batch) || (phase_ != phase::batching && !expects_reply_)) {
        return false; // there were only large puts, and they are complete
    }
    if (phase_ == phase::batching && batch_ <= batch) {
        DIOMP_TRY(check_puts());
        transmit(false);
    }
    return true;
}

status queue::wait_for(const event &earlier) {
    if (earlier.owner == nullptr || earlier.owner == this ||
        earlier.owner->has_completed(earlier.batch)) {
        return {};
    }
    auto is_sent = earlier.owner->send_up_to(earlier.batch);
    DIOMP_TRY(is_sent);
    if (!is_sent.value()) {
        return {};
    }
    std::unique_lock lock(mutex_);
    return append_wait(earlier, lock);
}

void queue::handle_reply(const batch_reply &reply) {
    if (reply.kernel != 0) {
        device_.deferred().record_time(reply.kernel, std::chrono::microseconds(reply.kernel_us));
    }
    bool const was_deferred = device_.deferred().complete(this, reply.batch);
    if (was_deferred) {
        set_done_up_to(reply.batch);
    }
    {
        std::lock_guard const guard(reply_mutex_);
        if (reply.batch == awaited_batch_) {
            reply_ = encode(reply);
            has_reply_.store(true, std::memory_order_release);
            return;
        }
    }
    if (was_deferred && reply.failed) { // otherwise the batch was abandoned
        device_.session().fail(
            fmt::format("{} (in a target region that no call waited for)", reply.rest));
    }
}

void queue::set_done_up_to(std::uint64_t batch) {
    std::uint64_t seen = done_.load(std::memory_order_relaxed);
    while (seen < batch && !done_.compare_exchange_weak(seen, batch, std::memory_order_release,
                                                        std::memory_order_relaxed)) {
    }
}

status queue::consume_reply() {
    std::string bytes;
    {
        std::lock_guard const guard(reply_mutex_);
        bytes.swap(reply_);
        awaited_batch_ = 0;
        has_reply_.store(false, std::memory_order_relaxed);
    }
    auto decoded = decode_reply(bytes);
    DIOMP_TRY(decoded);
    batch_reply const &reply = decoded.value();
    std::copy(std::begin(reply.output_bytes), std::end(reply.output_bytes), output_bytes_);
    if (client_observer *const observer = owner_.observer()) {
        observer->replied(device_.index(), bytes.size(), kernels_.empty() ? 0 : kernels_.front(),
                          transmitted_at_, now());
    }
    if (reply.failed) {
        return error(OMPX_ERR_PEER, fmt::format("{}: {}", device_.label(), reply.rest));
    }
    // This batch was ordered after the deferred work of other queues.
    for (event const &each : device_.deferred().complete_up_to(ordered_generation_)) {
        each.owner->set_done_up_to(each.batch);
    }
    if (reply.rest.size() != small_get_bytes_) {
        return error(OMPX_ERR_SYSTEM,
                     fmt::format("{} replied with {} bytes instead of {}", device_.label(),
                                 reply.rest.size(), small_get_bytes_));
    }
    const char *from = reply.rest.data();
    for (small_get const &each : small_gets_) {
        std::memcpy(each.destination, from, each.nbytes);
        from += each.nbytes;
    }
    return {};
}

void queue::discard_pending() {
    static_cast<void>(std::exchange(pending_operations_, {}).take());
    put_ranges_.clear();
    kernels_.clear();
    has_work_ = false;
    has_session_work_ = false;
    has_copies_ = false;
    has_transmitted_ = false;
    phase_ = phase::batching;
}

void queue::reset() {
    bool const had_work = has_work_;
    discard_pending();
    small_gets_.clear();
    small_get_bytes_ = 0;
    large_gets_.clear();
    transfers_in_flight_.clear();
    for (std::uint64_t const stage : stage_buffers_) {
        device_.slot().release(stage);
    }
    stage_buffers_.clear();
    has_large_puts_ = false;
    for (auto *each : {&put_completion_, &get_completion_}) {
        if (*each && !(*each)->is_done()) {
            abandoned_.push_back(*each);
        }
        each->reset();
    }
    // The number of a batch that was not sent must not be reused: events may refer to it. Work
    // deferred before it is complete, since this batch was ordered after it.
    if (had_work) {
        set_done_up_to(batch_++);
    }
}

result<bool> queue::advance(bool may_defer) {
    auto &conduit = owner_.ranks().conduit();
    if (phase_ == phase::batching) {
        if (may_defer && can_defer()) {
            defer();
            return true;
        }
        if (has_large_puts_) {
            DIOMP_TRY(conduit.flush(device_.rank(), *put_completion_));
        }
        expects_reply_ = has_transmitted_ || pending_operations_.size() > 0;
        phase_ = phase::putting;
    }
    if (phase_ == phase::putting) {
        if (put_completion_ && !put_completion_->is_done()) {
            return false;
        }
        DIOMP_TRY(check_puts());
        if (expects_reply_) {
            transmit(true);
        }
        phase_ = expects_reply_ ? phase::running : phase::getting;
    }
    if (phase_ == phase::running) {
        if (!has_reply_.load(std::memory_order_acquire)) {
            return false;
        }
        DIOMP_TRY(consume_reply());
        phase_ = phase::printing;
    }
    if (phase_ == phase::printing) {
        if (!device_.output().has_written({output_bytes_[0], output_bytes_[1]})) {
            return false;
        }
        phase_ = phase::getting;
    }
    if (!get_completion_ && !large_gets_.empty()) {
        get_completion_ = std::make_shared<transport::completion>();
        for (large_get const &each : large_gets_) {
            record_started(client_observer::direction::from_device,
                           client_observer::carrier::network, each.nbytes);
            DIOMP_TRY(conduit.get(device_.rank(), each.address, each.destination, each.nbytes,
                                  *get_completion_));
        }
    }
    if (get_completion_ && !get_completion_->is_done()) {
        return false;
    }
    if (get_completion_ && get_completion_->failure.load(std::memory_order_relaxed) != 0) {
        return error(OMPX_ERR_PEER, fmt::format("a transfer from {} failed", device_.label()));
    }
    record_finished(true);
    reset();
    return true;
}

status queue::synchronize() {
    auto const begin = now();
    status outcome = wait_until([this] { return advance(); }, "waiting for");
    if (!outcome) {
        {
            std::lock_guard const guard(mutex_);
            reset();
        }
        if (std::string why = device_.session().explain_loss(); !why.empty()) {
            return error(OMPX_ERR_PEER, std::move(why));
        }
    }
    if (client_observer *const observer = owner_.observer()) {
        observer->waited(device_.index(), begin, now());
    }
    return outcome;
}

result<bool> queue::test() {
    // After a negative result OpenMP's scheduler retries, which takes longer than a small region.
    // So this polls for a while first.
    auto const until = std::chrono::steady_clock::now() + test_spin_time;
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

} // namespace diomp::offload::remote
