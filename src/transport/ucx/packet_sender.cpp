// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/ucx/packet_sender.h"

#include "transport/ucx/peer.h"

#include <cstring>

namespace diomp::transport::ucx {
namespace {

/// Time during which small puts are coalesced before progress sends them.
constexpr std::chrono::microseconds coalesce_time{50};

void packet_sent(void *request, ucs_status_t code, void *user_data) {
    auto *const sent = static_cast<packet *>(user_data);
    endpoint &from = *sent->owner;
    --from.num_in_flight;
    --from.owner.num_requests;
    from.owner.release_packet(sent);
    if (code != UCS_OK) {
        from.owner.mark_broken(from.target);
    }
    from.owner.owner.ucx().ucp_request_free(request);
}

} // namespace

packet_sender::packet_sender(endpoint &owner)
    : owner_(owner), proof_(owner.owner.owner.prover().proof_of(
                         owner.owner.owner.self(), owner.owner.index, owner.target.rank())) {}

packet_sender::~packet_sender() {
    if (is_listed_) {
        std::erase(owner_.owner.pending_packets, this);
    }
    if (open_ != nullptr) {
        owner_.owner.release_packet(open_);
    }
}

std::byte *packet_sender::append(record_kind kind, std::uint64_t value, std::size_t nbytes,
                                 std::uint16_t handler, std::uint8_t auxiliary) {
    std::size_t const wanted = sizeof(record) + padded(nbytes);
    if (open_ != nullptr && open_->nbytes + wanted > packet_bytes) {
        transmit();
    }
    if (open_ == nullptr) {
        worker &via = owner_.owner;
        open_ = via.allocate_packet();
        open_->owner = &owner_;
        open_->nbytes = sizeof(packet_header);
        packet_header const header{proof_, via.owner.self().value(), via.index,
                                   0,      owner_.epoch.number(),    0};
        std::memcpy(open_->bytes, &header, sizeof(header));
        open_was_seen_ = false;
        if (!is_listed_) {
            is_listed_ = true;
            via.pending_packets.push_back(this);
        }
    }
    record const head{kind, auxiliary, handler, static_cast<std::uint32_t>(nbytes), value};
    std::byte *const at = open_->bytes + open_->nbytes;
    std::memcpy(at, &head, sizeof(head));
    open_->nbytes += wanted;
    return at + sizeof(head);
}

void packet_sender::transmit_soon() {
    constexpr int max_sent_in_round = 2;
    if (last_round_ != owner_.owner.num_rounds) {
        last_round_ = owner_.owner.num_rounds;
        num_sent_in_round_ = 0;
    }
    if (num_sent_in_round_ < max_sent_in_round) {
        ++num_sent_in_round_;
        transmit();
    } else {
        is_urgent_ = true;
    }
}

bool packet_sender::transmit_if_due(std::chrono::steady_clock::time_point now) {
    if (open_ != nullptr && !is_urgent_) {
        if (!open_was_seen_) {
            open_was_seen_ = true;
            open_since_ = now;
        }
        if (now - open_since_ < coalesce_time) {
            return false;
        }
    }
    transmit();
    is_listed_ = false;
    return true;
}

void packet_sender::transmit() {
    if (open_ == nullptr) {
        return;
    }
    worker &via = owner_.owner;
    packet *const sent = open_;
    open_ = nullptr;
    is_urgent_ = false;
    if (owner_.target.is_broken.load(std::memory_order_relaxed)) {
        via.release_packet(sent);
        return;
    }
    ucp_request_param_t parameters{};
    parameters.op_attr_mask =
        UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
    parameters.cb.send = &packet_sent;
    parameters.user_data = sent;
    parameters.flags = UCP_AM_SEND_FLAG_EAGER;
    ucs_status_ptr_t const request =
        via.owner.ucx().ucp_am_send_nbx(owner_.ep, static_cast<unsigned>(am_id::packet), nullptr, 0,
                                        sent->bytes, sent->nbytes, &parameters);
    if (UCS_PTR_IS_PTR(request)) {
        ++owner_.num_in_flight;
        ++via.num_requests;
        return;
    }
    via.release_packet(sent);
    if (UCS_PTR_IS_ERR(request)) {
        via.mark_broken(owner_.target);
    }
}

} // namespace diomp::transport::ucx
