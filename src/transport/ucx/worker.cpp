// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/ucx/worker.h"

#include "transport/ucx/peer.h"

namespace diomp::transport::ucx {

result<std::unique_ptr<worker>> worker::create(context &owner, std::uint16_t index) {
    library const &ucx = owner.ucx();
    std::unique_ptr<worker> made(new worker(owner, index));
    ucp_worker_params_t parameters{};
    parameters.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    parameters.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    if (ucs_status_t const code = ucx.ucp_worker_create(owner.handle(), &parameters, &made->handle);
        code != UCS_OK) {
        made->handle = nullptr;
        return ucx_error(ucx, "creating a UCX worker", code,
                         "make space in /dev/shm, or name other transports in UCX_TLS");
    }
    if (ucs_status_t const code = ucx.ucp_worker_get_efd(made->handle, &made->event_fd);
        code != UCS_OK) {
        return ucx_error(ucx, "creating the event descriptor of a UCX worker", code,
                         "remove transports without wake-up support from UCX_TLS");
    }
    return made;
}

worker::~worker() {
    if (handle != nullptr) {
        owner.ucx().ucp_worker_destroy(handle);
    }
    for (packet *const spent : free_packets_) {
        delete spent;
    }
}

bool worker::progress() {
    ++num_rounds;
    return owner.ucx().ucp_worker_progress(handle) != 0;
}

bool worker::arm() { return owner.ucx().ucp_worker_arm(handle) == UCS_OK; }

void worker::transmit_due_packets() {
    if (pending_packets.empty()) {
        return;
    }
    auto const now = std::chrono::steady_clock::now();
    std::erase_if(pending_packets,
                  [now](packet_sender *each) { return each->transmit_if_due(now); });
}

void worker::mark_broken(peer &lost) {
    if (!lost.is_broken.exchange(true)) {
        broken.push_back(&lost);
    }
}

packet *worker::allocate_packet() {
    if (free_packets_.empty()) {
        return new packet;
    }
    packet *const taken = free_packets_.back();
    free_packets_.pop_back();
    return taken;
}

} // namespace diomp::transport::ucx
