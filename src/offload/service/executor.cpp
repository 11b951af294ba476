// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/service/executor.h"

#include "base/service_thread.h"
#include "transport/conduit.h"

#include <algorithm>
#include <chrono>

namespace diomp::offload::service {
namespace {

/// A helper thread ends after being idle for this time. libomp counts every thread that has run a
/// region, and its team. If they exceed the processors, waiting threads yield after every poll, and
/// each yield costs a time slice if CPU-bound processes share the cores.
constexpr std::chrono::milliseconds max_idle_time{200};
/// The first thread waits so long for copies that it has started, and leaves others to a helper.
constexpr std::chrono::microseconds max_wait_of_first{50};
/// Copies are flushed and replied to at least once in so many batches.
constexpr int batches_per_flush = 32;

} // namespace

executor::~executor() {
    stop();
    for (helper &each : helpers_) {
        each.thread.join();
    }
}

void executor::stop() {
    stopping_.store(true, std::memory_order_release);
    {
        std::lock_guard const guard(mutex_);
        work_available_.notify_all();
    }
    if (remote::world *const ranks = ranks_.load(std::memory_order_acquire)) {
        ranks->conduit().waits().wake();
    }
}

void executor::take(const transport::message &incoming) {
    if (incoming.payload.size() < remote::batch_header_bytes) {
        return;
    }
    packet_reader packet(remote::bytes_of(incoming));
    auto const queue = packet.number<std::uint64_t>();
    auto const number = packet.number<std::uint64_t>();
    std::lock_guard const guard(mutex_);
    auto &found = queues_[queue];
    if (!found) {
        found = std::make_unique<entry>();
        found->number = queue;
    }
    found->batches.push_back({number, std::string(packet.rest())});
    if (!found->is_scheduled) {
        found->is_scheduled = true;
        waiting_.ready.push_back(found.get());
        wake_helpers();
    } else if (found->waits_for_copies) {
        ranks_.load(std::memory_order_acquire)->conduit().waits().wake();
    }
}

executor::entry *executor::pop_ready() {
    if (waiting_.ready.empty()) {
        return nullptr;
    }
    entry *const found = waiting_.ready.front();
    waiting_.ready.pop_front();
    return found;
}

void executor::wake_helpers() {
    std::size_t const num_queues =
        waiting_.copying.size() + (first_is_busy_ ? waiting_.ready.size() : 0);
    if (num_queues == 0) {
        return;
    }
    // Each queue needs a helper of its own: a region or call may wait for one of another queue.
    if (num_idle_ > 0) {
        work_available_.notify_all();
    }
    while (num_idle_ < num_queues) {
        start_helper();
    }
}

void executor::start_helper() {
    auto found = std::ranges::find_if(helpers_, &helper::is_over);
    if (found != helpers_.end()) {
        found->thread.join(); // it has finished
        found->is_over = false;
    } else {
        found = helpers_.insert(helpers_.end(), helper());
    }
    ++num_idle_;
    auto const number = static_cast<std::size_t>(found - helpers_.begin()) + 1;
    found->thread = start_service_thread("diomp-kernels", [this, number] { run_helper(number); });
}

void executor::run_helper(std::size_t thread) {
    std::unique_lock lock(mutex_);
    --num_idle_;
    while (!stopping_.load(std::memory_order_acquire)) {
        entry *queue = nullptr;
        if (!waiting_.copying.empty()) {
            queue = waiting_.copying.front();
            waiting_.copying.pop_front();
        } else if (first_is_busy_) {
            queue = pop_ready();
        }
        if (queue == nullptr) {
            ++num_idle_;
            auto const outcome = work_available_.wait_for(lock, max_idle_time);
            --num_idle_;
            if (outcome == std::cv_status::timeout && waiting_.ready.empty() &&
                waiting_.copying.empty()) {
                break;
            }
            continue;
        }
        lock.unlock();
        run_queue(*queue, thread);
        lock.lock();
    }
    helpers_[thread - 1].is_over = true;
}

void executor::run(remote::world &ranks) {
    ranks_.store(&ranks, std::memory_order_release);
    while (!stopping_.load(std::memory_order_acquire)) {
        entry *queue = nullptr;
        {
            std::lock_guard const guard(mutex_);
            first_is_busy_ = false;
        }
        status const waited = ranks.engine().wait_for_message(
            [&] {
                std::lock_guard const guard(mutex_);
                queue = pop_ready();
                if (queue != nullptr) {
                    first_is_busy_ = true;
                    wake_helpers(); // two batches may have arrived at once
                }
                return queue != nullptr || stopping_.load(std::memory_order_acquire);
            },
            [] { return std::string("waiting for work"); });
        if (!waited) {
            return;
        }
        if (queue != nullptr) {
            run_queue(*queue, 0);
        }
    }
}

void executor::run_queue(entry &queue, std::size_t thread) {
    std::unique_lock lock(mutex_);
    int num_batches = 0;
    for (;;) {
        if (queue.batches.empty()) {
            auto const next = wait_for_copies(queue, thread == 0, lock);
            if (next == after_copies::helper) {
                return;
            }
            if (next == after_copies::no_batch) {
                break;
            }
        }
        batch &what = queue.batches.front(); // more may be appended concurrently
        lock.unlock();
        bool const is_over = run_batch(queue, what, thread);
        if (!is_over) {
            return; // blocked; the thread that makes it ready schedules it
        }
        complete_batch(queue, what.number);
        if (++num_batches % batches_per_flush == 0 && !queue.results.copies.empty()) {
            runner_.finish_copies(*ranks_.load(std::memory_order_acquire), queue.results,
                                  batch_runner::copies_until::complete);
        }
        lock.lock();
        queue.batches.pop_front();
        queue.resume_at = 0;
    }
    queue.is_scheduled = false;
}

executor::after_copies executor::wait_for_copies(entry &queue, bool is_first,
                                                 std::unique_lock<std::mutex> &lock) {
    std::vector<running_copies> &copies = queue.results.copies;
    if (copies.empty()) {
        return after_copies::no_batch;
    }
    using clock = std::chrono::steady_clock;
    auto const until = is_first ? clock::now() + max_wait_of_first : clock::time_point::max();
    queue.waits_for_copies = true;
    first_is_busy_ = first_is_busy_ && !is_first; // it runs what gets ready meanwhile
    lock.unlock();
    remote::world &ranks = *ranks_.load(std::memory_order_acquire);
    bool is_interrupted = false;
    runner_.finish_copies(ranks, queue.results, batch_runner::copies_until::complete);
    status waited;
    while (waited && !copies.empty() && !is_interrupted) {
        waited = ranks.engine().wait_for_network(
            [&] {
                std::lock_guard const guard(mutex_);
                is_interrupted = !queue.batches.empty() ||
                                 stopping_.load(std::memory_order_acquire) ||
                                 (is_first && (!waiting_.ready.empty() || clock::now() >= until));
                return is_interrupted || std::ranges::any_of(copies, &running_copies::are_complete);
            },
            [] { return std::string("copying to or from other devices"); });
        // After an error all of them fail.
        runner_.finish_copies(ranks, queue.results,
                              waited ? batch_runner::copies_until::complete
                                     : batch_runner::copies_until::all);
    }
    lock.lock();
    queue.waits_for_copies = false;
    first_is_busy_ = first_is_busy_ || is_first;
    auto next = after_copies::no_batch;
    if (!queue.batches.empty() && !stopping_.load(std::memory_order_acquire)) {
        next = after_copies::batch;
    } else if (!copies.empty() && is_first) {
        waiting_.copying.push_back(&queue);
        next = after_copies::helper;
    }
    wake_helpers();
    return next;
}

void executor::complete_batch(entry &queue, std::uint64_t number) {
    std::lock_guard const guard(mutex_);
    queue.done = number;
    std::erase_if(blocked_, [&](const blocked_queue &each) {
        if (each.queue != queue.number || each.batch > number) {
            return false;
        }
        waiting_.ready.push_back(each.waiter);
        return true;
    });
    wake_helpers();
    if (!waiting_.ready.empty()) {
        if (remote::world *const ranks = ranks_.load(std::memory_order_acquire)) {
            ranks->conduit().waits().wake();
        }
    }
}

bool executor::is_complete(std::uint64_t queue, std::uint64_t number) const {
    auto const found = queues_.find(queue);
    return found != queues_.end() && found->second->done >= number;
}

bool executor::wait_for(entry &queue, std::uint64_t other, std::uint64_t number) {
    std::unique_lock lock(mutex_);
    if (!queue.results.copies.empty() && !is_complete(other, number)) {
        lock.unlock(); // nothing would reply to them while the queue is blocked
        runner_.finish_copies(*ranks_.load(std::memory_order_acquire), queue.results,
                              batch_runner::copies_until::all);
        lock.lock();
    }
    if (is_complete(other, number)) {
        return true;
    }
    blocked_.push_back({&queue, other, number});
    return false;
}

bool executor::run_batch(entry &queue, batch &what, std::size_t thread) {
    packet_reader packet(std::string_view(what.operations).substr(queue.resume_at));
    bool is_understood = true;
    while (!packet.at_end() && packet.ok() && is_understood) {
        auto const next = packet.type<remote::operation>();
        if (next != remote::operation::fetch && next != remote::operation::deliver) {
            runner_.finish_zero_copy(queue.results);
        }
        if (next == remote::operation::finish) {
            runner_.reply(*ranks_.load(std::memory_order_acquire), queue.number, what.number,
                          queue.results);
        } else if (next == remote::operation::wait) {
            auto const other = packet.number<std::uint64_t>();
            auto const number = packet.number<std::uint64_t>();
            queue.resume_at = what.operations.size() - packet.rest_size();
            if (!wait_for(queue, other, number)) {
                return false;
            }
        } else if (next == remote::operation::begin_copy || next == remote::operation::begin_pull) {
            runner_.start_copy(*ranks_.load(std::memory_order_acquire), queue.results, next, packet,
                               what.number);
        } else {
            is_understood = runner_.run(queue.results, next, packet, thread);
        }
    }
    runner_.finish_zero_copy(queue.results);
    return true;
}

} // namespace diomp::offload::service
