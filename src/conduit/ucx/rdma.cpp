// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transfers by UCX's own puts and gets, where the network does them without the target. Declared in
// peer.h.
#include "conduit/ucx/peer.h"

namespace diomp::conduit::ucx {
namespace {

struct operation {
    channel *owner;
    completion *done;
    bool is_flush;
};

void finish(operation *over, ucs_status_t code) {
    channel &owner = *over->owner;
    if (over->is_flush) {
        --owner.num_rdma_flushes;
    }
    --owner.num_in_flight;
    owner.target.num_bulk.fetch_sub(1, std::memory_order_relaxed);
    if (code != UCS_OK && !owner.target.is_broken.exchange(true)) {
        owner.owner.broken.push_back(&owner.target);
    }
    over->done->end(code == UCS_OK ? 0 : OMPX_ERR_PEER);
    delete over;
}

void finished(void *request, ucs_status_t code, void *user_data) {
    auto *const over = static_cast<operation *>(user_data);
    worker &owner = over->owner->owner;
    --owner.num_requests;
    finish(over, code);
    owner.owner.ucx().ucp_request_free(request);
}

/// Starts `call` with a callback that ends `done`.
template <typename Call>
void start(channel &at, completion &done, bool is_flush, Call &&call) {
    auto *const started = new operation{&at, &done, is_flush};
    done.begin();
    ++at.num_in_flight;
    at.num_rdma_flushes += is_flush ? 1 : 0;
    at.target.num_bulk.fetch_add(1, std::memory_order_relaxed);
    if (at.target.is_broken.load(std::memory_order_relaxed)) {
        finish(started, UCS_ERR_CONNECTION_RESET);
        return;
    }
    ucp_request_param_t parameters{};
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    parameters.cb.send = &finished;
    parameters.user_data = started;
    ucs_status_ptr_t const request = call(parameters);
    if (UCS_PTR_IS_PTR(request)) {
        ++at.owner.num_requests;
    } else {
        finish(started, UCS_PTR_STATUS(request));
    }
}

} // namespace

void channel::rdma_put(std::uint64_t remote_address, const void *source, std::size_t nbytes,
                       completion &done) {
    has_rdma_news = true;
    start(*this, done, false, [&](const ucp_request_param_t &parameters) {
        return owner.owner.ucx().ucp_put_nbx(endpoint, source, nbytes, remote_address, remote_key,
                                             &parameters);
    });
}

void channel::rdma_get(std::uint64_t remote_address, void *destination, std::size_t nbytes,
                       completion &done) {
    start(*this, done, false, [&](const ucp_request_param_t &parameters) {
        return owner.owner.ucx().ucp_get_nbx(endpoint, destination, nbytes, remote_address,
                                             remote_key, &parameters);
    });
}

bool channel::rdma_flush(completion &done) {
    // With one under way, a new one is the simplest that waits for the same.
    if (!has_rdma_news && num_rdma_flushes == 0) {
        return false;
    }
    has_rdma_news = false;
    start(*this, done, true, [&](const ucp_request_param_t &parameters) {
        return owner.owner.ucx().ucp_ep_flush_nbx(endpoint, &parameters);
    });
    return true;
}

} // namespace diomp::conduit::ucx
