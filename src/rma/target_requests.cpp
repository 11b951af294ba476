// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rma/internal/target_requests.h"

#include "memory/memory.h"
#include "rma/internal/apply_atomic.h"
#include "rma/internal/message_copies.h"
#include "transport/conduit.h"

#include <cstring>

namespace diomp::rma {

target_requests::target_requests(const memory::segment &own, const memory::directory &directory,
                                 messaging::engine &engine, messaging::call_service &calls,
                                 acknowledgements &acks)
    : own_(own), directory_(directory), engine_(engine), calls_(calls), acks_(acks),
      handler_(engine.add_handler([this](const transport::message &m) { on_request(m); })) {}

result<std::uint64_t> target_requests::send(world_rank peer, target_request request) {
    auto number = acks_.open();
    DIOMP_TRY(number);
    request.header.id = number.value();
    request.acknowledge = 1;
    engine_.send(peer, handler_, request);
    return number;
}

result<std::uint64_t> target_requests::start(world_rank peer, const target_request &request,
                                             void *old) {
    auto number = acks_.open();
    DIOMP_TRY(number);
    calls_.start_then<target_reply>(
        peer, handler_, request,
        [this, peer, old, nbytes = request.nbytes, id = number.value()](const target_reply &reply) {
            if (reply.refused == 0) {
                std::memcpy(old, reply.old.data(), nbytes);
            }
            acks_.own().close(id, peer, reply.refused != 0 ? OMPX_ERR_ADDRESS : 0);
        });
    return number;
}

void target_requests::on_request(const transport::message &incoming) {
    target_request request;
    std::memcpy(&request, incoming.payload.data(), sizeof(request));
    target_reply reply;
    access const how = request.what == request_kind::get ? access::read : access::write;
    if (!is_exposed(own_, directory_, request.address, request.nbytes, how)) {
        reply.refused = 1;
        finish(incoming.source, request, reply);
        return;
    }
    auto *const target = reinterpret_cast<std::byte *>(request.address);
    switch (request.what) {
    case request_kind::put:
        std::memcpy(target, bounce_of(incoming.source, request), request.nbytes);
        break;
    case request_kind::get:
        std::memcpy(bounce_of(incoming.source, request), target, request.nbytes);
        break;
    case request_kind::fetch:
        apply_atomic(target, request.operand.data(), reply.old.data(), request.type, request.op);
        break;
    case request_kind::compare_swap:
        apply_compare_swap(target, request.operand.data(), request.desired.data(), reply.old.data(),
                           request.type);
        break;
    }
    finish(incoming.source, request, reply);
}

std::byte *target_requests::bounce_of(world_rank requester, const target_request &request) const {
    return engine_.transport().direct_base(requester) + request.bounce_offset;
}

void target_requests::finish(world_rank requester, const target_request &request,
                             const target_reply &reply) {
    if (request.acknowledge != 0) {
        acks_.send(requester, request.header.id, reply.refused != 0 ? OMPX_ERR_ADDRESS : 0);
    } else {
        calls_.reply(requester, request.header.id, reply);
    }
}

} // namespace diomp::rma
