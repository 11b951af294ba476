// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/internal/region_proxy.h"

#include "base/cpu.h"
#include "base/service_thread.h"
#include "config/settings.h"
#include "device/numa.h"
#include "offload/internal/barrier_groups.h"
#include "offload/internal/request_rings.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <sched.h>
#include <utility>

namespace diomp::offload {
namespace {

/// How the thread passes time while regions run that request nothing: it polls, then yields its
/// core, then sleeps for times that a request barely notices beside a network.
class pause_between_polls {
public:
    void after_request() { num_idle_ = 0; }
    void after_nothing() {
        ++num_idle_;
        if (num_idle_ < max_polls) {
            cpu_relax();
        } else if (num_idle_ < max_yields) {
            ::sched_yield();
        } else {
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
    }

private:
    static constexpr int max_polls = 2000;
    static constexpr int max_yields = 20'000;
    int num_idle_ = 0;
};

/// [ring] The index after the last request that is stored now.
using ring_ends = std::array<std::uint64_t, request_rings::num_rings>;

ring_ends stored_by_now(request_rings &rings, bool others_run) {
    ring_ends ends{};
    for (std::size_t i = 0; i < ends.size(); ++i) {
        // Without another region there are gaps only where a thread has given up: nothing behind
        // them will be executed.
        request_ring const &ring = rings.all()[i];
        ends[i] = ring.stored_end(others_run && !ring.is_broken());
    }
    return ends;
}

bool are_executed(request_rings &rings, const ring_ends &ends) {
    for (std::size_t i = 0; i < ends.size(); ++i) {
        if (rings.all()[i].done() < ends[i]) {
            return false;
        }
    }
    return true;
}

} // namespace

region_proxy::region_proxy(std::unique_ptr<request_executor> executor, messaging::engine &engine,
                           device_call_paths calls_by)
    : executor_(std::move(executor)), engine_(engine), calls_by_(calls_by),
      allowed_(device::processors_of_thread()) {}

bool region_proxy::takes_requests() const { return calls_by_ != device_call_paths::direct; }
bool region_proxy::replaces_mappings() const { return calls_by_ == device_call_paths::ring; }

region_proxy::~region_proxy() {
    {
        std::lock_guard const guard(mutex_);
        stopping_.store(true, std::memory_order_relaxed);
    }
    changed_.notify_all();
    if (thread_.joinable()) {
        thread_.join();
    }
}

status region_proxy::begin(const requesting_device &on, request_rings &rings,
                           function_ref<status(std::span<const ompx_group_t>)> reset) {
    served &device = devices_[static_cast<std::size_t>(on.device)];
    auto const needs_reset = [&] {
        return rings.is_broken() || executor_->groups().has_freed(on.device);
    };
    if (needs_reset()) {
        std::lock_guard const serving(device.serving);
        std::lock_guard const guard(mutex_);
        if (device.num_regions == 0 && needs_reset()) {
            DIOMP_TRY(reset(executor_->groups().take_freed(on.device)));
        }
    }
    std::lock_guard const guard(mutex_);
    if (++device.num_regions > 1) {
        return {};
    }
    bool const is_new = device.rings == nullptr;
    if (is_new) { // later the thread reads both
        device.on = on;
        device.rings = &rings;
    }
    active_.fetch_or(std::uint64_t{1} << on.device, std::memory_order_release);
    if (!thread_.joinable()) {
        thread_ = start_service_thread("diomp-proxy", [this] { serve(); });
    }
    if (is_new) {
        bind();
    }
    changed_.notify_one();
    return {};
}

void region_proxy::forget_group(std::uint64_t id) { executor_->groups().forget(id); }

// The thread that starts it may be one that OpenMP has bound to a single core, where it computes.
void region_proxy::bind() {
    device::processor_set near(allowed_.size());
    for (served const &each : devices_) {
        if (each.rings == nullptr) {
            continue;
        }
        auto const there = device::processors_of_node(each.on.numa_node, allowed_);
        if (std::find(there.begin(), there.end(), true) == there.end()) {
            near = allowed_; // unknown, or the rank may not run there
            break;
        }
        for (std::size_t cpu = 0; cpu < near.size(); ++cpu) {
            near[cpu] = near[cpu] || there[cpu];
        }
    }
    device::bind_thread(thread_.native_handle(), near);
}

status region_proxy::end(int number) {
    served &device = devices_[static_cast<std::size_t>(number)];
    ring_ends ends{};
    {
        std::lock_guard const guard(mutex_);
        if (device.num_regions == 0) {
            return {};
        }
        ends = stored_by_now(*device.rings, device.num_regions > 1);
    }
    num_ending_.fetch_add(1);
    status ended = engine_.wait(
        [&] { return are_executed(*device.rings, ends); },
        [number] {
            return fmt::format("waiting for requests of a target region on device {}", number);
        });
    num_ending_.fetch_sub(1);
    if (ended) {
        ended = executor_->finish();
    }
    std::lock_guard const guard(mutex_);
    if (--device.num_regions == 0) {
        active_.fetch_and(~(std::uint64_t{1} << number), std::memory_order_release);
    }
    return ended;
}

std::optional<region_error> region_proxy::take_error(int device) {
    {
        std::lock_guard const guard(mutex_);
        if (auto failed =
                std::exchange(devices_[static_cast<std::size_t>(device)].failed, std::nullopt)) {
            return failed;
        }
    }
    return executor_->take_error(device);
}

void region_proxy::serve() {
    pause_between_polls pause;
    while (!stopping_.load(std::memory_order_relaxed)) {
        std::uint64_t const active = active_.load(std::memory_order_acquire);
        if (active == 0) {
            std::unique_lock guard(mutex_);
            changed_.wait(guard, [&] {
                return stopping_.load(std::memory_order_relaxed) ||
                       active_.load(std::memory_order_relaxed) != 0;
            });
            pause.after_request();
            continue;
        }
        bool any = false;
        for (std::size_t device = 0; device < devices_.size(); ++device) {
            if ((active >> device & 1) != 0 && serve(devices_[device])) {
                any = true;
            }
        }
        any ? pause.after_request() : pause.after_nothing();
    }
}

bool region_proxy::serve(served &device) {
    std::lock_guard const serving(device.serving);
    bool any = false;
    for (request_ring &ring : device.rings->all()) {
        diomp_request what{};
        // One lap at most, so that no ring keeps the others waiting.
        for (unsigned i = 0; i < 1U << request_rings::slot_bits && ring.take(what); ++i) {
            execute(device, what, ring);
            any = true;
        }
    }
    if (any && num_ending_.load() > 0) {
        engine_.wake_waiters();
    }
    return any;
}

void region_proxy::execute(served &device, const diomp_request &what, request_ring &ring) {
    reply_values reply;
    int code = OMPX_SUCCESS;
    if (status const outcome = executor_->execute(what, device.on, reply); !outcome) {
        code = outcome.failure().code();
        std::lock_guard const guard(mutex_);
        if (!device.failed) {
            device.failed = describe_request_error(what, device.on.device, outcome.failure());
        }
    }
    ring.complete(what, code, reply.words);
}

} // namespace diomp::offload
