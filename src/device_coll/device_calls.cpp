// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device_coll/internal/device_calls.h"

#include "base/per_thread.h"
#include "device_coll/internal/remote_calls.h"
#include "group/group.h"
#include "messaging/engine.h"
#include "offload/device_segments.h"
#include "offload/offload.h"
#include "rma/event.h"

#include <fmt/core.h>

#include <algorithm>

namespace diomp::device_coll {
namespace {

using coll::request;
using sync::operation;

/// Whether the calls of two endpoints of one rank are the same collective.
bool same_call(const request &one, const request &other) {
    bool const same_blocks =
        one.what == operation::alltoallv || one.blocks == other.blocks ||
        (one.blocks && other.blocks && one.blocks->dst.nbytes == other.blocks->dst.nbytes &&
         one.blocks->src.nbytes == other.blocks->src.nbytes);
    return one.what == other.what && one.amount == other.amount && one.type == other.type &&
           one.op == other.op && one.root == other.root && same_blocks;
}

int own_device(const group::group &members, std::size_t own_index) {
    return members.endpoints()[members.own(own_index)].device;
}

error copy_of(const error &failure) {
    return {failure.code(), failure.message(), failure.remedy()};
}

} // namespace

status device_calls::run_locked(group::group &members, checked_call &call) {
    auto by = vendors_.find(members);
    DIOMP_TRY(by);
    return run_locked(members, call, by.value());
}

status device_calls::wait_for_library(function_ref<bool()> is_over,
                                      function_ref<std::string()> describe) {
    return engine_.wait_for_network(is_over, describe);
}

result<std::optional<std::size_t>> device_calls::own_index_of(const group::group &members,
                                                              int device) {
    std::size_t const num = members.num_own();
    if (members.endpoints().empty() || device == OMPX_GROUP_DEVICES) {
        return std::optional<std::size_t>{};
    }
    for (std::size_t own_index = 0; own_index < num; ++own_index) {
        if (own_device(members, own_index) == device) {
            return num == 1 ? std::optional<std::size_t>{} : std::optional{own_index};
        }
    }
    return error(OMPX_ERR_ARG,
                 fmt::format("device {} is not one of this rank's endpoints in the group", device),
                 "pass the device of an endpoint, or OMPX_GROUP_DEVICES for all of them");
}

endpoint_calls &device_calls::calls_of(const group::group &members) {
    std::lock_guard const guard(mutex_);
    auto &slot = calls_[&members];
    if (slot == nullptr) {
        slot = std::make_unique<endpoint_calls>(members.num_own());
    }
    return *slot;
}

std::optional<group::call_queue::call_lock>
device_calls::lock_vendor_queue(const group::group &members) {
    if (!vendors_.may_use_library(members)) {
        return std::nullopt;
    }
    return vendor_calls_.lock_calls();
}

void device_calls::submit(group::group &members, std::function<void()> call) {
    if (!vendors_.may_use_library(members)) {
        members.calls().submit([&members, call = std::move(call)] {
            group::several_rounds const rounds(members);
            call();
        });
        return;
    }
    vendor_calls_.submit([&members, call = std::move(call)] {
        auto const call_lock = members.lock_calls();
        group::several_rounds const rounds(members);
        call();
    });
}

void device_calls::describe(group::group &members, ompx_group_t handle) {
    remote_->describe(members, handle);
}

void device_calls::forget(group::group &members, ompx_group_t handle) {
    {
        auto const order = lock_vendor_queue(members); // waits for what has been started
    }
    vendors_.forget(members);
    remote_->forget(members, handle);
    std::unique_ptr<endpoint_calls> ending;
    {
        std::lock_guard const guard(mutex_);
        auto const found = calls_.find(&members);
        if (found == calls_.end()) {
            return;
        }
        ending = std::move(found->second);
        calls_.erase(found);
    }
    for (endpoint_calls::endpoint_call const &each : ending->cancel_all()) {
        each.event->complete(error(OMPX_ERR_ARG,
                                   "the group was freed while this call waited for the other "
                                   "endpoints of this rank",
                                   "make each call with all endpoints before the group is freed"));
    }
}

status device_calls::run_set(group::group &members, endpoint_calls::call_set &calls) {
    checked_call call;
    call.args = calls.front().args;
    std::optional<error> failure;
    for (std::size_t own_index = 0; own_index < calls.size() && !failure; ++own_index) {
        if (!same_call(calls[own_index].args, call.args)) {
            failure.emplace(
                OMPX_ERR_MISMATCH,
                fmt::format("devices {} and {} of this rank made different calls",
                            own_device(members, 0), own_device(members, own_index)),
                "all endpoints of a group must make the same collective calls in the same order");
            continue;
        }
        auto found =
            find_buffers(members, calls[own_index].args, own_index, own_device(members, own_index));
        if (!found) {
            failure = found.take_failure();
            continue;
        }
        call.own.push_back(found.take());
        call.blocks.push_back(calls[own_index].args.blocks);
    }
    if (failure) {
        // The other ranks get an error instead of waiting for this call.
        status const notified = members.arrive_and_wait({.what = operation::none});
        return std::move(*failure);
    }
    return run_locked(members, call);
}

result<ompx_event *> device_calls::start_one_endpoint(group::group &members, const request &args,
                                                      std::size_t own_index, bool blocks) {
    // The endpoint with bad arguments gets the error, not the last one of the set.
    coll::endpoint_buffers const given{args.dst, args.src, args.blocks};
    DIOMP_TRY(collectives_.check(members, args, {&given, 1}, own_index));
    auto checked = find_buffers(members, args, own_index, own_device(members, own_index));
    DIOMP_TRY(checked);
    vendors_.may_use_library(members); // cached here, before calls_of() is locked
    auto event = std::make_unique<ompx_event>();
    event->operation = sync::name_of(args.what);
    std::optional<endpoint_calls::call_set> to_run;
    auto const complete = [this, &members](endpoint_calls::call_set &calls) {
        status const outcome = run_set(members, calls);
        for (endpoint_calls::endpoint_call const &each : calls) {
            each.event->complete(outcome ? status{} : status(copy_of(outcome.failure())));
        }
        engine_.wake_waiters();
    };
    // A blocking call runs its set itself: its endpoint adds no other call until then.
    calls_of(members).add(own_index, {args, event.get()}, [&](endpoint_calls::call_set calls) {
        if (blocks) {
            to_run = std::move(calls);
            return;
        }
        submit(members, [complete, calls = std::move(calls)]() mutable { complete(calls); });
    });
    if (to_run) {
        auto const order = lock_vendor_queue(members);
        auto const call_lock = members.lock_calls();
        group::several_rounds const rounds(members);
        complete(*to_run);
    }
    return event.release();
}

device_calls::cached_call &device_calls::last_call() { return per_thread<cached_call>::get(); }

bool device_calls::matches(const cached_call &last, const group::group &members,
                           const request &args, int device) const {
    return last.by == this && last.of == &members && last.version == vendors_.version() &&
           last.epoch == segments_.epoch() && last.device == device && args.blocks == nullptr &&
           last.args.what == args.what && last.dst == args.dst && last.src == args.src &&
           last.args.amount == args.amount && last.args.type == args.type &&
           last.args.op == args.op && last.args.root == args.root;
}

status device_calls::run(group::group &members, const request &args, int device) {
    cached_call const &last = last_call();
    if (matches(last, members, args, device)) [[likely]] {
        auto const call_lock = members.lock_calls();
        return collectives_.run_locked(members, last.args, last.own);
    }
    return run_uncached(members, args, device);
}

status device_calls::run_uncached(group::group &members, const request &args, int device) {
    auto own_index = own_index_of(members, device);
    DIOMP_TRY(own_index);
    if (!own_index.value()) {
        auto const order = lock_vendor_queue(members);
        auto const call_lock = members.lock_calls();
        group::several_rounds const rounds(members);
        auto by = vendors_.find(members);
        DIOMP_TRY(by);
        // Only if no member uses device memory: otherwise a member without a buffer in the call
        // would choose another path than the rest.
        if (by.value().uses_host_only()) {
            cached_call &last = last_call();
            last.by = nullptr;
            std::uint64_t const version = vendors_.version();
            std::uint64_t const epoch = segments_.epoch();
            auto own = find_loadable(members, args, device, last.buffers);
            DIOMP_TRY(own);
            if (!own.value().empty()) {
                last.of = &members;
                last.version = version;
                last.epoch = epoch;
                last.device = device;
                last.dst = args.dst;
                last.src = args.src;
                last.own = own.value();
                last.args = args;
                last.args.dst = last.own.front().dst;
                last.args.src = last.own.front().src;
                // Without an epoch a freed buffer would not be noticed.
                last.by = epoch == 0 || args.blocks != nullptr ? nullptr : this;
                return collectives_.run_locked(members, last.args, last.own);
            }
        }
        auto call = find_all_buffers(members, args, device);
        if (!call) {
            if (by.value().has_remote) {
                remote_->report_failure(members, call.failure().code());
            }
            return call.take_failure();
        }
        return run_locked(members, call.value(), by.value());
    }
    auto started = start_one_endpoint(members, args, *own_index.value(), true);
    DIOMP_TRY(started);
    ompx_event *const event = started.value();
    status waited = engine_.wait([event] { return event->is_done(); },
                                 [&] {
                                     return fmt::format("waiting for the other endpoints of this "
                                                        "rank in the group to make the call that "
                                                        "device {} has made",
                                                        device);
                                 });
    if (!waited && calls_of(members).cancel(*own_index.value(), event)) {
        event->release();
        event->release();
        return waited;
    }
    while (!event->is_done()) { // the call is running and completes, possibly with an error
        engine_.poll();
    }
    status outcome = std::move(event->outcome);
    event->release();
    return outcome;
}

result<ompx_event *> device_calls::start(group::group &members, const request &args, int device) {
    auto own_index = own_index_of(members, device);
    DIOMP_TRY(own_index);
    if (own_index.value()) {
        return start_one_endpoint(members, args, *own_index.value(), false);
    }
    auto found = find_all_buffers(members, args, device);
    if (!found && devices_.segments().remote() != nullptr) {
        submit(members, [this, &members, code = found.failure().code()] {
            if (auto by = vendors_.find(members); by && by.value().has_remote) {
                remote_->report_failure(members, code);
            }
        });
    }
    DIOMP_TRY(found);
    auto event = std::make_unique<ompx_event>();
    event->operation = sync::name_of(args.what);
    submit(members, [this, &members, event = event.get(),
                     call = std::make_shared<checked_call>(found.take())] {
        event->complete(run_locked(members, *call));
        engine_.wake_waiters();
    });
    return event.release();
}

} // namespace diomp::device_coll
