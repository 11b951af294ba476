// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Put with signal to ranks that are not mapped here. Short data travels in messages, which are
// handled in order; the last one carries the signal, so there is no round trip. Long data needs
// none either where the conduit sends a message after a put. Elsewhere the put is flushed, and the
// signal follows by message. In all cases the call returns when the source may be reused, and a
// fence waits for the acknowledgement.
#include "rma/internal/atomics.h"
#include "rma/rma.h"

#include <fmt/core.h>

#include <memory>

namespace diomp::rma {
namespace {

/// Data of up to this many messages is short: a copy by the target is cheaper than a round trip.
constexpr std::size_t max_short_messages = 4;

} // namespace

struct transfers::signal_header {
    std::uint64_t number = 0;  ///< of the ack window
    std::uint64_t address = 0; ///< of the data that follows
    std::uint64_t signal = 0;
    std::uint64_t value = 0;
    std::uint32_t nbytes = 0; ///< of the data that follows
    ompx_op_t op = 0;         ///< OMPX_REPLACE, OMPX_SUM; 0: more data comes before the signal
};

struct transfers::acknowledgement {
    std::uint64_t number = 0;
    std::int64_t failure = 0;
};

result<std::uint64_t> transfers::open_ack() {
    std::optional<std::uint64_t> number = acks_.try_open();
    if (!number) {
        DIOMP_TRY(engine_.wait_for_message(
            [&] { return (number = acks_.try_open()).has_value(); },
            [] { return std::string("waiting for earlier signals and atomics to arrive"); }));
    }
    return *number;
}

result<path> transfers::put_signal_remote(world_rank peer, const memory::location &data,
                                          const void *local, std::size_t nbytes,
                                          std::uint64_t signal, std::uint64_t value, ompx_op_t op) {
    auto number = open_ack();
    DIOMP_TRY(number);
    signal_header head{number.value(), data.remote_address, signal, value, 0, op};
    std::size_t const space = payload_space<signal_header>(engine_, peer);
    if (nbytes > max_short_messages * space) {
        if (data.in_segment) {
            auto sent = put_with_signal(peer, data, local, nbytes, head);
            if (!sent || sent.value()) {
                DIOMP_TRY(sent);
                return path::conduit;
            }
        }
        return put_then_signal(peer, data, local, nbytes, head);
    }
    auto const *const from = static_cast<const std::byte *>(local);
    for (std::size_t sent = 0;;) {
        std::size_t const chunk_bytes = std::min(nbytes - sent, space);
        head.nbytes = static_cast<std::uint32_t>(chunk_bytes);
        head.op = sent + chunk_bytes == nbytes ? op : 0;
        send_with_bytes(engine_, peer, signal_handler_, head, from + sent, chunk_bytes);
        sent += chunk_bytes;
        head.address += chunk_bytes;
        if (sent == nbytes) {
            return path::message;
        }
    }
}

result<bool> transfers::put_with_signal(world_rank peer, const memory::location &data,
                                        const void *local, std::size_t nbytes,
                                        const signal_header &signal) {
    messaging::pooled_completion pooled_completion;
    auto sent = engine_.put_with_message(
        peer, data.remote_address, {static_cast<const std::byte *>(local), nbytes}, signal_handler_,
        std::as_bytes(std::span<const signal_header>(&signal, 1)), pooled_completion.count());
    status ended;
    if (sent && sent.value()) {
        ended = wait_for_remote(direction::put, peer, data, nbytes, pooled_completion);
    }
    // A lost peer acknowledges nothing; after any other failure the signal may still arrive.
    if (!sent || (!ended && ended.failure().code() == OMPX_ERR_PEER)) {
        acks_.close(signal.number, peer);
    }
    DIOMP_TRY(std::move(ended));
    return sent;
}

result<path> transfers::put_then_signal(world_rank peer, const memory::location &data,
                                        const void *local, std::size_t nbytes,
                                        const signal_header &signal) {
    messaging::pooled_completion pooled_completion;
    auto arrived = std::make_shared<transport::completion>();
    status started = begin_remote(direction::put, peer, data, const_cast<void *>(local), nbytes,
                                  pooled_completion.count());
    if (started && data.in_segment) {
        started = engine_.transport().flush(peer, *arrived);
    }
    status sent = wait_for_remote(direction::put, peer, data, nbytes, pooled_completion);
    if (!started || !sent) {
        acks_.close(signal.number, peer);
        return started ? sent.take_failure() : started.take_failure();
    }
    auto const send_signal = [this, peer, signal, arrived] {
        if (int const failure = arrived->failure.load(std::memory_order_relaxed); failure != 0) {
            acks_.close(signal.number, peer, failure);
            return;
        }
        engine_.send(peer, signal_handler_, signal);
    };
    // For registered memory, the acknowledgements of the messages have confirmed the data's
    // arrival.
    if (arrived->is_done()) {
        send_signal();
    } else {
        engine_.on_completion(arrived, send_signal);
    }
    return data.in_segment ? path::conduit : path::message;
}

void transfers::on_signal(const transport::message &incoming) {
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
    acknowledge(incoming.source, head.number, exposed ? 0 : OMPX_ERR_ADDRESS);
}

void transfers::acknowledge(world_rank requester, std::uint64_t number, int failure) {
    engine_.send(requester, acknowledgement_handler_, acknowledgement{number, failure});
}

void transfers::on_acknowledgement(const transport::message &incoming) {
    acknowledgement ack;
    std::memcpy(&ack, incoming.payload.data(), sizeof(ack));
    acks_.close(ack.number, incoming.source, static_cast<int>(ack.failure));
}

} // namespace diomp::rma
