// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device_collectives.h"

#include "base/log.h"
#include "base/per_thread.h"
#include "collective/vendor/plan.h"

#include <fmt/core.h>

#include <algorithm>

namespace diomp::runtime {
namespace {

namespace vendor = collective::vendor;
using collective::request;
using sync::operation;

/// Whether [inner, inner + inner_bytes) lies in [outer, outer + outer_bytes).
bool lies_in(const void *inner, std::size_t inner_bytes, const void *outer,
             std::size_t outer_bytes) {
    auto const offset =
        reinterpret_cast<std::uintptr_t>(inner) - reinterpret_cast<std::uintptr_t>(outer);
    return inner != nullptr && outer != nullptr && offset < outer_bytes &&
           inner_bytes <= outer_bytes - offset;
}

/// Calls of endpoints of one rank that are to be one collective.
bool same_call(const request &one, const request &other) {
    bool const same_blocks =
        one.what == operation::alltoallv || one.blocks == other.blocks ||
        (one.blocks && other.blocks && one.blocks->dst.nbytes == other.blocks->dst.nbytes &&
         one.blocks->src.nbytes == other.blocks->src.nbytes);
    return one.what == other.what && one.amount == other.amount && one.type == other.type &&
           one.op == other.op && one.root == other.root && same_blocks;
}

/// A call of nothing is but a meeting.
bool is_for_vendor(const request &asked) {
    return (asked.amount > 0 || asked.blocks != nullptr) && vendor::can_do(asked);
}

/// The same on all members.
bool is_for_devices(const group::group &members, const request &asked, std::size_t from_bytes) {
    return from_bytes != vendor_choice::ways::never && collective::has_device_plan(asked) &&
           (!members.spans_nodes() || node_collectives::has_plan(asked)) &&
           (asked.what == operation::alltoallv || collective::largest_block(asked) >= from_bytes);
}

int own_device(const group::group &members, std::size_t place) {
    return members.endpoints()[members.own(place)].device;
}

error copy_of(const error &failure) {
    return {failure.code(), failure.message(), failure.remedy()};
}

} // namespace

status device_collectives::run_in_turn(group::group &members, whole_call &call) {
    auto by = vendors_.find(members);
    DIOMP_TRY(by);
    return run_in_turn(members, call, by.value());
}

status device_collectives::run_in_turn(group::group &members, whole_call &call,
                                       const vendor_choice::ways &by) {
    if (by.communicators != nullptr && is_for_vendor(call.asked)) {
        return run_by_vendor(members, call, *by.communicators);
    }
    std::size_t const from_bytes =
        collective::is_reduction(call.asked.what) ? by.reduce_from_bytes : by.direct_from_bytes;
    if (is_for_devices(members, call.asked, from_bytes)) {
        auto done = run_directly(members, call, from_bytes);
        DIOMP_TRY(done);
        if (done.value()) {
            return {};
        }
    }
    return run_natively(members, call);
}

result<bool> device_collectives::run_directly(group::group &members, const whole_call &call,
                                              std::size_t from_bytes) {
    std::vector<direct_collectives::buffers> own;
    own.reserve(call.own.size());
    for (std::size_t i = 0; i < call.own.size(); ++i) {
        const views &each = call.own[i];
        own.push_back({each.dst.there, each.src.there, each.use, call.blocks[i]});
    }
    auto outcome = members.spans_nodes() ? by_nodes_.run(members, call.asked, own)
                                         : direct_.run(members, call.asked, own, from_bytes);
    DIOMP_TRY(outcome);
    if (outcome.value() == direct_collectives::outcome::unreachable) {
        log(log_level::info,
            "collectives of a group of {} endpoints: by way of host memory from now on, since not "
            "all devices reach each other",
            members.count());
        vendors_.give_up_direct(members);
    }
    return outcome.value() == direct_collectives::outcome::done;
}

// The library would hang where members disagree, so they compare their calls first.
status device_collectives::run_by_vendor(group::group &members, const whole_call &call,
                                         vendor::vendor_group &communicators) {
    DIOMP_TRY(collectives_.compare(members, call.asked));
    std::vector<collective::endpoint_buffers> own;
    own.reserve(call.own.size());
    for (std::size_t i = 0; i < call.own.size(); ++i) {
        own.push_back(
            {call.own[i].dst.there.address, call.own[i].src.there.address, call.blocks[i]});
    }
    return communicators.run(call.asked, own, [&](function_ref<bool()> is_over) {
        return engine_.wait_for_network(is_over, [&] { return communicators.describe(); });
    });
}

status device_collectives::run_natively(group::group &members, whole_call &call) {
    std::vector<collective::endpoint_buffers> own;
    for (std::size_t i = 0; i < call.own.size(); ++i) {
        views &each = call.own[i];
        // In place one copy holds both.
        bool const src_in_dst = lies_in(each.src.there.address, each.src.nbytes,
                                        each.dst.there.address, each.dst.nbytes);
        bool const dst_in_src = !src_in_dst && lies_in(each.dst.there.address, each.dst.nbytes,
                                                       each.src.there.address, each.src.nbytes);
        if (dst_in_src) {
            DIOMP_TRY(load(each.src, true));
            each.dst.here = each.src.here + (each.dst.there.address - each.src.there.address);
        }
        DIOMP_TRY(load(each.dst, each.use.reads_dst || src_in_dst));
        if (src_in_dst) {
            each.src.here = each.dst.here + (each.src.there.address - each.dst.there.address);
        }
        DIOMP_TRY(load(each.src, true));
        own.push_back({each.dst.here, each.src.here, call.blocks[i]});
    }
    DIOMP_TRY(collectives_.run_in_turn(members, call.asked, own, true));
    for (const views &each : call.own) {
        bool const is_source = call.asked.what == operation::bcast && each.use.reads_dst;
        if (each.dst.nbytes > 0 && each.dst.there.on != nullptr && !is_source) {
            DIOMP_TRY(devices_.copy_own(each.dst.there, each.dst.here, each.dst.nbytes, true));
        }
    }
    return {};
}

result<std::optional<std::size_t>> device_collectives::place_of(const group::group &members,
                                                                int device) {
    std::size_t const num = members.num_own();
    if (members.endpoints().empty() || device == OMPX_GROUP_DEVICES) {
        return std::optional<std::size_t>{};
    }
    for (std::size_t place = 0; place < num; ++place) {
        if (own_device(members, place) == device) {
            return num == 1 ? std::optional<std::size_t>{} : std::optional{place};
        }
    }
    return error(OMPX_ERR_ARG,
                 fmt::format("device {} is none of this rank's endpoints in the group", device),
                 "pass the device of an endpoint, or OMPX_GROUP_DEVICES for all of them");
}

endpoint_calls &device_collectives::calls_of(const group::group &members) {
    std::lock_guard const guard(mutex_);
    auto &place = calls_[&members];
    if (place == nullptr) {
        place = std::make_unique<endpoint_calls>(members.num_own());
    }
    return *place;
}

std::optional<group::call_queue::turn> device_collectives::order_of(const group::group &members) {
    if (!vendors_.concerns(members)) {
        return std::nullopt;
    }
    return vendor_calls_.enter();
}

void device_collectives::submit(group::group &members, std::function<void()> call) {
    if (!vendors_.concerns(members)) {
        members.calls().submit(std::move(call));
        return;
    }
    vendor_calls_.submit([&members, call = std::move(call)] {
        auto const turn = members.enter();
        call();
    });
}

void device_collectives::forget(const group::group &members) {
    {
        auto const order = order_of(members); // waits for what has been started
    }
    vendors_.forget(members);
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
    for (endpoint_calls::part const &each : ending->withdraw_all()) {
        each.event->complete(error(OMPX_ERR_ARG,
                                   "the group was freed while this call waited for the other "
                                   "endpoints of this rank",
                                   "make each call with all endpoints before the group is freed"));
    }
}

status device_collectives::run_set(group::group &members, endpoint_calls::set &parts) {
    whole_call call;
    call.asked = parts.front().asked;
    std::optional<error> failure;
    for (std::size_t place = 0; place < parts.size() && !failure; ++place) {
        if (!same_call(parts[place].asked, call.asked)) {
            failure.emplace(
                OMPX_ERR_MISMATCH,
                fmt::format("devices {} and {} of this rank made different calls",
                            own_device(members, 0), own_device(members, place)),
                "all endpoints of a group must make the same collective calls in the same order");
            continue;
        }
        auto found = find_buffers(members, parts[place].asked, place, own_device(members, place));
        if (!found) {
            failure = found.take_failure();
            continue;
        }
        call.own.push_back(found.take());
        call.blocks.push_back(parts[place].asked.blocks);
    }
    if (failure) {
        // The other ranks shall not wait for a call that does not come.
        status const told = members.meet({.what = operation::none});
        return std::move(*failure);
    }
    return run_in_turn(members, call);
}

result<ompx_event *> device_collectives::start_part(group::group &members, const request &asked,
                                                    std::size_t place, bool blocks) {
    // Bad arguments are told to who makes them.
    collective::endpoint_buffers const given{asked.dst, asked.src, asked.blocks};
    DIOMP_TRY(collectives_.check(members, asked, {&given, 1}, place));
    auto checked = find_buffers(members, asked, place, own_device(members, place));
    DIOMP_TRY(checked);
    vendors_.concerns(members); // learnt here, not under the lock of the calls
    auto event = std::make_unique<ompx_event>();
    std::optional<endpoint_calls::set> to_run;
    auto const complete = [this, &members](endpoint_calls::set &parts) {
        status const outcome = run_set(members, parts);
        for (endpoint_calls::part const &each : parts) {
            each.event->complete(outcome ? status{} : status(copy_of(outcome.failure())));
        }
        engine_.wake_waiters();
    };
    // A blocking call runs its set by itself: until it is over its endpoint adds no other.
    calls_of(members).add(place, {asked, event.get()}, [&](endpoint_calls::set parts) {
        if (blocks) {
            to_run = std::move(parts);
            return;
        }
        submit(members, [complete, parts = std::move(parts)]() mutable { complete(parts); });
    });
    if (to_run) {
        auto const order = order_of(members);
        auto const turn = members.enter();
        complete(*to_run);
    }
    return event.release();
}

device_collectives::found_call &device_collectives::last_found() {
    return per_thread<found_call>::get();
}

bool device_collectives::is_found(const found_call &last, const group::group &members,
                                  const request &asked, int device) const {
    return last.by == this && last.of == &members && last.version == vendors_.version() &&
           last.epoch == devices_.epoch() && last.device == device && asked.blocks == nullptr &&
           last.asked.what == asked.what && last.dst == asked.dst && last.src == asked.src &&
           last.asked.amount == asked.amount && last.asked.type == asked.type &&
           last.asked.op == asked.op && last.asked.root == asked.root;
}

status device_collectives::run(group::group &members, const request &asked, int device) {
    found_call const &last = last_found();
    if (is_found(last, members, asked, device)) [[likely]] {
        auto const turn = members.enter();
        return collectives_.run_in_turn(members, last.asked, last.own);
    }
    return run_unknown(members, asked, device);
}

status device_collectives::run_unknown(group::group &members, const request &asked, int device) {
    auto place = place_of(members, device);
    DIOMP_TRY(place);
    if (!place.value()) {
        auto const order = order_of(members);
        auto const turn = members.enter();
        auto by = vendors_.find(members);
        DIOMP_TRY(by);
        // Where not all memory is loadable a member without any in the call must not go its own
        // way.
        if (by.value().is_by_host()) {
            found_call &last = last_found();
            last.by = nullptr;
            std::uint64_t const version = vendors_.version();
            std::uint64_t const epoch = devices_.epoch();
            auto own = find_loadable(members, asked, device, last.buffers);
            DIOMP_TRY(own);
            if (!own.value().empty()) {
                last.of = &members;
                last.version = version;
                last.epoch = epoch;
                last.device = device;
                last.dst = asked.dst;
                last.src = asked.src;
                last.own = own.value();
                last.asked = asked;
                last.asked.dst = last.own.front().dst;
                last.asked.src = last.own.front().src;
                // Without an epoch nobody says when memory is freed.
                last.by = epoch == 0 || asked.blocks != nullptr ? nullptr : this;
                return collectives_.run_in_turn(members, last.asked, last.own);
            }
        }
        auto call = find_all(members, asked, device);
        DIOMP_TRY(call);
        return run_in_turn(members, call.value(), by.value());
    }
    auto started = start_part(members, asked, *place.value(), true);
    DIOMP_TRY(started);
    ompx_event *const event = started.value();
    status waited = engine_.wait([event] { return event->is_done(); },
                                 [&] {
                                     return fmt::format("waiting for the other endpoints of this "
                                                        "rank in the group to make the call that "
                                                        "device {} has made",
                                                        device);
                                 });
    if (!waited && calls_of(members).withdraw(*place.value(), event)) {
        event->release();
        event->release();
        return waited;
    }
    while (!event->is_done()) { // it runs: it ends by itself, with an error if need be
        engine_.poll();
    }
    status outcome = std::move(event->outcome);
    event->release();
    return outcome;
}

result<ompx_event *> device_collectives::start(group::group &members, const request &asked,
                                               int device) {
    auto place = place_of(members, device);
    DIOMP_TRY(place);
    if (place.value()) {
        return start_part(members, asked, *place.value(), false);
    }
    auto found = find_all(members, asked, device);
    DIOMP_TRY(found);
    auto event = std::make_unique<ompx_event>();
    submit(members, [this, &members, event = event.get(),
                     call = std::make_shared<whole_call>(found.take())] {
        event->complete(run_in_turn(members, *call));
        engine_.wake_waiters();
    });
    return event.release();
}

} // namespace diomp::runtime
