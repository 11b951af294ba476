// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/service/executor.h"

#include "base/service_thread.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace diomp::offload::service {
namespace {

/// A helper thread ends after being idle for this time. libomp counts every thread that has run a
/// region, and its team. If they exceed the processors, waiting threads yield after every poll, and
/// each yield costs a time slice if CPU-bound processes share the cores.
constexpr std::chrono::milliseconds max_idle_time{200};

} // namespace

void activity_table::begin(std::size_t thread, const std::string &kernel) {
    entry &mine = entries[thread % num_entries];
    std::size_t const length = std::min(kernel.size(), sizeof(mine.kernel) - 1);
    std::memcpy(mine.kernel, kernel.data(), length);
    mine.kernel[length] = '\0';
    mine.is_busy.store(true, std::memory_order_release);
}

void activity_table::end(std::size_t thread) {
    entries[thread % num_entries].is_busy.store(false, std::memory_order_release);
}

std::string activity_table::describe() const {
    std::string text;
    for (entry const &each : entries) {
        if (each.is_busy.load(std::memory_order_acquire)) {
            text += (text.empty() ? "kernel " : ", kernel ") +
                    std::string(each.kernel, ::strnlen(each.kernel, sizeof each.kernel));
        }
    }
    return text;
}

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
        ranks->conduit().wake();
    }
}

void executor::take(const transport::message &incoming) {
    if (incoming.source != world_rank(0) || incoming.payload.size() < remote::batch_header_bytes) {
        return; // only the client sends batches
    }
    packet_reader packet(
        {reinterpret_cast<const char *>(incoming.payload.data()), incoming.payload.size()});
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
        ready_.push_back(found.get());
        wake_helper();
    }
}

executor::entry *executor::pop_ready() {
    if (ready_.empty()) {
        return nullptr;
    }
    entry *const found = ready_.front();
    ready_.pop_front();
    return found;
}

void executor::wake_helper() {
    if (ready_.empty() || !first_is_busy_) {
        return;
    }
    if (num_idle_ > 0) {
        work_available_.notify_one();
    } else {
        start_helper();
    }
}

void executor::start_helper() {
    auto found = std::ranges::find_if(helpers_, &helper::is_over);
    if (found != helpers_.end()) {
        found->thread.join(); // it has finished
        found->is_over = false;
    } else if (helpers_.size() + 1 < activity_table::num_entries) {
        found = helpers_.insert(helpers_.end(), helper());
    } else {
        return;
    }
    auto const number = static_cast<std::size_t>(found - helpers_.begin()) + 1;
    found->thread = start_service_thread("diomp-kernels", [this, number] { run_helper(number); });
}

