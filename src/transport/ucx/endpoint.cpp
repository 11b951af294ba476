// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/ucx/endpoint.h"

#include "transport/common/backoff.h"
#include "transport/ucx/peer.h"
#include "transport/ucx/protocol.h"

#include <algorithm>
#include <cstring>

namespace diomp::transport::ucx {
namespace {

/// Time limit of closing an endpoint: if the peer has failed, it may never close.
constexpr std::chrono::seconds close_limit{1};

/// A large transfer in flight.
struct am_long_send {
    am_long_header header;
    std::byte payload[max_am_long_payload_bytes]; ///< sent together with the header
    endpoint *owner;
    completion *done;
};

void am_long_finished(am_long_send *sent, ucs_status_t code) {
    if (code != UCS_OK) {
        sent->owner->owner.mark_broken(sent->owner->target);
    }
    --sent->owner->num_chunks;
    sent->owner->target.num_large_transfers.fetch_sub(1, std::memory_order_relaxed);
    if (sent->done != nullptr) {
        sent->done->end(code == UCS_OK ? 0 : OMPX_ERR_PEER);
    }
    delete sent;
}

void am_long_sent(void *request, ucs_status_t code, void *user_data) {
    auto *const sent = static_cast<am_long_send *>(user_data);
    worker &owner = sent->owner->owner;
    --owner.num_requests;
    am_long_finished(sent, code);
    owner.owner.ucx().ucp_request_free(request);
}

void endpoint_failed(void *argument, ucp_ep_h /*endpoint*/, ucs_status_t /*code*/) {
    auto const &at = *static_cast<endpoint *>(argument);
    at.owner.mark_broken(at.target);
}

} // namespace

status endpoint::connect() {
    context &ctx = owner.owner;
    auto blob = ctx.fetch(target.rank());
    DIOMP_TRY(blob);
    target.set_host(blob.value().host);
    ucp_ep_params_t parameters{};
    parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                            UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    parameters.address = reinterpret_cast<const ucp_address_t *>(blob.value().address.data());
    parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    parameters.err_handler.cb = &endpoint_failed;
    parameters.err_handler.arg = this;
    ucs_status_t code = ctx.ucx().ucp_ep_create(owner.handle, &parameters, &ep);
    if (code == UCS_ERR_UNREACHABLE) {
        // No transport to this peer reports peer failure, as with shared memory: the conduit's own
        // liveness check has to detect it.
        reports_failures = false;
        parameters.err_mode = UCP_ERR_HANDLING_MODE_NONE;
        code = ctx.ucx().ucp_ep_create(owner.handle, &parameters, &ep);
    }
    if (code != UCS_OK) {
        ep = nullptr;
        return ucx_error(ctx.ucx(), "connecting to rank " + std::to_string(target.rank().value()),
                         code,
                         "UCX_NET_DEVICES and UCX_TLS must allow a network that both hosts share");
    }
    select_protocol(*this, blob.value());
    return {};
}

void endpoint::close() {
    library const &ucx = owner.owner.ucx();
    ucp_request_param_t parameters{};
    if (reports_failures) { // otherwise UCX allows no forced close
        parameters.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        parameters.flags = UCP_EP_CLOSE_FLAG_FORCE;
    }
    ucs_status_ptr_t const request = ucx.ucp_ep_close_nbx(ep, &parameters);
    if (UCS_PTR_IS_PTR(request)) {
        auto const deadline = std::chrono::steady_clock::now() + close_limit;
        backoff idle;
        while (ucx.ucp_request_check_status(request) == UCS_INPROGRESS &&
               std::chrono::steady_clock::now() < deadline) {
            if (ucx.ucp_worker_progress(owner.handle) != 0) {
                idle.reset();
            } else {
                idle.pause();
            }
        }
        ucx.ucp_request_free(request);
    }
    ep = nullptr;
}

void endpoint::destroy() {
    rdma.destroy_key();
    if (ep != nullptr) {
        close();
    }
}

std::uint32_t endpoint::send_long(record_kind kind, std::uint64_t value, const void *source,
                                  std::size_t nbytes, completion *done, memory_kinds kinds) {
    std::size_t const step = uses_chunks && kinds.are_host() ? chunk_bytes : nbytes;
    std::uint32_t num_sent = 0;
    for (std::size_t at = 0; at < nbytes; at += step) {
        bool const is_put = kind == record_kind::put;
        am_long_header const header{packets.proof(),
                                    owner.owner.self().value(),
                                    owner.index,
                                    kind,
                                    kinds.remote,
                                    epoch.number(),
                                    0,
                                    0,
                                    is_put ? value + at : value,
                                    at};
        send_chunk(header, {}, static_cast<const std::byte *>(source) + at,
                   std::min(step, nbytes - at), done, kinds);
        ++num_sent;
    }
    return num_sent;
}

void endpoint::send_long_message(std::uint16_t handler, std::span<const std::byte> payload,
                                 std::span<const std::byte> data, completion &done) {
    am_long_header const header{packets.proof(),
                                owner.owner.self().value(),
                                owner.index,
                                record_kind::message,
                                memory_kind::host,
                                0,
                                handler,
                                static_cast<std::uint16_t>(payload.size()),
                                0,
                                0};
    send_chunk(header, payload, data.data(), data.size(), &done, {});
}

void endpoint::send_chunk(const am_long_header &header, std::span<const std::byte> payload,
                          const void *source, std::size_t nbytes, completion *done,
                          memory_kinds kinds) {
    auto *const sent = new am_long_send{header, {}, this, done};
    if (!payload.empty()) {
        std::memcpy(sent->payload, payload.data(), payload.size());
    }
    ++num_chunks;
    target.num_large_transfers.fetch_add(1, std::memory_order_relaxed);
    if (done != nullptr) {
        done->begin();
    }
    if (target.is_broken.load(std::memory_order_relaxed)) {
        am_long_finished(sent, UCS_ERR_CONNECTION_RESET);
        return;
    }
    ucp_request_param_t parameters{};
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    parameters.cb.send = &am_long_sent;
    parameters.user_data = sent;
    if (!kinds.are_host()) {
        // In the rendezvous protocol the receiver names the destination before data is sent.
        parameters.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
        parameters.flags = UCP_AM_SEND_FLAG_RNDV;
        parameters.memory_type = owner.owner.type_of(kinds.local);
    } else if (uses_chunks) {
        parameters.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
        parameters.flags = UCP_AM_SEND_FLAG_EAGER;
    }
    ucs_status_ptr_t const request = owner.owner.ucx().ucp_am_send_nbx(
        ep, static_cast<unsigned>(am_id::am_long), &sent->header,
        sizeof(sent->header) + payload.size(), source, nbytes, &parameters);
    if (UCS_PTR_IS_PTR(request)) {
        ++owner.num_requests;
        return;
    }
    am_long_finished(sent, UCS_PTR_STATUS(request));
}

} // namespace diomp::transport::ucx
