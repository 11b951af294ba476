// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Put with signal to ranks that are not mapped here. Short data travels in messages, which are
// handled in order: the last one carries the signal, so one way is enough. So it is for long data
// where the conduit sends a message behind a put. Elsewhere the put's flush says that the data is
// there, and then the signal follows by message. In any case the call returns when the source may
// be reused, and a fence waits for the acknowledgement.
#include "rma/atomics.h"
#include "rma/rma.h"

#include <fmt/core.h>

#include <memory>

namespace diomp::rma {
namespace {

/// Data of up to so many messages is short: cheaper copied by the target than waited for.
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

result<path> transfers::put_signal_remote(world_rank peer, const memory::place &data,
                                          const void *local, std::size_t nbytes,
                                          std::uint64_t signal, std::uint64_t value, ompx_op_t op) {
    auto number = open_ack();
    DIOMP_TRY(number);
    signal_header about{number.value(), data.remote_address, signal, value, 0, op};
    std::size_t const room = room_after<signal_header>(engine_, peer);
    if (nbytes > max_short_messages * room) {
        if (data.in_segment) {
            auto sent = put_with_signal(peer, data, local, nbytes, about);
            if (!sent || sent.value()) {
                DIOMP_TRY(sent);
                return path::conduit;
            }
        }
        return put_then_signal(peer, data, local, nbytes, about);
    }
    auto const *const from = static_cast<const std::byte *>(local);
    for (std::size_t sent = 0;;) {
        std::size_t const part = std::min(nbytes - sent, room);
        about.nbytes = static_cast<std::uint32_t>(part);
        about.op = sent + part == nbytes ? op : 0;
        send_with_bytes(engine_, peer, signal_handler_, about, from + sent, part);
        sent += part;
        about.address += part;
        if (sent == nbytes) {
            return path::message;
        }
    }
}

result<bool> transfers::put_with_signal(world_rank peer, const memory::place &data,
                                        const void *local, std::size_t nbytes,
                                        const signal_header &signal) {
    conduit::flight flight;
    auto sent = engine_.put_with_message(
        peer, data.remote_address, {static_cast<const std::byte *>(local), nbytes}, signal_handler_,
        std::as_bytes(std::span<const signal_header>(&signal, 1)), flight.count());
    status ended;
    if (sent && sent.value()) {
        ended = end_remote(direction::put, peer, data, nbytes, flight);
    }
    // A lost peer acknowledges nothing; after any other failure the signal may still arrive.
    if (!sent || (!ended && ended.failure().code() == OMPX_ERR_PEER)) {
        acks_.close(signal.number, peer);
    }
    DIOMP_TRY(std::move(ended));
    return sent;
}

result<path> transfers::put_then_signal(world_rank peer, const memory::place &data,
                                        const void *local, std::size_t nbytes,
                                        const signal_header &signal) {
    conduit::flight flight;
    auto arrived = std::make_shared<conduit::completion>();
    status begun =
        begin_remote(direction::put, peer, data, const_cast<void *>(local), nbytes, flight.count());
    if (begun && data.in_segment) {
        begun = engine_.transport().flush(peer, *arrived);
    }
    status sent = end_remote(direction::put, peer, data, nbytes, flight);
    if (!begun || !sent) {
        acks_.close(signal.number, peer);
        return begun ? sent.take_failure() : begun.take_failure();
    }
    auto const send_signal = [this, peer, signal, arrived] {
        if (int const failure = arrived->failure.load(std::memory_order_relaxed); failure != 0) {
            acks_.close(signal.number, peer, failure);
            return;
        }
        engine_.send(peer, signal_handler_, signal);
    };
    // Registered memory is reached by messages, whose answers have said that the data is there.
    if (arrived->is_done()) {
        send_signal();
    } else {
        engine_.watch(arrived, send_signal);
    }
    return data.in_segment ? path::conduit : path::message;
}

void transfers::on_signal(const conduit::message &incoming) {
    signal_header about;
    std::memcpy(&about, incoming.payload.data(), sizeof(about));
    bool const exposed =
        (about.nbytes == 0 || is_exposed(own_, directory_, about.address, about.nbytes)) &&
        is_exposed(own_, directory_, about.signal, sizeof(std::uint64_t));
    if (exposed && about.nbytes > 0) {
        std::memcpy(reinterpret_cast<std::byte *>(about.address),
                    incoming.payload.data() + sizeof(about), about.nbytes);
    }
    if (about.op == 0) {
        return;
    }
    if (exposed) {
        apply_atomic(reinterpret_cast<std::byte *>(about.signal), &about.value, nullptr,
                     OMPX_UINT64, about.op);
    }
    acknowledge(incoming.source, about.number, exposed ? 0 : OMPX_ERR_ADDRESS);
}

void transfers::acknowledge(world_rank asker, std::uint64_t number, int failure) {
    engine_.send(asker, acknowledgement_handler_, acknowledgement{number, failure});
}

void transfers::on_acknowledgement(const conduit::message &incoming) {
    acknowledgement told;
    std::memcpy(&told, incoming.payload.data(), sizeof(told));
    acks_.close(told.number, incoming.source, static_cast<int>(told.failure));
}

} // namespace diomp::rma