void executor::run_helper(std::size_t thread) {
    std::unique_lock lock(mutex_);
    while (!stopping_.load(std::memory_order_acquire)) {
        entry *const queue = pop_ready();
        if (queue == nullptr) {
            ++num_idle_;
            auto const outcome = work_available_.wait_for(lock, max_idle_time);
            --num_idle_;
            if (outcome == std::cv_status::timeout && ready_.empty()) {
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
                    wake_helper(); // two batches may have arrived at once
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
    while (!queue.batches.empty()) {
        batch &what = queue.batches.front(); // more may be appended concurrently
        lock.unlock();
        bool const is_over = run_batch(queue, what, thread);
        if (!is_over) {
            return; // blocked; the thread that makes it ready schedules it
        }
        complete_batch(queue, what.number);
        lock.lock();
        queue.batches.pop_front();
        queue.resume_at = 0;
    }
    queue.is_scheduled = false;
}

void executor::complete_batch(entry &queue, std::uint64_t number) {
    std::lock_guard const guard(mutex_);
    queue.done = number;
    std::erase_if(blocked_, [&](const blocked_queue &each) {
        if (each.queue != queue.number || each.batch > number) {
            return false;
        }
        ready_.push_back(each.waiter);
        return true;
    });
    wake_helper();
    if (!ready_.empty()) {
        if (remote::world *const ranks = ranks_.load(std::memory_order_acquire)) {
            ranks->conduit().wake();
        }
    }
}

bool executor::wait_for(entry &queue, std::uint64_t other, std::uint64_t number) {
    std::lock_guard const guard(mutex_);
    auto const found = queues_.find(other);
    if (found != queues_.end() && found->second->done >= number) {
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
            finish_zero_copy(queue);
        }
        if (next == remote::operation::finish) {
            finish(queue, what.number);
        } else if (next == remote::operation::wait) {
            auto const other = packet.number<std::uint64_t>();
            auto const number = packet.number<std::uint64_t>();
            queue.resume_at = what.operations.size() - packet.rest_size();
            if (!wait_for(queue, other, number)) {
                return false;
            }
        } else {
            is_understood = run_operation(queue, next, packet, thread);
        }
    }
    finish_zero_copy(queue);
    return true;
}

bool executor::run_operation(entry &queue, remote::operation what, packet_reader &packet,
                             std::size_t thread) {
    auto const try_to = [&](auto &&operation) {
        if (!queue.failure.empty()) {
            return; // operations after an error are skipped
        }
        if (!packet.ok()) {
            queue.failure = "malformed batch";
        } else if (status const done = operation(); !done) {
            queue.failure = done.failure().message();
        }
    };
    switch (what) {
    case remote::operation::put: {
        auto const address = packet.number<std::uint64_t>();
        std::string_view const bytes = packet.text();
        try_to([&] { return device_.write(address, bytes.data(), bytes.size()); });
        return true;
    }
    case remote::operation::get: {
        auto const address = packet.number<std::uint64_t>();
        auto const nbytes = packet.number<std::uint64_t>();
        try_to([&] { return get(queue, address, nbytes); });
        return true;
    }
    case remote::operation::fetch:
    case remote::operation::deliver: {
        auto const transfer = remote::decode_zero_copy(packet);
        try_to([&] { return start_zero_copy(queue, what, transfer); });
        return true;
    }
    case remote::operation::copy: {
        world_rank const to(static_cast<int>(packet.number<std::uint32_t>()));
        auto const destination = packet.number<std::uint64_t>();
        auto const source = packet.number<std::uint64_t>();
        auto const nbytes = packet.number<std::uint64_t>();
        try_to([&] { return copy(to, destination, source, nbytes); });
        return true;
    }
    case remote::operation::launch: {
        auto const arguments = remote::decode_launch(packet);
        try_to([&] { return launch(queue, arguments, thread); });
        return true;
    }
    case remote::operation::release_pages:
        if (status const released = release_pages(packet); !released) {
            queue.failure = released.failure().message();
        }
        return true;
    default:
        try_to([] { return status(error(OMPX_ERR_ARG, "unknown operation in a batch")); });
        return false;
    }
}

status executor::launch(entry &queue, const remote::launch_arguments &launch, std::size_t thread) {
    std::string const *const name = device_.kernel_name(launch.kernel);
    if (name == nullptr) {
        return error(OMPX_ERR_ARG, fmt::format("there is no kernel at {:#x}", launch.kernel));
    }
    activities_.begin(thread, *name);
    auto const begin = std::chrono::steady_clock::now();
    status const done = device_.launch(launch);
    if (min_kernel_time_.count() > 0) {
        std::this_thread::sleep_until(begin + min_kernel_time_);
    }
    activities_.end(thread);
    auto const elapsed = std::chrono::steady_clock::now() - begin;
    record_time(launch.kernel, *name, elapsed);
    auto const taken = std::chrono::duration_cast<std::chrono::microseconds>(elapsed);
    if (queue.kernel == 0 || taken > queue.kernel_time) {
        queue.kernel = launch.kernel;
        queue.kernel_time = taken;
    }
    if (!done) {
        return error(done.failure().code(),
                     fmt::format("kernel {}: {}", *name, done.failure().message()));
    }
    return {};
}

void executor::record_time(std::uint64_t kernel, const std::string &name,
                           std::chrono::nanoseconds taken) {
    auto const nanoseconds = static_cast<std::uint64_t>(taken.count());
    std::lock_guard const guard(mutex_);
    remote::kernel_time &sum = kernel_times_[kernel];
    if (sum.calls++ == 0) {
        sum.name = name;
    }
    sum.total_ns += nanoseconds;
    sum.longest_ns = std::max(sum.longest_ns, nanoseconds);
}

std::vector<remote::kernel_time> executor::kernel_times() {
    std::lock_guard const guard(mutex_);
    std::vector<remote::kernel_time> times;
    times.reserve(kernel_times_.size());
    for (auto const &each : kernel_times_) {
        times.push_back(each.second);
    }
    return times;
}

void executor::finish(entry &queue, std::uint64_t number) {
    auto const printed = printed_.flush();
    remote::world &ranks = *ranks_.load(std::memory_order_acquire);
    remote::batch_reply reply;
    reply.queue = queue.number;
    reply.batch = number;
    reply.failed = !queue.failure.empty();
    reply.output_bytes[0] = printed[0];
    reply.output_bytes[1] = printed[1];
    reply.kernel = std::exchange(queue.kernel, 0);
    reply.kernel_us = static_cast<std::uint64_t>(queue.kernel_time.count());
    std::size_t const max_bytes = ranks.conduit().max_message_bytes(world_rank(0));
    std::string_view const rest = reply.failed ? queue.failure : queue.gets;
    if (!reply.failed && rest.size() + remote::reply_header_bytes > max_bytes) {
        queue.failure = "a batch requests more bytes than a reply can have";
        reply.failed = true;
        reply.rest = queue.failure;
    } else {
        reply.rest = rest.substr(0, max_bytes - remote::reply_header_bytes);
    }
    std::string const bytes = encode(reply);
    ranks.engine().send(world_rank(0), remote::world::reply_handler,
                        std::as_bytes(std::span(bytes)));
    queue.failure.clear();
    queue.gets.clear();
}

} // namespace diomp::offload::service
