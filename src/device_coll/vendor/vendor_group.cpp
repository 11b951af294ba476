// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device_coll/vendor/vendor_group.h"

#include "base/log.h"
#include "device_coll/vendor/plan.h"

#include <fmt/core.h>

#include <utility>

namespace diomp::device_coll::vendor {

/// One of the caller's endpoints.
struct vendor_group::endpoint_state {
    endpoint of;
    communicator in = nullptr;
    std::unique_ptr<device::memory> scratch; ///< of the largest size that a call has needed
    std::unique_ptr<device::queue> on; ///< destroyed before the scratch memory that it may use
    plan now;

    [[nodiscard]] std::string name() const {
        return fmt::format("endpoint {} (device {})", of.index, of.device.value());
    }

    result<std::byte *> reserve_scratch(std::size_t nbytes) {
        if (scratch == nullptr || scratch->reserved_bytes() < nbytes) {
            scratch.reset();
            auto made = of.backend->reserve(of.device, nbytes);
            DIOMP_TRY(made);
            DIOMP_TRY(made.value()->commit(0, nbytes));
            scratch = made.take();
        }
        return scratch->base();
    }

    status copy(const std::vector<local_copy> &all) const {
        for (local_copy const &each : all) {
            DIOMP_TRY(on->copy(each.dst, each.src, each.nbytes));
        }
        return {};
    }
};

namespace {

code issue_step(const functions &calls, const step &what, communicator in, stream on) {
    switch (what.kind) {
    case step_kind::broadcast:
        return calls.broadcast(what.from, what.to, what.count, what.type, what.peer, in, on);
    case step_kind::reduce:
        return calls.reduce(what.from, what.to, what.count, what.type, what.op, what.peer, in, on);
    case step_kind::all_reduce:
        return calls.all_reduce(what.from, what.to, what.count, what.type, what.op, in, on);
    case step_kind::all_gather:
        return calls.all_gather(what.from, what.to, what.count, what.type, in, on);
    case step_kind::reduce_scatter:
        return calls.reduce_scatter(what.from, what.to, what.count, what.type, what.op, in, on);
    case step_kind::send:
        return calls.send(what.from, what.count, what.type, what.peer, in, on);
    case step_kind::receive:
        return calls.receive(what.to, what.count, what.type, what.peer, in, on);
    }
    return invalid_argument;
}

bool accepted(code outcome) { return outcome == success || outcome == in_progress; }

status check_endpoints(const vendor_group::options &chosen) {
    if (chosen.library == nullptr || chosen.own.empty()) {
        return error(OMPX_ERR_ARG, "a vendor's group needs a library and an endpoint");
    }
    for (std::size_t i = 0; i < chosen.own.size(); ++i) {
        endpoint const &each = chosen.own[i];
        if (each.backend == nullptr || each.index < 0 || each.index >= chosen.num_endpoints) {
            return error(
                OMPX_ERR_ARG,
                fmt::format("endpoint {} of a group of {} has an invalid number or no backend",
                            each.index, chosen.num_endpoints));
        }
        DIOMP_TRY(device::check_device(*each.backend, each.device));
        for (std::size_t j = 0; j < i; ++j) {
            if (chosen.own[j].index == each.index) {
                return error(OMPX_ERR_ARG, fmt::format("endpoint {} is listed twice", each.index));
            }
            if (chosen.own[j].device == each.device) {
                return error(
                    OMPX_ERR_UNSUPPORTED,
                    fmt::format(
                        "endpoints {} and {} are both on device {}, which {} does not support",
                        chosen.own[j].index, each.index, each.device.value(),
                        chosen.library->name()));
            }
        }
    }
    return {};
}

} // namespace

vendor_group::vendor_group(options chosen) : chosen_(std::move(chosen)) {}

result<std::unique_ptr<vendor_group>> vendor_group::create(options chosen) {
    DIOMP_TRY(check_endpoints(chosen));
    for (endpoint const &reader : chosen.own) {
        for (endpoint const &owner : chosen.own) {
            DIOMP_TRY(reader.backend->can_access(reader.device, owner.device));
        }
    }
    std::unique_ptr<vendor_group> made(new vendor_group(std::move(chosen)));
    for (endpoint const &each : made->chosen_.own) {
        auto on = each.backend->make_queue(each.device);
        DIOMP_TRY(on);
        if (on.value()->native_stream() == nullptr) {
            return error(OMPX_ERR_UNSUPPORTED,
                         fmt::format("{} devices have no streams for {}", each.backend->name(),
                                     made->chosen_.library->name()));
        }
        endpoint_state added;
        added.of = each;
        added.on = on.take();
        made->endpoint_states_.push_back(std::move(added));
    }
    return made;
}

vendor_group::~vendor_group() {
    bool const is_running = phase_ != phase::idle;
    release(is_running);
}

status vendor_group::start(const coll::request &args, std::span<const coll::endpoint_buffers> own) {
    if (broken_) {
        return error(OMPX_ERR_STATE, fmt::format("{} is disabled on this group after an error: {}",
                                                 chosen_.library->name(), *broken_));
    }
    if (phase_ != phase::idle) {
        return error(OMPX_ERR_STATE, fmt::format("{} while a {} is running on the group",
                                                 name_of(args.what), name_of(current_)));
    }
    DIOMP_TRY(prepare(args, own));
    current_ = args.what;
    // All members have this count, so all skip the call. With v forms the counts may differ.
    if (!coll::has_block_lists(args.what) && args.amount == 0) {
        return {};
    }
    status outcome = connected_ ? launch() : connect();
    if (!outcome) {
        abort(outcome.failure().message());
    }
    return outcome;
}

status vendor_group::prepare(const coll::request &args,
                             std::span<const coll::endpoint_buffers> own) {
    if (own.size() != endpoint_states_.size()) {
        return error(OMPX_ERR_ARG, fmt::format("buffers of {} endpoints for a group with {}",
                                               own.size(), endpoint_states_.size()));
    }
    if (!supports(args)) {
        return error(OMPX_ERR_UNSUPPORTED,
                     fmt::format("{} has no {} with type {} and operator {}",
                                 chosen_.library->name(), name_of(args.what), args.type, args.op));
    }
    for (std::size_t i = 0; i < endpoint_states_.size(); ++i) {
        endpoint_state &each = endpoint_states_[i];
        auto made = make_plan(args, own[i], {each.of.index, chosen_.num_endpoints},
                              [&](std::size_t nbytes) { return each.reserve_scratch(nbytes); });
        DIOMP_TRY(made);
        each.now = made.take();
    }
    return {};
}

/// No return between group_start and group_end: an open group would capture later calls of the
/// thread. The first device stays current, so that the library does not create a context on another
/// device.
status vendor_group::connect() {
    functions const &calls = chosen_.library->calls();
    auto outer =
        endpoint_states_.front().of.backend->make_current(endpoint_states_.front().of.device);
    DIOMP_TRY(outer);
    phase_ = phase::connecting;
    std::lock_guard const guard(chosen_.library->issuing());
    if (code const outcome = calls.group_start(); outcome != success) {
        return chosen_.library->failed("ncclGroupStart", outcome, nullptr);
    }
    status first;
    for (endpoint_state &each : endpoint_states_) {
        auto inside = each.of.backend->make_current(each.of.device);
        if (!inside) {
            first = inside.take_failure();
            break;
        }
        communicator_config config;
        code const outcome =
            calls.init_rank(&each.in, chosen_.num_endpoints, chosen_.id, each.of.index, &config);
        if (!accepted(outcome)) {
            first = chosen_.library->failed("ncclCommInitRankConfig of " + each.name(), outcome,
                                            nullptr);
            break;
        }
    }
    code const ended = calls.group_end();
    DIOMP_TRY(first);
    if (!accepted(ended)) {
        return chosen_.library->failed("ncclGroupEnd after ncclCommInitRankConfig", ended, nullptr);
    }
    return {};
}

status vendor_group::launch() {
    bool any_step = false;
    for (const endpoint_state &each : endpoint_states_) {
        DIOMP_TRY(each.copy(each.now.before));
        any_step = any_step || !each.now.steps.empty();
    }
    phase_ = phase::launching;
    return any_step ? issue() : status();
}

status vendor_group::issue() {
    functions const &calls = chosen_.library->calls();
    auto outer =
        endpoint_states_.front().of.backend->make_current(endpoint_states_.front().of.device);
    DIOMP_TRY(outer);
    std::lock_guard const guard(chosen_.library->issuing());
    if (code const outcome = calls.group_start(); outcome != success) {
        return chosen_.library->failed("ncclGroupStart", outcome, nullptr);
    }
    status first;
    for (endpoint_state const &each : endpoint_states_) {
        auto inside = each.of.backend->make_current(each.of.device);
        if (!inside) {
            first = inside.take_failure();
            break;
        }
        for (step const &next : each.now.steps) {
            code const outcome = issue_step(calls, next, each.in, each.on->native_stream());
            if (!accepted(outcome)) {
                first = chosen_.library->failed(
                    fmt::format("{} of {}", symbol_of(next.kind), each.name()), outcome, each.in);
                break;
            }
        }
        if (!first) {
            break;
        }
    }
    code const ended = calls.group_end();
    DIOMP_TRY(first);
    if (!accepted(ended)) {
        return chosen_.library->failed(fmt::format("ncclGroupEnd of {}", name_of(current_)), ended,
                                       endpoint_states_.front().in);
    }
    return {};
}

result<bool> vendor_group::test() {
    if (phase_ == phase::idle) {
        return true;
    }
    auto outcome = advance();
    if (!outcome) {
        abort(outcome.failure().message());
    }
    return outcome;
}

result<bool> vendor_group::advance() {
    // A communicator that is not ready accepts no calls, and its stream is not yet meaningful.
    auto ready = all_ready();
    DIOMP_TRY(ready);
    if (!ready.value()) {
        return false;
    }
    if (phase_ == phase::connecting) {
        connected_ = true;
        DIOMP_TRY(launch());
        return false;
    }
    if (phase_ == phase::launching) {
        for (endpoint_state const &each : endpoint_states_) {
            DIOMP_TRY(each.copy(each.now.after));
        }
        phase_ = phase::running;
    }
    auto idle = all_idle();
    DIOMP_TRY(idle);
    if (idle.value()) {
        phase_ = phase::idle;
    }
    return idle;
}

result<bool> vendor_group::all_ready() {
    bool all = true;
    for (endpoint_state const &each : endpoint_states_) {
        code state = success;
        code const queried = chosen_.library->calls().get_async_error(each.in, &state);
        if (queried != success) {
            return chosen_.library->failed("ncclCommGetAsyncError of " + each.name(), queried,
                                           each.in);
        }
        if (!accepted(state)) {
            return chosen_.library->failed(
                fmt::format("{} on {}",
                            phase_ == phase::connecting ? "connecting" : name_of(current_),
                            each.name()),
                state, each.in);
        }
        all = all && state == success;
    }
    return all;
}

result<bool> vendor_group::all_idle() {
    bool all = true;
    for (endpoint_state const &each : endpoint_states_) {
        auto idle = each.on->is_idle();
        DIOMP_TRY(idle);
        all = all && idle.value();
    }
    return all;
}

status vendor_group::run(const coll::request &args, std::span<const coll::endpoint_buffers> own,
                         wait_function wait) {
    DIOMP_TRY(start(args, own));
    std::optional<error> failure;
    auto const is_over = [&] {
        auto done = test();
        if (!done) {
            failure = done.take_failure();
            return true;
        }
        return done.value();
    };
    status waited = wait(is_over);
    if (failure) {
        return std::move(*failure);
    }
    if (!waited) {
        abort(waited.failure().message());
    }
    return waited;
}

void vendor_group::abort(const std::string &reason) {
    if (!broken_) {
        broken_ = reason;
    }
    release(true);
    phase_ = phase::idle;
}

void vendor_group::release(bool aborting) {
    functions const &calls = chosen_.library->calls();
    bool ended = true;
    const char *const symbol = aborting ? "ncclCommAbort" : "ncclCommDestroy";
    for (endpoint_state &each : endpoint_states_) {
        communicator const gone = std::exchange(each.in, nullptr);
        if (gone == nullptr) {
            continue;
        }
        auto inside = each.of.backend->make_current(each.of.device);
        code const outcome = aborting ? calls.abort(gone) : calls.destroy(gone);
        if (!accepted(outcome)) {
            ended = false;
            // The communicator is gone, so its last error cannot be asked for.
            log(log_level::warn, "{}",
                chosen_.library
                    ->failed(fmt::format("{} of {}", symbol, each.name()), outcome, nullptr)
                    .message());
        }
    }
    connected_ = false;
    if (!aborting || !ended) {
        return; // operations that could not be aborted are not waited for
    }
    // The operations have been aborted; the caller may reuse the buffers once they have ended.
    for (endpoint_state const &each : endpoint_states_) {
        if (status const idle = each.on->wait(); !idle) {
            log(log_level::warn, "{} after an abort: {}", each.name(), idle.failure().message());
        }
    }
}

std::string vendor_group::describe() const {
    const char *const for_what = phase_ == phase::connecting
                                     ? "until all its endpoints are connected"
                                 : phase_ == phase::launching ? "until it is on the devices"
                                                              : "until it is complete";
    return fmt::format("{} by {} {}", name_of(current_), chosen_.library->name(), for_what);
}

} // namespace diomp::device_coll::vendor
