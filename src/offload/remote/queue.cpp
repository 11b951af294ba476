// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <sched.h>

namespace diomp::offload::remote {
namespace {

constexpr std::chrono::microseconds patience_of_test{10};

} // namespace

queue::time_point queue::now() const {
    return owner_.watch() == nullptr ? time_point{} : std::chrono::steady_clock::now();
}

void queue::note_moved(observer::direction which, std::size_t nbytes, time_point begin) {
    if (observer *const watch = owner_.watch()) {
        watch->moved(device_.index(), which, observer::carrier::message, nbytes, begin, now());
    }
}

void queue::note_flight(observer::direction which, observer::carrier by, std::size_t nbytes) {
    if (owner_.watch() != nullptr) {
        flights_.push_back({which, by, nbytes, now()});
    }
}

void queue::note_landed(bool all) {
    if (flights_.empty()) {
        return;
    }
    auto const end = now();
    std::erase_if(flights_, [&](const flight &each) {
        bool const is_there = all || (each.which == observer::direction::to_device &&
                                      each.by == observer::carrier::network);
        if (is_there) {
            owner_.watch()->moved(device_.index(), each.which, each.by, each.nbytes, each.begin,
                                  end);
        }
        return is_there;
    });
}

template <typename Ready>
status queue::wait_until(Ready ready, const char *what) {
    std::optional<error> failure;
    auto const is_over = [&] {
        if (device_.has_failed()) {
            failure.emplace(OMPX_ERR_PEER, device_.failure());
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

status queue::landed() {
    if (landing_ && landing_->failure.load(std::memory_order_relaxed) != 0) {
        return error(OMPX_ERR_PEER, device_.has_failed()
                                        ? device_.failure()
                                        : fmt::format("a transfer to {} failed", device_.label()));
    }
    note_landed(false);
    return {};
}

void queue::ship(bool last) {
    if (last) {
        append_operation(gathered_, operation::finish);
        num_unanswered_ = 0;
        std::lock_guard const guard(reply_mutex_);
        awaited_ = batch_;
        has_reply_.store(false, std::memory_order_relaxed);
    }
    packet_writer packet;
    packet.number(number_);
    packet.number(batch_);
    packet.bytes(std::exchange(gathered_, {}).take());
    std::string const bytes = packet.take();
    owner_.ranks().engine().send(device_.rank(), world::batch_handler,
                                 std::as_bytes(std::span(bytes)));
    if (observer *const watch = owner_.watch()) {
        watch->sent(device_.index(), bytes.size());
        shipped_at_ = now();
    }
    put_ranges_.clear();
    shipped_ = true;
    ++batch_;
}

status queue::make_room(std::size_t nbytes, std::unique_lock<std::mutex> &lock) {
    std::size_t const most =
        owner_.ranks().conduit().max_message_bytes(device_.rank()) - batch_header_bytes - 1;
    if (gathered_.size() + nbytes <= most) {
        return {};
    }
    if (has_large_puts_) {
        // What has gathered may need what is still on its way.
        DIOMP_TRY(owner_.ranks().conduit().flush(device_.rank(), *landing_));
        lock.unlock();
        DIOMP_TRY(
            wait_until([&] { return result<bool>(landing_->is_done()); }, "waiting for puts to"));
        lock.lock();
        DIOMP_TRY(landed());
        has_large_puts_ = false;
    }
    ship(false);
    return {};
}

status queue::append_wait(const event &earlier, std::unique_lock<std::mutex> &lock) {
    DIOMP_TRY(make_room(17, lock));
    append_operation(gathered_, operation::wait);
    gathered_.number(earlier.of->number_);
    gathered_.number(earlier.batch);
    has_work_ = true;
    computes_ = true;
    return {};
}

status queue::launch(const launch_arguments &arguments) {
    std::unique_lock lock(mutex_);
    DIOMP_TRY(follow(lock));
    packet_writer encoded;
    append(encoded, arguments);
    DIOMP_TRY(make_room(encoded.size(), lock));
    gathered_.bytes(encoded.take());
    kernels_.push_back(arguments.kernel);
    has_work_ = true;
    computes_ = true;
    return {};
}

event queue::record() {
    std::lock_guard const guard(mutex_);
    return {this, has_work_ ? batch_ : 0};
}

result<bool> queue::send_up_to(std::uint64_t batch) {
    std::shared_ptr<conduit::completion> under_way;
    {
        std::lock_guard const guard(mutex_);
        if (batch_ > batch || phase_ > phase::landing || (phase_ == phase::landing && ships_)) {
            return !has_passed(batch);
        }
        if (phase_ == phase::gathering && has_large_puts_) {
            DIOMP_TRY(owner_.ranks().conduit().flush(device_.rank(), *landing_));
        }
        under_way = landing_;
    }
    DIOMP_TRY(wait_until([&] { return result<bool>(under_way == nullptr || under_way->is_done()); },
                         "waiting for puts to"));
    std::lock_guard const guard(mutex_);
    if (has_passed(batch) || (phase_ != phase::gathering && !ships_)) {
        return false; // there were large puts only, and they have landed
    }
    if (phase_ == phase::gathering && batch_ <= batch) {
        DIOMP_TRY(landed());
        ship(false);
    }
    return true;
}

status queue::wait_for(const event &earlier) {
    if (earlier.of == nullptr || earlier.of == this || earlier.of->has_passed(earlier.batch)) {
        return {};
    }
    auto is_seen = earlier.of->send_up_to(earlier.batch);
    DIOMP_TRY(is_seen);
    if (!is_seen.value()) {
        return {};
    }
    std::unique_lock lock(mutex_);
    return append_wait(earlier, lock);
}

void queue::take_reply(const reply &answer) {
    if (answer.kernel != 0) {
        device_.posted().note_time(answer.kernel, std::chrono::microseconds(answer.kernel_us));
    }
    bool const was_posted = device_.posted().settle(this, answer.batch);
    if (was_posted) {
        raise_done(answer.batch);
    }
    {
        std::lock_guard const guard(reply_mutex_);
        if (answer.batch == awaited_) {
            reply_ = encode(answer);
            has_reply_.store(true, std::memory_order_release);
            return;
        }
    }
    if (was_posted && answer.failed) { // else it was given up
        device_.fail(fmt::format("{} (in a region that nobody waited for)", answer.rest));
    }
}

void queue::raise_done(std::uint64_t batch) {
    std::uint64_t seen = done_.load(std::memory_order_relaxed);
    while (seen < batch && !done_.compare_exchange_weak(seen, batch, std::memory_order_release,
                                                        std::memory_order_relaxed)) {
    }
}

status queue::take_answer() {
    std::string bytes;
    {
        std::lock_guard const guard(reply_mutex_);
        bytes.swap(reply_);
        awaited_ = 0;
        has_reply_.store(false, std::memory_order_relaxed);
    }
    auto decoded = decode_reply(bytes);
    DIOMP_TRY(decoded);
    reply const &answer = decoded.value();
    std::copy(std::begin(answer.output_bytes), std::end(answer.output_bytes), output_bytes_);
    if (observer *const watch = owner_.watch()) {
        watch->answered(device_.index(), bytes.size(), kernels_.empty() ? 0 : kernels_.front(),
                        shipped_at_, now());
    }
    if (answer.failed) {
        return error(OMPX_ERR_PEER, fmt::format("{}: {}", device_.label(), answer.rest));
    }
    // This was behind what other queues had posted.
    for (event const &each : device_.posted().settle_first(followed_)) {
        each.of->raise_done(each.batch);
    }
    if (answer.rest.size() != small_get_bytes_) {
        return error(OMPX_ERR_SYSTEM,
                     fmt::format("{} sent {} bytes where {} were asked for", device_.label(),
                                 answer.rest.size(), small_get_bytes_));
    }
    const char *from = answer.rest.data();
    for (small_get const &each : small_gets_) {
        std::memcpy(each.destination, from, each.nbytes);
        from += each.nbytes;
    }
    return {};
}

void queue::forget_gathered() {
    static_cast<void>(std::exchange(gathered_, {}).take());
    put_ranges_.clear();
    kernels_.clear();
    has_work_ = false;
    computes_ = false;
    copies_ = false;
    shipped_ = false;
    phase_ = phase::gathering;
}

void queue::reset() {
    bool const had_work = has_work_;
    forget_gathered();
    small_gets_.clear();
    small_get_bytes_ = 0;
    large_gets_.clear();
    flights_.clear();
    for (std::uint64_t const stage : stages_) {
        device_.slot().release(stage);
    }
    stages_.clear();
    has_large_puts_ = false;
    for (auto *each : {&landing_, &fetching_}) {
        if (*each && !(*each)->is_done()) {
            abandoned_.push_back(*each);
        }
        each->reset();
    }
    // The number of a batch that was not sent is used up: events name it. What was posted before is
    // done then, since this was behind it.
    if (had_work) {
        raise_done(batch_++);
    }
}

result<bool> queue::advance(bool may_post) {
    auto &conduit = owner_.ranks().conduit();
    if (phase_ == phase::gathering) {
        if (may_post && can_post()) {
            post();
            return true;
        }
        if (has_large_puts_) {
            DIOMP_TRY(conduit.flush(device_.rank(), *landing_));
        }
        ships_ = shipped_ || gathered_.size() > 0;
        phase_ = phase::landing;
    }
    if (phase_ == phase::landing) {
        if (landing_ && !landing_->is_done()) {
            return false;
        }
        DIOMP_TRY(landed());
        if (ships_) {
            ship(true);
        }
        phase_ = ships_ ? phase::running : phase::fetching;
    }
    if (phase_ == phase::running) {
        if (!has_reply_.load(std::memory_order_acquire)) {
            return false;
        }
        DIOMP_TRY(take_answer());
        phase_ = phase::printing;
    }
    if (phase_ == phase::printing) {
        if (device_.output_bytes(0) < output_bytes_[0] ||
            device_.output_bytes(1) < output_bytes_[1]) {
            return false;
        }
        phase_ = phase::fetching;
    }
    if (!fetching_ && !large_gets_.empty()) {
        fetching_ = std::make_shared<conduit::completion>();
        for (large_get const &each : large_gets_) {
            note_flight(observer::direction::from_device, observer::carrier::network, each.nbytes);
            DIOMP_TRY(conduit.get(device_.rank(), each.address, each.destination, each.nbytes,
                                  *fetching_));
        }
    }
    if (fetching_ && !fetching_->is_done()) {
        return false;
    }
    if (fetching_ && fetching_->failure.load(std::memory_order_relaxed) != 0) {
        return error(OMPX_ERR_PEER, fmt::format("a transfer from {} failed", device_.label()));
    }
    note_landed(true);
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
        if (std::string why = device_.explain_loss(); !why.empty()) {
            return error(OMPX_ERR_PEER, std::move(why));
        }
    }
    if (observer *const watch = owner_.watch()) {
        watch->waited(device_.index(), begin, now());
    }
    return outcome;
}

result<bool> queue::test() {
    // Who asks too early is asked to try again by way of OpenMP's scheduler, which takes longer
    // than a small region.
    auto const until = std::chrono::steady_clock::now() + patience_of_test;
    for (;;) {
        if (device_.has_failed()) {
            return error(OMPX_ERR_PEER, device_.failure());
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
