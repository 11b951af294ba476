// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rma/nonblocking_transfers.h"

#include "memory/memory.h"
#include "rma/blocking_transfers.h"
#include "rma/box.h"
#include "rma/context.h"
#include "rma/internal/remote_transfers.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

std::string ompx_event::describe() const {
    if (pending_transfer == nullptr) {
        return operation == nullptr ? "waiting for an event"
                                    : fmt::format("waiting for the event of {}", operation);
    }
    diomp::rma::pending_transfer const &transfer = *pending_transfer;
    if (transfer.operation != nullptr && transfer.nbytes == 0) {
        return fmt::format("waiting for {} at rank {}", transfer.operation, transfer.peer.value());
    }
    return transfer.operation == nullptr
               ? diomp::rma::remote_transfers::describe(transfer.dir, transfer.peer,
                                                        transfer.nbytes)
               : fmt::format("waiting for {} of {} bytes at rank {}", transfer.operation,
                             transfer.nbytes, transfer.peer.value());
}

namespace diomp::rma {
namespace {

/// Small puts with an event are aggregated until one of the events is tested. From this size up the
/// flush starts at once, so that it is complete when the event is tested.
constexpr std::size_t immediate_flush_bytes = std::size_t{16} << 10;

} // namespace

nonblocking_transfers::nonblocking_transfers(memory::address_space &space,
                                             messaging::engine &engine,
                                             blocking_transfers &blocking, remote_transfers &remote,
                                             transfer_observer on_transfer_complete)
    : space_(space), engine_(engine), blocking_(blocking), remote_(remote),
      contexts_(std::make_unique<context_table>()), on_complete_(std::move(on_transfer_complete)) {}

nonblocking_transfers::~nonblocking_transfers() = default;

result<path> nonblocking_transfers::start(direction dir, world_rank peer, const void *remote,
                                          void *local, std::size_t nbytes, ompx_event_t *event) {
    if (nbytes == 0) {
        if (event != nullptr) {
            *event = nullptr;
        }
        return path::self;
    }
    auto location = space_.locate(peer, remote, nbytes);
    DIOMP_TRY(location);
    return start_at(dir, peer, location.value(), local, nbytes, event);
}

result<path> nonblocking_transfers::start_at(direction dir, world_rank peer,
                                             const memory::location &location, void *local,
                                             std::size_t nbytes, ompx_event_t *event,
                                             local_completion *local_done) {
    if (!remote_.is_remote(peer)) {
        auto moved = blocking_.move_at(dir, peer, location, local, nbytes);
        DIOMP_TRY(moved);
        if (event != nullptr) {
            *event = nullptr;
        }
        return moved;
    }
    if (event == nullptr) {
        return start_implicit(implicit_, dir, peer, location, local, nbytes, local_done);
    }
    auto made = std::make_unique<ompx_event>();
    made->pending_transfer = std::make_shared<pending_transfer>();
    pending_transfer &transfer = *made->pending_transfer;
    transfer.peer = peer;
    transfer.location = location;
    transfer.nbytes = nbytes;
    transfer.dir = dir;
    transfer.begin = now_if_observed();
    transfer.flush_due = dir == direction::put && transfer.location.in_segment;
    DIOMP_TRY(remote_.begin(dir, peer, transfer.location, local, nbytes, transfer.count));
    if (local_done != nullptr) {
        *local_done = local_completion(made->pending_transfer, &transfer.count);
    }
    path const taken = remote_transfers::path_of(transfer.location);
    ompx_event *const given = made.release();
    if (!transfer.flush_due || nbytes >= immediate_flush_bytes) {
        advance(*given);
    }
    if (given->is_done()) {
        status outcome = std::move(given->outcome);
        given->release();
        DIOMP_TRY(std::move(outcome));
        *event = nullptr;
        return taken;
    }
    *event = given;
    return taken;
}

/// A large put is flushed at once, so that it is complete at the fence.
bool nonblocking_transfers::is_flushed_at_once(std::size_t nbytes) const {
    return on_complete_ || nbytes >= immediate_flush_bytes;
}

result<path> nonblocking_transfers::start_implicit(implicit_ops &into, direction dir,
                                                   world_rank peer,
                                                   const memory::location &location, void *local,
                                                   std::size_t nbytes,
                                                   local_completion *local_done) {
    bool const observed = static_cast<bool>(on_complete_);
    auto transfer = into.begin(observed);
    auto const begin = now_if_observed();
    DIOMP_TRY(remote_.begin(dir, peer, location, local, nbytes, transfer.count()));
    if (local_done != nullptr) {
        *local_done = transfer.shared();
    }
    if (dir == direction::put && location.in_segment && is_flushed_at_once(nbytes)) {
        remote_.flush_into(peer, transfer.count());
    }
    if (observed) {
        engine_.on_completion(transfer.shared(), [this, dir, peer, nbytes, begin] {
            on_complete_(dir, peer, nbytes, begin);
        });
    }
    return remote_transfers::path_of(location);
}

result<path> nonblocking_transfers::start_in(ompx_context &context, direction dir, world_rank peer,
                                             const void *remote, void *local, std::size_t nbytes) {
    if (nbytes == 0) {
        return path::self;
    }
    auto location = space_.locate(peer, remote, nbytes);
    DIOMP_TRY(location);
    if (!remote_.is_remote(peer)) {
        return blocking_.move_at(dir, peer, location.value(), local, nbytes);
    }
    if (dir == direction::put && location.value().in_segment && !is_flushed_at_once(nbytes) &&
        std::ranges::find(context.unflushed, peer) == context.unflushed.end()) {
        context.unflushed.push_back(peer);
    }
    return start_implicit(context.transfers, dir, peer, location.value(), local, nbytes, nullptr);
}

status nonblocking_transfers::complete(ompx_context &context) {
    messaging::pooled_completion flushed;
    for (world_rank const peer : context.unflushed) {
        DIOMP_TRY(remote_.begin_flush(peer, flushed.count()));
    }
    DIOMP_TRY(flushed.wait(
        engine_, [] { return std::string("waiting for the puts of a context to be complete"); }));
    context.unflushed.clear();
    DIOMP_TRY(context.transfers.wait(engine_));
    DIOMP_TRY(wait_for_events(context));
    full_fence();
    return std::exchange(context.failure, status());
}

status nonblocking_transfers::complete_contexts() {
    for (ompx_context *const each : contexts_->all()) {
        DIOMP_TRY(complete(*each));
    }
    return {};
}

void nonblocking_transfers::keep_in(ompx_context &context, ompx_event_t event) {
    if (event == nullptr) {
        return;
    }
    context.events.push_back(event);
    if (context.events.size() > context.max_events) {
        take_complete(context);
        context.max_events = std::max(ompx_context::min_events, 2 * context.events.size());
    }
}

void nonblocking_transfers::take_complete(ompx_context &context) {
    std::erase_if(context.events, [&](ompx_event_t event) {
        advance(*event);
        if (!event->is_done()) {
            return false;
        }
        if (context.failure) {
            context.failure = std::move(event->outcome);
        }
        event->release();
        return true;
    });
}

status nonblocking_transfers::wait_for_events(ompx_context &context) {
    return engine_.wait_for_message(
        [&] {
            take_complete(context);
            return context.events.empty();
        },
        [&] { return context.events.front()->describe(); });
}

void nonblocking_transfers::abandon(const std::shared_ptr<transport::completion> &count) {
    engine_.on_completion(count, [] {}); // keeps it alive if the wait ends by an error
    static_cast<void>(engine_.wait_for_network(
        [&count] { return count->is_done(); },
        [] { return std::string("waiting for the rest of a box whose transfer has failed"); }));
}

result<path> nonblocking_transfers::start_box_at(direction dir, world_rank peer,
                                                 const memory::location &location, void *local,
                                                 const box_walk &walk, ompx_event_t *event) {
    auto *const here = static_cast<std::byte *>(local);
    bool const flushes = dir == direction::put && location.in_segment;
    if (event == nullptr) {
        auto transfer = implicit_.begin(false);
        // After an error, the next fence waits for the runs that have started.
        DIOMP_TRY(remote_.begin_box(dir, peer, location, here, walk, transfer.count()));
        return remote_transfers::path_of(location);
    }
    auto made = std::make_unique<ompx_event>();
    made->pending_transfer = std::make_shared<pending_transfer>();
    pending_transfer &transfer = *made->pending_transfer;
    transfer.peer = peer;
    transfer.location = location;
    transfer.nbytes = walk.remote_extent();
    transfer.dir = dir;
    transfer.begin = now_if_observed();
    transfer.flush_due = flushes;
    status started = remote_.begin_box(dir, peer, location, here, walk, transfer.count);
    if (!started) {
        abandon({made->pending_transfer, &transfer.count});
        return started.take_failure();
    }
    ompx_event *const given = made.release();
    advance(*given); // also starts the flush
    if (given->is_done()) {
        status outcome = std::move(given->outcome);
        given->release();
        DIOMP_TRY(std::move(outcome));
        *event = nullptr;
    } else {
        *event = given;
    }
    return remote_transfers::path_of(location);
}

void nonblocking_transfers::advance(ompx_event &event) {
    if (event.pending_transfer == nullptr || event.is_done()) {
        return;
    }
    pending_transfer &transfer = *event.pending_transfer;
    if (transfer.flush_due) {
        transfer.flush_due = false;
        remote_.flush_into(transfer.peer, transfer.count);
    }
    if (transfer.poll_outcome) {
        if (auto outcome = transfer.poll_outcome()) {
            event.complete(std::move(*outcome));
        }
        return;
    }
    if (transfer.count.is_done()) {
        if (on_complete_) {
            on_complete_(transfer.dir, transfer.peer, transfer.nbytes, transfer.begin);
        }
        event.complete(
            messaging::outcome_of(transfer.count, engine_, [&event] { return event.describe(); }));
    }
}

result<path> nonblocking_transfers::move_then(direction dir, world_rank peer, const void *remote,
                                              void *local, std::size_t nbytes, continuation then) {
    if (nbytes == 0) {
        then({});
        return path::self;
    }
    auto location = space_.locate(peer, remote, nbytes);
    DIOMP_TRY(location);
    if (!remote_.is_remote(peer)) {
        auto moved = blocking_.move_at(dir, peer, location.value(), local, nbytes);
        DIOMP_TRY(moved);
        then({});
        return moved;
    }
    auto count = std::make_shared<transport::completion>();
    auto const begin = now_if_observed();
    DIOMP_TRY(remote_.begin(dir, peer, location.value(), local, nbytes, *count));
    if (dir == direction::put && location.value().in_segment) {
        remote_.flush_into(peer, *count);
    }
    auto finished = [this, dir, peer, nbytes, count, begin, then = std::move(then)] {
        if (on_complete_) {
            on_complete_(dir, peer, nbytes, begin);
        }
        then(messaging::outcome_of(*count, engine_, [dir, peer, nbytes] {
            return remote_transfers::describe(dir, peer, nbytes);
        }));
    };
    if (count->is_done()) {
        finished();
    } else {
        engine_.on_completion(count, std::move(finished));
    }
    return remote_transfers::path_of(location.value());
}

status
nonblocking_transfers::wait_for_local_completion(std::span<const local_completion> completions,
                                                 function_ref<void()> progress) {
    implicit_.close(); // later transfers must not join the counts that are waited for
    return engine_.wait_for_network(
        [completions, progress] {
            progress();
            return std::ranges::all_of(
                completions, [](const local_completion &each) { return each->is_done(); });
        },
        [] {
            return std::string(
                "waiting for this rank's transfers from or to memory that is being freed");
        });
}

status nonblocking_transfers::wait(ompx_event &event) {
    event.block();
    auto const describe = [&] { return event.describe(); };
    if (event.pending_transfer != nullptr) { // polling completes it
        return engine_.wait_for_message(
            [&] {
                advance(event);
                return event.is_done();
            },
            describe);
    }
    auto const is_done = [&] { return event.is_done(); };
    return wait_for_operation([&] { return engine_.wait(is_done, describe); }, is_done);
}

status nonblocking_transfers::wait_for_operation(function_ref<status()> wait,
                                                 function_ref<bool()> is_done) {
    status waited = wait();
    if (!waited && waited.failure().code() == OMPX_ERR_TIMEOUT) {
        waited = wait();
    }
    // The thread of the operation is about to see the loss of a rank, too.
    constexpr int max_polls = 200;
    for (int i = 0; i < max_polls && !waited; ++i) {
        if (is_done()) {
            return {};
        }
        engine_.poll();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return waited;
}

status nonblocking_transfers::wait_for_implicit() { return implicit_.wait(engine_); }

} // namespace diomp::rma
