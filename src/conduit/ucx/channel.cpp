// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sending. Declared in peer.h.
#include "conduit/backoff.h"
#include "conduit/ucx/path.h"
#include "conduit/ucx/peer.h"

#include <algorithm>
#include <cstring>

namespace diomp::conduit::ucx {
namespace {

/// An endpoint whose peer is gone may never close in order.
constexpr std::chrono::seconds close_limit{1};

/// A bulk transfer under way.
struct bulk_send {
    bulk_header header;
    std::byte payload[most_bulk_payload_bytes]; ///< right behind the header: they travel together
    channel *owner;
    completion *done;
};

void mark_broken(channel &at) {
    if (!at.target.is_broken.exchange(true)) {
        at.owner.broken.push_back(&at.target);
    }
}

void packet_sent(void *request, ucs_status_t code, void *user_data) {
    auto *const sent = static_cast<packet *>(user_data);
    channel &from = *sent->owner;
    --from.num_in_flight;
    --from.owner.num_requests;
    from.owner.give_packet(sent);
    if (code != UCS_OK) {
        mark_broken(from);
    }
    from.owner.owner.ucx().ucp_request_free(request);
}

void bulk_finished(bulk_send *sent, ucs_status_t code) {
    if (code != UCS_OK) {
        mark_broken(*sent->owner);
    }
    --sent->owner->num_pieces;
    sent->owner->target.num_bulk.fetch_sub(1, std::memory_order_relaxed);
    if (sent->done != nullptr) {
        sent->done->end(code == UCS_OK ? 0 : OMPX_ERR_PEER);
    }
    delete sent;
}

void bulk_sent(void *request, ucs_status_t code, void *user_data) {
    auto *const sent = static_cast<bulk_send *>(user_data);
    worker &owner = sent->owner->owner;
    --owner.num_requests;
    bulk_finished(sent, code);
    owner.owner.ucx().ucp_request_free(request);
}

void endpoint_failed(void *argument, ucp_ep_h /*endpoint*/, ucs_status_t /*code*/) {
    mark_broken(*static_cast<channel *>(argument));
}

} // namespace

status channel::connect() {
    context &process = owner.owner;
    auto card = process.fetch(target.rank());
    DIOMP_TRY(card);
    target.learn_host(card.value().host);
    ucp_ep_params_t parameters{};
    parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                            UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    parameters.address = reinterpret_cast<const ucp_address_t *>(card.value().address.data());
    parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    parameters.err_handler.cb = &endpoint_failed;
    parameters.err_handler.arg = this;
    ucs_status_t code = process.ucx().ucp_ep_create(owner.handle, &parameters, &endpoint);
    if (code == UCS_ERR_UNREACHABLE) {
        // No transport here can tell of a lost peer, as shared memory cannot: our own watch must
        // do.
        reports_failures = false;
        parameters.err_mode = UCP_ERR_HANDLING_MODE_NONE;
        code = process.ucx().ucp_ep_create(owner.handle, &parameters, &endpoint);
    }
    if (code != UCS_OK) {
        endpoint = nullptr;
        return ucx_error(process.ucx(),
                         "connecting to rank " + std::to_string(target.rank().value()), code,
                         "UCX_NET_DEVICES and UCX_TLS must allow a network that both hosts share");
    }
    choose_path(*this, card.value());
    return {};
}

void channel::close() {
    library const &ucx = owner.owner.ucx();
    ucp_request_param_t parameters{};
    if (reports_failures) { // otherwise UCX allows only the orderly way
        parameters.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        parameters.flags = UCP_EP_CLOSE_FLAG_FORCE;
    }
    ucs_status_ptr_t const request = ucx.ucp_ep_close_nbx(endpoint, &parameters);
    if (UCS_PTR_IS_PTR(request)) {
        auto const give_up = std::chrono::steady_clock::now() + close_limit;
        backoff idle;
        while (ucx.ucp_request_check_status(request) == UCS_INPROGRESS &&
               std::chrono::steady_clock::now() < give_up) {
            if (ucx.ucp_worker_progress(owner.handle) != 0) {
                idle.reset();
            } else {
                idle.pause();
            }
        }
        ucx.ucp_request_free(request);
    }
    endpoint = nullptr;
}

void channel::abandon() {
    if (remote_key != nullptr) {
        owner.owner.ucx().ucp_rkey_destroy(remote_key);
        remote_key = nullptr;
    }
    if (endpoint != nullptr) {
        close();
    }
}

channel::~channel() {
    abandon();
    if (is_listed) {
        std::erase(owner.open_channels, this);
    }
    if (open != nullptr) {
        owner.give_packet(open);
    }
}

std::byte *channel::append(record_kind kind, std::uint64_t value, std::size_t nbytes,
                           std::uint16_t handler, std::uint8_t about) {
    std::size_t const wanted = sizeof(record) + padded(nbytes);
    if (open != nullptr && open->nbytes + wanted > packet_bytes) {
        ship();
    }
    if (open == nullptr) {
        open = owner.take_packet();
        open->owner = this;
        open->nbytes = sizeof(packet_header);
        packet_header const header{owner.owner.self().value(), owner.index, 0, epoch, 0};
        std::memcpy(open->bytes, &header, sizeof(header));
        open_was_seen = false;
        if (!is_listed) {
            is_listed = true;
            owner.open_channels.push_back(this);
        }
    }
    record const head{kind, about, handler, static_cast<std::uint32_t>(nbytes), value};
    std::byte *const at = open->bytes + open->nbytes;
    std::memcpy(at, &head, sizeof(head));
    open->nbytes += wanted;
    return at + sizeof(head);
}

void channel::ship_soon() {
    constexpr int at_once_per_round = 2;
    if (last_round != owner.num_rounds) {
        last_round = owner.num_rounds;
        num_at_once = 0;
    }
    if (num_at_once < at_once_per_round) {
        ++num_at_once;
        ship();
    } else {
        is_urgent = true;
    }
}

void channel::ship() {
    if (open == nullptr) {
        return;
    }
    packet *const sent = open;
    open = nullptr;
    is_urgent = false;
    if (target.is_broken.load(std::memory_order_relaxed)) {
        owner.give_packet(sent);
        return;
    }
    ucp_request_param_t parameters{};
    parameters.op_attr_mask =
        UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
    parameters.cb.send = &packet_sent;
    parameters.user_data = sent;
    parameters.flags = UCP_AM_SEND_FLAG_EAGER;
    ucs_status_ptr_t const request =
        owner.owner.ucx().ucp_am_send_nbx(endpoint, static_cast<unsigned>(am_id::packet), nullptr,
                                          0, sent->bytes, sent->nbytes, &parameters);
    if (UCS_PTR_IS_PTR(request)) {
        ++num_in_flight;
        ++owner.num_requests;
        return;
    }
    owner.give_packet(sent);
    if (UCS_PTR_IS_ERR(request)) {
        mark_broken(*this);
    }
}

std::uint32_t channel::send_bulk(record_kind kind, std::uint64_t value, const void *source,
                                 std::size_t nbytes, completion *done, memory_ends ends) {
    std::size_t const step = cuts_bulk && ends.are_host() ? piece_bytes : nbytes;
    std::uint32_t num_sent = 0;
    for (std::size_t at = 0; at < nbytes; at += step) {
        bool const is_put = kind == record_kind::put;
        bulk_header const header{
            owner.owner.self().value(),  owner.index, kind, ends.remote, epoch, 0, 0,
            is_put ? value + at : value, at};
        send_piece(header, {}, static_cast<const std::byte *>(source) + at,
                   std::min(step, nbytes - at), done, ends);
        ++num_sent;
    }
    return num_sent;
}

void channel::send_bulk_message(std::uint16_t handler, std::span<const std::byte> payload,
                                std::span<const std::byte> data, completion &done) {
    bulk_header const header{owner.owner.self().value(),
                             owner.index,
                             record_kind::message,
                             memory_kind::host,
                             0,
                             handler,
                             static_cast<std::uint16_t>(payload.size()),
                             0,
                             0};
    send_piece(header, payload, data.data(), data.size(), &done, {});
}

void channel::send_piece(const bulk_header &header, std::span<const std::byte> payload,
                         const void *source, std::size_t nbytes, completion *done,
                         memory_ends ends) {
    auto *const sent = new bulk_send{header, {}, this, done};
    if (!payload.empty()) {
        std::memcpy(sent->payload, payload.data(), payload.size());
    }
    ++num_pieces;
    target.num_bulk.fetch_add(1, std::memory_order_relaxed);
    if (done != nullptr) {
        done->begin();
    }
    if (target.is_broken.load(std::memory_order_relaxed)) {
        bulk_finished(sent, UCS_ERR_CONNECTION_RESET);
        return;
    }
    ucp_request_param_t parameters{};
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    parameters.cb.send = &bulk_sent;
    parameters.user_data = sent;
    if (!ends.are_host()) {
        // By a rendezvous the receiver says where the bytes go before they come.
        parameters.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
        parameters.flags = UCP_AM_SEND_FLAG_RNDV;
        parameters.memory_type = owner.owner.type_of(ends.local);
    } else if (cuts_bulk) {
        parameters.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
        parameters.flags = UCP_AM_SEND_FLAG_EAGER;
    }
    ucs_status_ptr_t const request = owner.owner.ucx().ucp_am_send_nbx(
        endpoint, static_cast<unsigned>(am_id::bulk), &sent->header,
        sizeof(sent->header) + payload.size(), source, nbytes, &parameters);
    if (UCS_PTR_IS_PTR(request)) {
        ++owner.num_requests;
        return;
    }
    bulk_finished(sent, UCS_PTR_STATUS(request));
}

} // namespace diomp::conduit::ucx
