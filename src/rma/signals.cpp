// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rma/signals.h"

#include "memory/memory.h"
#include "rma/atomics.h"
#include "rma/blocking_transfers.h"
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

} // namespace

struct signals::signal_header {
    std::uint64_t number = 0;  ///< of the ack window
    std::uint64_t address = 0; ///< of the data that follows
    std::uint64_t signal = 0;
    std::uint64_t value = 0;
    std::uint32_t nbytes = 0; ///< of the data that follows
    ompx_op_t op = 0;         ///< OMPX_REPLACE, OMPX_SUM; 0: more data comes before the signal
};

signals::signals(memory::address_space &space, const memory::segment &own,
                 const memory::directory &directory, messaging::engine &engine,
                 acknowledgements &acks, blocking_transfers &blocking, remote_transfers &remote,
                 atomics &atomics)
    : space_(space), own_(own), directory_(directory), engine_(engine), acks_(acks),
      blocking_(blocking), remote_(remote), atomics_(atomics),
      handler_(engine.add_handler([this](const transport::message &m) { on_signal(m); })) {}

result<path> signals::put(world_rank peer, void *remote, const void *local, std::size_t nbytes,
                          std::uint64_t *signal, std::uint64_t value, ompx_signal_op_t op) {
    // Checks both targets before the first byte moves.
    auto target = atomics_.locate(peer, signal, sizeof(*signal));
    DIOMP_TRY(target);
    memory::location data;
    if (nbytes > 0) {
        auto located = space_.locate(peer, remote, nbytes);
        DIOMP_TRY(located);
        data = located.value();
    }
    ompx_op_t const change = op == OMPX_SIGNAL_ADD ? OMPX_SUM : OMPX_REPLACE;
    bool const by_network = atomics_.native().apply_to(target.value());
    if (!by_network && remote_.is_remote(peer)) {
        return put_remote(peer, data, local, nbytes, target.value().remote_address, value, change);
    }
    path taken = by_network ? path::message : path::self;
    if (nbytes > 0) {
        auto moved =
            blocking_.move_at(direction::put, peer, data, const_cast<void *>(local), nbytes);
        DIOMP_TRY(moved);
        taken = moved.value();
    }
    if (!by_network) {
        DIOMP_TRY(atomics_.fetch(peer, signal, &value, nullptr, OMPX_UINT64, change));
        return taken;
    }
    // The data must be complete before the signal starts: the network does not order the two.
    if (taken == path::conduit) {
        DIOMP_TRY(remote_.flush(peer));
        full_fence();
    }
    DIOMP_TRY(atomics_.native().fetch(peer, target.value(), &value, nullptr, OMPX_UINT64, change,
                                      sizeof(value)));
    return taken;
}

result<path> signals::put_remote(world_rank peer, const memory::location &data, const void *local,
                                 std::size_t nbytes, std::uint64_t signal, std::uint64_t value,
                                 ompx_op_t op) {
    auto number = acks_.open();
    DIOMP_TRY(number);
    signal_header head{number.value(), data.remote_address, signal, value, 0, op};
    std::size_t const space = payload_space<signal_header>(engine_, peer);
    if (nbytes > max_short_messages * space) {
        if (data.in_segment) {
            auto sent = put_with_message(peer, data, local, nbytes, head);
            if (!sent || sent.value()) {
                DIOMP_TRY(sent);
                return path::conduit;
            }
        }
        return put_then_message(peer, data, local, nbytes, head);
    }
    auto const *const from = static_cast<const std::byte *>(local);
    for (std::size_t sent = 0;;) {
        std::size_t const chunk_bytes = std::min(nbytes - sent, space);
        head.nbytes = static_cast<std::uint32_t>(chunk_bytes);
        head.op = sent + chunk_bytes == nbytes ? op : 0;
        send_with_bytes(engine_, peer, handler_, head, from + sent, chunk_bytes);
        sent += chunk_bytes;
        head.address += chunk_bytes;
        if (sent == nbytes) {
            return path::message;
        }
    }
}

result<bool> signals::put_with_message(world_rank peer, const memory::location &data,
                                       const void *local, std::size_t nbytes,
                                       const signal_header &signal) {
    messaging::pooled_completion pooled_completion;
    auto sent = engine_.put_with_message(
        peer, data.remote_address, {static_cast<const std::byte *>(local), nbytes}, handler_,
        std::as_bytes(std::span<const signal_header>(&signal, 1)), pooled_completion.count());
    status ended;
    if (sent && sent.value()) {
        ended = remote_.wait_for(direction::put, peer, data, nbytes, pooled_completion);
    }
    // A lost peer acknowledges nothing; after any other failure the signal may still arrive.
    if (!sent || (!ended && ended.failure().code() == OMPX_ERR_PEER)) {
        acks_.own().close(signal.number, peer);
    }
    DIOMP_TRY(std::move(ended));
    return sent;
}

result<path> signals::put_then_message(world_rank peer, const memory::location &data,
                                       const void *local, std::size_t nbytes,
                                       const signal_header &signal) {
    messaging::pooled_completion pooled_completion;
    auto arrived = std::make_shared<transport::completion>();
    status started = remote_.begin(direction::put, peer, data, const_cast<void *>(local), nbytes,
                                   pooled_completion.count());
    if (started && data.in_segment) {
        started = remote_.begin_flush(peer, *arrived);
    }
    status sent = remote_.wait_for(direction::put, peer, data, nbytes, pooled_completion);
    if (!started || !sent) {
        acks_.own().close(signal.number, peer);
        return started ? sent.take_failure() : started.take_failure();
    }
    auto const send_signal = [this, peer, signal, arrived] {
        if (int const failure = arrived->failure.load(std::memory_order_relaxed); failure != 0) {
            acks_.own().close(signal.number, peer, failure);
            return;
        }
        engine_.send(peer, handler_, signal);
    };
    // For registered memory, the acknowledgements of the messages have confirmed the data's
    // arrival.
    if (arrived->is_done()) {
        send_signal();
    } else {
        engine_.on_completion(arrived, send_signal);
    }
    return remote_transfers::path_of(data);
}

void signals::on_signal(const transport::message &incoming) {
    signal_header head;
    std::memcpy(&head, incoming.payload.data(), sizeof(head));
    bool const exposed =
        (head.nbytes == 0 || is_exposed(own_, directory_, head.address, head.nbytes)) &&
        is_exposed(own_, directory_, head.signal, sizeof(std::uint64_t));
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
