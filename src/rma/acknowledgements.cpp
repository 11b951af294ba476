// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rma/internal/acknowledgements.h"

#include "messaging/pooled_completion.h"
#include "rma/event.h"

#include <fmt/core.h>

#include <cstring>
#include <memory>
#include <optional>

namespace diomp::rma {

acknowledgements::acknowledgements(messaging::engine &engine)
    : engine_(engine),
      handler_(engine.add_handler([this](const transport::message &m) { on_acknowledgement(m); })) {
}

result<std::uint64_t> acknowledgements::open() {
    std::optional<std::uint64_t> number = own_.try_open();
    if (!number) {
        DIOMP_TRY(engine_.wait_for_message(
            [&] { return (number = own_.try_open()).has_value(); },
            [] { return std::string("waiting for earlier signals and atomics to arrive"); }));
    }
    return *number;
}

status acknowledgements::wait() {
    std::uint64_t const end = own_.end();
    if (!own_.all_closed_before(end)) {
        DIOMP_TRY(engine_.wait_for_network(
            [&] { return own_.all_closed_before(end); },
            [] { return std::string("waiting for signals and atomic operations to arrive"); }));
    }
    return own_.take_failure();
}

ompx_event_t
acknowledgements::event_of(std::uint64_t number, world_rank peer, std::size_t nbytes,
                           const char *operation,
                           const std::shared_ptr<const transport::completion> &source) {
    auto const has_failed = [source] {
        return source != nullptr && source->failure.load(std::memory_order_relaxed) != 0;
    };
    bool const is_source_free = source == nullptr || source->is_done();
    if (own_.is_closed(number) && is_source_free && !has_failed()) {
        return nullptr;
    }
    auto made = std::make_unique<ompx_event>();
    made->pending_transfer = std::make_shared<pending_transfer>();
    pending_transfer &transfer = *made->pending_transfer;
    transfer.peer = peer;
    transfer.nbytes = nbytes;
    transfer.operation = operation;
    transfer.poll_outcome = [this, number, peer, nbytes, operation, source,
                             has_failed]() -> std::optional<status> {
        if (own_.is_closed(number) && (source == nullptr || source->is_done())) {
            return has_failed()
                       ? messaging::failure_of(*source, engine_,
                                               fmt::format("waiting for {} of {} bytes at "
                                                           "rank {}",
                                                           operation, nbytes, peer.value()))
                       : status{};
        }
        if (engine_.failure().is_set()) { // a lost rank acknowledges nothing
            return status(error(OMPX_ERR_PEER, engine_.failure().reason()));
        }
        return std::nullopt;
    };
    return made.release();
}

void acknowledgements::send(world_rank requester, std::uint64_t number, int failure) {
    engine_.send(requester, handler_, acknowledgement{number, failure});
}

void acknowledgements::on_acknowledgement(const transport::message &incoming) {
    acknowledgement ack;
    std::memcpy(&ack, incoming.payload.data(), sizeof(ack));
    own_.close(ack.number, incoming.source, static_cast<int>(ack.failure));
}

} // namespace diomp::rma
