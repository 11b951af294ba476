// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/ucx/am_receiver.h"

#include "base/log.h"
#include "base/panic.h"

#include <algorithm>
#include <cstring>

namespace diomp::transport::ucx {
namespace {

std::byte *to_pointer(std::uint64_t address) { return reinterpret_cast<std::byte *>(address); }

} // namespace

epoch_counter::open_epoch &epoch_counter::find(std::uint32_t epoch) {
    for (auto &candidate : open_) {
        if (candidate.number == epoch) {
            return candidate;
        }
    }
    return open_.emplace_back(open_epoch{epoch, 0, unknown});
}

bool epoch_counter::close_if_complete(open_epoch &epoch) {
    if (epoch.completed != epoch.expected) {
        return false;
    }
    std::swap(epoch, open_.back());
    open_.pop_back();
    return true;
}

bool epoch_counter::completed(std::uint32_t epoch, std::uint64_t count) {
    open_epoch &found = find(epoch);
    found.completed += count;
    return close_if_complete(found);
}

bool epoch_counter::close_epoch(std::uint32_t epoch, std::uint64_t expected) {
    open_epoch &found = find(epoch);
    found.expected = expected;
    return close_if_complete(found);
}

result<std::unique_ptr<am_receiver>> am_receiver::create(worker &receiver, arrivals &arrived,
                                                         peer_lookup find_peer) {
    library const &ucx = receiver.owner.ucx();
    std::unique_ptr<am_receiver> made(new am_receiver(receiver, arrived, std::move(find_peer)));
    auto const install = [&](am_id id, ucp_am_recv_callback_t callback, std::uint32_t flags) {
        ucp_am_handler_param_t parameters{};
        parameters.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                                UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
        parameters.id = static_cast<unsigned>(id);
        parameters.flags = flags;
        parameters.cb = callback;
        parameters.arg = made.get();
        return ucx.ucp_worker_set_am_recv_handler(receiver.handle, &parameters);
    };
    ucs_status_t code = install(am_id::packet, &on_packet, UCP_AM_FLAG_WHOLE_MSG);
    if (code == UCS_OK) {
        code = install(am_id::am_long, &on_am_long, UCP_AM_FLAG_WHOLE_MSG);
    }
    if (code != UCS_OK) {
        return ucx_error(ucx, "installing UCX's message handlers", code);
    }
    return made;
}

ucs_status_t am_receiver::on_packet(void *self, const void * /*header*/, std::size_t /*length*/,
                                    void *data, std::size_t nbytes,
                                    const ucp_am_recv_param_t * /*info*/) {
    static_cast<am_receiver *>(self)->read_packet(static_cast<const std::byte *>(data), nbytes);
    return UCS_OK;
}

void am_receiver::read_packet(const std::byte *bytes, std::size_t nbytes) {
    packet_header from;
    if (nbytes < sizeof(from)) {
        report_refused();
        return;
    }
    std::memcpy(&from, bytes, sizeof(from));
    if (!is_genuine(from.source, from.endpoint, from.proof)) {
        return;
    }
    world_rank const source{from.source};
    note_alive(source);
    std::size_t at = sizeof(from);
    std::uint64_t num_puts = 0;
    while (at + sizeof(record) <= nbytes) {
        record head;
        std::memcpy(&head, bytes + at, sizeof(head));
        const std::byte *const payload = bytes + at + sizeof(head);
        if (head.kind == record_kind::put) {
            std::memcpy(to_pointer(head.value), payload, head.nbytes);
            ++num_puts;
        } else if (head.kind == record_kind::flush) {
            count_completed(source, from.endpoint, from.epoch, num_puts);
            num_puts = 0;
            if (counter(source, from.endpoint).close_epoch(from.epoch, head.value)) {
                acknowledge(source, from.endpoint, from.epoch);
            }
            ++from.epoch;
        } else {
            read_record(from, head, payload);
        }
        at += sizeof(head) + padded(head.nbytes);
    }
    count_completed(source, from.endpoint, from.epoch, num_puts);
}

void am_receiver::read_record(const packet_header &from, const record &head,
                              const std::byte *payload) {
    world_rank const source{from.source};
    peer *const known = find_peer_(source);
    switch (head.kind) {
    case record_kind::message:
        arrived_.add_message(source, head.handler, payload, head.nbytes);
        break;
    case record_kind::get: {
        get_body body;
        std::memcpy(&body, payload, sizeof(body));
        replies_.push_back({source, record_kind::get_reply, 0, body.id, head.value, body.nbytes,
                            kinds_at_target(head.endpoint)});
        break;
    }
    case record_kind::get_reply:
        finish_get(source, head.value, payload, head.nbytes);
        break;
    case record_kind::ack:
        if (known != nullptr) {
            known->acknowledge(head.endpoint, static_cast<std::uint32_t>(head.value));
        }
        break;
    case record_kind::credit:
        if (known != nullptr) {
            known->return_credit(head.value);
        }
        break;
    case record_kind::ping:
        if (known != nullptr) {
            replies_.push_back(
                {source, record_kind::credit, 0, known->take_handled_bytes(), 0, 0, {}});
        }
        replies_.push_back({source, record_kind::pong, 0, 0, 0, 0, {}});
        break;
    case record_kind::pong:
    case record_kind::put:
    case record_kind::flush:
        break;
    }
}

void am_receiver::note_alive(world_rank source) {
    if (peer *const known = find_peer_(source); known != nullptr) {
        known->note_activity();
    }
}

void am_receiver::finish_get(world_rank source, std::uint64_t id, const std::byte *bytes,
                             std::size_t nbytes) {
    if (peer *const known = find_peer_(source); known != nullptr) {
        if (pending_get const get = known->find_get(id); get.done != nullptr) {
            std::memcpy(get.destination, bytes, std::min(nbytes, get.nbytes));
            known->end_get(id, nbytes, 0);
        }
    }
}

ucs_status_t am_receiver::on_am_long(void *self, const void *header, std::size_t header_length,
                                     void *data, std::size_t nbytes,
                                     const ucp_am_recv_param_t *info) {
    auto &owner = *static_cast<am_receiver *>(self);
    library const &ucx = owner.receiver_.owner.ucx();
    am_long_header head;
    if (header_length < sizeof(head)) {
        owner.report_refused();
        return UCS_OK;
    }
    std::memcpy(&head, header, sizeof(head));
    if (!owner.is_genuine(head.source, head.endpoint, head.proof) ||
        header_length != sizeof(head) + head.payload_bytes) {
        return UCS_OK;
    }
    owner.note_alive(world_rank{head.source});
    std::byte *destination = to_pointer(head.value);
    memory_kind memory = head.memory;
    if (head.kind == record_kind::message) {
        // Always sent eagerly, so the data is complete.
        const auto *const payload = static_cast<const std::byte *>(header) + sizeof(head);
        owner.arrived_.handle_long({world_rank{head.source},
                                    head.handler,
                                    {payload, head.payload_bytes},
                                    {static_cast<const std::byte *>(data), nbytes}});
        return UCS_OK;
    }
    if (head.kind == record_kind::get_reply) {
        peer *const known = owner.find_peer_(world_rank{head.source});
        pending_get const get = known == nullptr ? pending_get{} : known->find_get(head.value);
        if (get.done == nullptr || head.offset > get.nbytes || get.nbytes - head.offset < nbytes) {
            return UCS_OK; // the get has failed meanwhile
        }
        destination = get.destination + head.offset;
        memory = get.memory;
    }
    if ((info->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0) {
        if (owner.receiver_.owner.type_of(memory) != UCS_MEMORY_TYPE_HOST) {
            panic("UCX delivered data for device memory eagerly");
        }
        std::memcpy(destination, data, nbytes);
        owner.finish_am_long(head, nbytes, 0);
        return UCS_OK;
    }
    auto *const receive = new am_long_receive{&owner, head, nbytes};
    ucp_request_param_t parameters{};
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    parameters.cb.recv_am = &on_am_long_received;
    parameters.user_data = receive;
    if (memory != memory_kind::host) {
        parameters.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMORY_TYPE;
        parameters.memory_type = owner.receiver_.owner.type_of(memory);
    }
    ucs_status_ptr_t const request =
        ucx.ucp_am_recv_data_nbx(owner.receiver_.handle, data, destination, nbytes, &parameters);
    if (UCS_PTR_IS_PTR(request)) {
        ++owner.receiver_.num_requests;
    } else {
        owner.finish_am_long(head, nbytes, UCS_PTR_STATUS(request) == UCS_OK ? 0 : OMPX_ERR_PEER);
        delete receive;
    }
    return UCS_INPROGRESS;
}

void am_receiver::on_am_long_received(void *request, ucs_status_t code, std::size_t /*nbytes*/,
                                      void *user_data) {
    auto *const receive = static_cast<am_long_receive *>(user_data);
    am_receiver &owner = *receive->owner;
    --owner.receiver_.num_requests;
    owner.finish_am_long(receive->header, receive->nbytes, code == UCS_OK ? 0 : OMPX_ERR_PEER);
    delete receive;
    owner.receiver_.owner.ucx().ucp_request_free(request);
}

void am_receiver::finish_am_long(const am_long_header &header, std::size_t nbytes, int code) {
    world_rank const source{header.source};
    if (header.kind == record_kind::get_reply) {
        if (peer *const known = find_peer_(source); known != nullptr) {
            known->end_get(header.value, nbytes, code);
        }
    } else if (code == 0) {
        // A failed put is never acknowledged: its source has failed, or will declare this rank
        // failed.
        count_completed(source, header.endpoint, header.epoch, 1);
    }
}

sender &am_receiver::find_sender(world_rank source, std::uint16_t endpoint) {
    std::uint64_t const key = source.index() << 16 | endpoint;
    if (key != last_key_) {
        auto found = senders_.find(key);
        if (found == senders_.end()) {
            context const &ctx = receiver_.owner;
            std::uint64_t const proof = ctx.prover().proof_of(source, endpoint, ctx.self());
            found = senders_.emplace(key, sender{proof, {}}).first;
        }
        last_key_ = key;
        last_sender_ = &found->second; // nodes of the map do not move
    }
    return *last_sender_;
}

bool am_receiver::is_genuine(std::int32_t source, std::uint16_t endpoint, std::uint64_t proof) {
    bool const exists =
        source >= 0 && source < receiver_.owner.num_ranks() && endpoint < max_endpoints;
    if (exists && find_sender(world_rank{source}, endpoint).proof == proof) [[likely]] {
        return true;
    }
    report_refused();
    return false;
}

void am_receiver::report_refused() {
    if (refusals_.permits()) {
        log(log_level::warn,
            "ucx: a message was dropped, because its sender does not prove that it knows the "
            "secret of this job ({} more reports suppressed)",
            refusals_.take_suppressed());
    }
}

void am_receiver::count_completed(world_rank source, std::uint16_t endpoint, std::uint32_t epoch,
                                  std::uint64_t count) {
    if (count > 0 && counter(source, endpoint).completed(epoch, count)) {
        acknowledge(source, endpoint, epoch);
    }
}

void am_receiver::acknowledge(world_rank source, std::uint16_t endpoint, std::uint32_t epoch) {
    replies_.push_back(
        {source, record_kind::ack, static_cast<std::uint8_t>(endpoint), epoch, 0, 0, {}});
}

} // namespace diomp::transport::ucx
