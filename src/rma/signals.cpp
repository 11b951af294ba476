// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rma/signals.h"

#include "memory/memory.h"
#include "rma/atomics.h"
#include "rma/blocking_transfers.h"
#include "rma/box_transfers.h"
#include "rma/internal/acknowledgements.h"
#include "rma/internal/apply_atomic.h"
#include "rma/internal/native_atomics.h"
#include "rma/internal/remote_transfers.h"

#include <algorithm>
#include <cstring>
#include <memory>

namespace diomp::rma {
namespace {

/// Data of up to this many messages is short: a copy by the target is cheaper than a round trip.
constexpr std::size_t max_short_messages = 4;

constexpr const char *operation_name = "a put with signal";

ompx_op_t change_of(ompx_signal_op_t op) { return op == OMPX_SIGNAL_ADD ? OMPX_SUM : OMPX_REPLACE; }

} // namespace

struct signals::signal_header {
    std::uint64_t number = 0;  ///< of the ack window
    std::uint64_t address = 0; ///< of the data that follows
    std::uint64_t signal = 0;
    std::uint64_t value = 0;
    std::uint32_t nbytes = 0; ///< of the data that follows
    ompx_op_t op = 0;         ///< OMPX_REPLACE, OMPX_SUM; 0: more data comes before the signal
};

signals::signal_header signals::header_of(std::uint64_t number, const destination &to,
                                          const signal_update &update) {
    return {number, to.data.remote_address, to.signal.remote_address, update.value,
            0,      change_of(update.op)};
}

signals::signals(memory::address_space &space, const memory::segment &own,
                 const memory::directory &directory, messaging::engine &engine,
                 acknowledgements &acks, blocking_transfers &blocking, box_transfers &boxes,
                 remote_transfers &remote, atomics &atomics)
    : space_(space), own_(own), directory_(directory), engine_(engine), acks_(acks),
      blocking_(blocking), boxes_(boxes), remote_(remote), atomics_(atomics),
      handler_(engine.add_handler([this](const transport::message &m) { on_signal(m); })) {}

// Both targets are checked before the first byte moves.
result<path> signals::put_bytes(world_rank peer, void *remote, const void *local,
                                std::size_t nbytes, const signal_update &update,
                                completion_request *later) {
    give_event(later, [] { return ompx_event_t{}; });
    auto target = atomics_.locate(peer, update.signal, sizeof(*update.signal));
    DIOMP_TRY(target);
    destination to{peer, {}, target.value()};
    if (nbytes > 0) {
        auto located = space_.locate(peer, remote, nbytes);
        DIOMP_TRY(located);
        to.data = located.value();
    }
    bool const by_network = atomics_.native().apply_to(to.signal);
    if (!by_network && remote_.is_remote(peer)) {
        return put_remote(to, local, nbytes, update, later);
    }
    path taken = by_network ? path::message : path::self;
    if (nbytes > 0) {
        auto moved =
            blocking_.move_at(direction::put, peer, to.data, const_cast<void *>(local), nbytes);
        DIOMP_TRY(moved);
        taken = moved.value();
    }
    DIOMP_TRY(update_here(to, taken, update));
    return taken;
}

result<path> signals::put_runs(world_rank peer, void *remote, const void *local,
                               const box_walk &walk, const signal_update &update,
                               completion_request *later) {
    auto *const there = static_cast<std::byte *>(remote) + walk.remote_shift();
    auto const *const here = static_cast<const std::byte *>(local) + walk.local_shift();
    if (walk.empty() || walk.is_contiguous()) {
        return put_bytes(peer, there + walk.remote_begin(), here + walk.local_begin(),
                         walk.empty() ? 0 : walk.remote_extent() - walk.remote_begin(), update,
                         later);
    }
    give_event(later, [] { return ompx_event_t{}; });
    auto target = atomics_.locate(peer, update.signal, sizeof(*update.signal));
    DIOMP_TRY(target);
    auto located = space_.locate(peer, there, walk.remote_extent());
    DIOMP_TRY(located);
    destination const to{peer, located.value(), target.value()};
    auto *const source = const_cast<std::byte *>(here);
    if (!atomics_.native().apply_to(to.signal) && remote_.is_remote(peer)) {
        auto number = acks_.open();
        DIOMP_TRY(number);
        return put_then_message(to, walk.remote_extent(), header_of(number.value(), to, update),
                                later, [&](transport::completion &count) {
                                    return remote_.begin_box(direction::put, peer, to.data, source,
                                                             walk, count);
                                });
    }
    auto moved = boxes_.move_box_at(direction::put, peer, to.data, source, walk);
    DIOMP_TRY(moved);
    DIOMP_TRY(update_here(to, moved.value(), update));
    return moved;
}

status signals::update_here(const destination &to, path taken, const signal_update &update) {
    ompx_op_t const change = change_of(update.op);
    if (!atomics_.native().apply_to(to.signal)) {
        return atomics_.fetch(to.peer, update.signal, &update.value, nullptr, OMPX_UINT64, change);
    }
    // The data must be complete before the signal starts: the network does not order the two.
    if (taken == path::conduit) {
        DIOMP_TRY(remote_.flush(to.peer));
        full_fence();
    }
    return atomics_.native().fetch(to.peer, to.signal, &update.value, nullptr, OMPX_UINT64, change,
                                   sizeof(update.value));
}

result<path> signals::put_remote(const destination &to, const void *local, std::size_t nbytes,
                                 const signal_update &update, completion_request *later) {
    auto number = acks_.open();
    DIOMP_TRY(number);
    signal_header const head = header_of(number.value(), to, update);
    if (nbytes <= max_short_messages * payload_space<signal_header>(engine_, to.peer)) {
        send_in_messages(to, local, nbytes, head);
        give_event(later,
                   [&] { return acks_.event_of(head.number, to.peer, nbytes, operation_name); });
        return path::message;
    }
    if (to.data.in_segment) {
        auto sent = put_with_message(to, local, nbytes, head, later);
        if (!sent || sent.value()) {
            DIOMP_TRY(sent);
            return path::conduit;
        }
    }
    return put_then_message(to, nbytes, head, later, [&](transport::completion &count) {
        return remote_.begin(direction::put, to.peer, to.data, const_cast<void *>(local), nbytes,
                             count);
    });
}

void signals::send_in_messages(const destination &to, const void *local, std::size_t nbytes,
                               signal_header head) {
    auto const *const from = static_cast<const std::byte *>(local);
    std::size_t const space = payload_space<signal_header>(engine_, to.peer);
    ompx_op_t const op = head.op;
    std::size_t sent = 0;
    do {
        std::size_t const chunk_bytes = std::min(nbytes - sent, space);
        head.nbytes = static_cast<std::uint32_t>(chunk_bytes);
        head.op = sent + chunk_bytes == nbytes ? op : 0;
        send_with_bytes(engine_, to.peer, handler_, head, from + sent, chunk_bytes);
        sent += chunk_bytes;
        head.address += chunk_bytes;
    } while (sent < nbytes);
}

// A lost peer acknowledges nothing; after any other failure the signal may still arrive.
result<bool> signals::put_with_message(const destination &to, const void *local, std::size_t nbytes,
                                       const signal_header &signal, completion_request *later) {
    std::span<const std::byte> const data(static_cast<const std::byte *>(local), nbytes);
    auto const payload = std::as_bytes(std::span<const signal_header>(&signal, 1));
    if (later != nullptr) {
        auto const count = std::make_shared<transport::completion>();
        auto sent = engine_.put_with_message(to.peer, to.data.remote_address, data, handler_,
                                             payload, *count);
        if (!sent) {
            acks_.own().close(signal.number, to.peer);
        } else if (sent.value()) {
            close_if_lost(count, to.peer, signal.number);
            give_event(later, [&] {
                return acks_.event_of(signal.number, to.peer, nbytes, operation_name, count);
            });
        }
        return sent;
    }
    messaging::pooled_completion pooled_completion;
    auto sent = engine_.put_with_message(to.peer, to.data.remote_address, data, handler_, payload,
                                         pooled_completion.count());
    status ended;
    if (sent && sent.value()) {
        ended = remote_.wait_for(direction::put, to.peer, to.data, nbytes, pooled_completion);
    }
    if (!sent || (!ended && ended.failure().code() == OMPX_ERR_PEER)) {
        acks_.own().close(signal.number, to.peer);
    }
    DIOMP_TRY(std::move(ended));
    return sent;
}

void signals::close_if_lost(const std::shared_ptr<transport::completion> &count, world_rank peer,
                            std::uint64_t number) {
    engine_.on_completion(count, [this, count, peer, number] {
        if (count->failure.load(std::memory_order_relaxed) == OMPX_ERR_PEER) {
            acks_.own().close(number, peer);
        }
    });
}

result<path> signals::put_then_message(const destination &to, std::size_t nbytes,
                                       const signal_header &signal, completion_request *later,
                                       data_start start) {
    if (later == nullptr) {
        DIOMP_TRY(put_and_wait(to, nbytes, signal, start));
        return remote_transfers::path_of(to.data);
    }
    auto const arrived = std::make_shared<transport::completion>();
    status started = start(*arrived);
    if (!started) {
        acks_.own().close(signal.number, to.peer);
        // Runs of a box that have started still use the caller's array.
        engine_.on_completion(arrived, [] {});
        static_cast<void>(engine_.wait_for_network(
            [&] { return arrived->is_done(); },
            [] { return std::string("waiting for the rest of a box whose transfer has failed"); }));
        return started.take_failure();
    }
    if (to.data.in_segment) {
        remote_.flush_into(to.peer, *arrived);
    }
    send_after(arrived, to.peer, signal, later->event == nullptr);
    give_event(later, [&] {
        return acks_.event_of(signal.number, to.peer, nbytes, operation_name, arrived);
    });
    return remote_transfers::path_of(to.data);
}

status signals::put_and_wait(const destination &to, std::size_t nbytes, const signal_header &signal,
                             data_start start) {
    messaging::pooled_completion pooled_completion;
    auto const arrived = std::make_shared<transport::completion>();
    status started = start(pooled_completion.count());
    if (started && to.data.in_segment) {
        started = remote_.begin_flush(to.peer, *arrived);
    }
    status sent = remote_.wait_for(direction::put, to.peer, to.data, nbytes, pooled_completion);
    if (!started || !sent) {
        acks_.own().close(signal.number, to.peer);
        return started ? std::move(sent) : std::move(started);
    }
    // For registered memory, the acknowledgements of the messages have confirmed the data's
    // arrival.
    send_after(arrived, to.peer, signal, true);
    return {};
}

void signals::send_after(const std::shared_ptr<transport::completion> &arrived, world_rank peer,
                         const signal_header &signal, bool fence_reports) {
    auto const send_signal = [this, peer, signal, arrived, fence_reports] {
        if (int const failure = arrived->failure.load(std::memory_order_relaxed); failure != 0) {
            acks_.own().close(signal.number, peer, fence_reports ? failure : 0);
            return;
        }
        engine_.send(peer, handler_, signal);
    };
    if (arrived->is_done()) {
        send_signal();
    } else {
        engine_.on_completion(arrived, send_signal);
    }
}

void signals::give_event(const completion_request *later, function_ref<ompx_event_t()> make) {
    if (later != nullptr && later->event != nullptr) {
        *later->event = make();
    }
}

void signals::on_signal(const transport::message &incoming) {
    signal_header head;
    std::memcpy(&head, incoming.payload.data(), sizeof(head));
    bool const exposed =
        (head.nbytes == 0 ||
         is_exposed(own_, directory_, head.address, head.nbytes, access::write)) &&
        is_exposed(own_, directory_, head.signal, sizeof(std::uint64_t), access::write);
    if (exposed && head.nbytes > 0) {
        std::memcpy(reinterpret_cast<std::byte *>(head.address),
                    incoming.payload.data() + sizeof(head), head.nbytes);
    }
    if (head.op == 0) {
        return;
    }
    if (exposed) {
        apply_atomic(reinterpret_cast<std::byte *>(head.signal), &head.value, nullptr, OMPX_UINT64,
                     head.op);
    }
    acks_.send(incoming.source, head.number, exposed ? 0 : OMPX_ERR_ADDRESS);
}

} // namespace diomp::rma
